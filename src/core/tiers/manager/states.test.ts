import { describe, expect, it } from "vitest";
import type { PhaseStep } from "../../run/execution/phase-types.ts";
import { manifest } from "../../run/job/testing/manifest.ts";
import {
  type DatacenterEntry,
  DatacenterState,
  encodeDatacenterEntry,
  type Grant,
} from "./datacenter-state.ts";
import { encodeRunEntry, type RunEntry, RunState } from "./run-state.ts";
import { encodeSubmission } from "./submission.ts";
import { submission } from "./testing/world.ts";

const BYTES = Uint8Array.of(1, 2, 3);

class Datacenter {
  readonly state = new DatacenterState();
  #seq = 0;

  apply(entry: DatacenterEntry): string {
    const data = encodeDatacenterEntry(entry);
    expect(this.state.problemOf(data)).toBe(null);
    const seq = this.#seq++;
    const { outcome, reason } = this.state.apply({ seq, view: 1, eventId: `e${seq}`, data });
    return outcome === "rejected" ? `rejected ${reason}` : outcome;
  }

  submit(job: string, key: string, submission = BYTES): string {
    const taken = { name: "x", takenBy: "n0", createdAt: 0 };
    return this.apply({ kind: "submit", job, key, ...taken, submission });
  }

  admit(job: string, cores: number, worker = "w", incarnation = 1): string {
    const grants = [{ worker, incarnation, capacity: 4, cores }];
    return this.apply({ kind: "admit", job, grants, members: ["n0"] });
  }

  end(job: string, onlyQueued = false): string {
    const over = { status: "COMPLETED", reason: null, summary: null, onlyQueued } as const;
    return this.apply({ kind: "end", job, ...over });
  }
}

describe("the state of a datacenter", () => {
  it("gives no core twice, and takes them back with the end", () => {
    const dc = new Datacenter();
    for (const job of ["a", "b", "c"]) dc.submit(job, job);
    expect(dc.admit("a", 3)).toBe("admitted");
    expect(dc.admit("a", 1)).toBe("rejected NOT_QUEUED");
    expect(dc.admit("b", 2)).toBe("rejected NO_CAPACITY");
    expect(dc.admit("b", 1)).toBe("admitted");
    // Another life of the worker has cores of its own.
    expect(dc.admit("c", 4, "w", 2)).toBe("admitted");
    expect(dc.state.usedCores("w", 1)).toBe(4);
    dc.end("a");
    expect(dc.state.usedCores("w", 1)).toBe(1);
    expect(dc.admit("zzz", 1)).toBe("rejected UNKNOWN_JOB");
  });

  it("counts the grants of one admission together", () => {
    const dc = new Datacenter();
    dc.submit("a", "a");
    const half: Grant = { worker: "w", incarnation: 1, capacity: 4, cores: 3 };
    const entry = { kind: "admit", job: "a", members: [] } as const;
    expect(dc.apply({ ...entry, grants: [half, half] })).toBe("rejected NO_CAPACITY");
    expect(dc.apply({ ...entry, grants: [{ ...half, cores: 0 }] })).toBe("rejected NO_CAPACITY");
  });

  it("knows a key by its submission, as long as it knows the job", () => {
    const dc = new Datacenter();
    expect(dc.submit("a", "k")).toBe("queued");
    expect(dc.submit("b", "k")).toBe("duplicate");
    expect(dc.submit("b", "k", Uint8Array.of(9))).toBe("rejected KEY_REUSED");
    expect(dc.submit("a", "other")).toBe("rejected ID_TAKEN");
    dc.admit("a", 1);
    expect(dc.end("a", true)).toBe("rejected NOT_QUEUED");
    expect(dc.end("a")).toBe("ended");
    expect(dc.submit("b", "k")).toBe("duplicate");
  });

  it("takes no more submissions than it can keep", () => {
    const dc = new Datacenter();
    const large = new Uint8Array(262_144);
    const outcomes = ["a", "b", "c", "d", "e"].map((job) => dc.submit(job, job, large));
    expect(outcomes).toEqual([...Array(4).fill("queued"), "rejected QUEUE_FULL"]);
    dc.admit("a", 1);
    dc.apply({ kind: "begun", job: "a" });
    expect(dc.submit("e", "e", large)).toBe("queued");
  });

  it("comes back whole from its bytes, and from nothing less", () => {
    const dc = new Datacenter();
    for (const job of ["a", "b"]) dc.submit(job, job);
    dc.admit("a", 2);
    const bytes = dc.state.snapshot();
    const copy = new DatacenterState();
    for (let cut = 0; cut < bytes.length; cut++)
      expect(copy.restore(bytes.subarray(0, cut))).toBe(false);
    expect(copy.restore(bytes)).toBe(true);
    expect(copy.snapshot()).toEqual(bytes);
    expect(copy.usedCores("w", 1)).toBe(2);
  });
});

class Run {
  readonly state = new RunState();
  #seq = 0;

  apply(entry: RunEntry, view = 1): string {
    const data = encodeRunEntry(entry);
    expect(this.state.problemOf(data)).toBe(null);
    const seq = this.#seq++;
    const { outcome, reason } = this.state.apply({ seq, view, eventId: `e${seq}`, data });
    return outcome === "rejected" ? `rejected ${reason}` : outcome;
  }

  /** A step, as it was agreed to. */
  step(step: PhaseStep, view = 1): ReturnType<RunState["agreed"]> {
    const eventId = `e${this.#seq}`;
    this.apply({ kind: "step", step }, view);
    return this.state.agreed(eventId, step);
  }
}

const load = { kind: "shared", vus: 2, iterations: 10, durationMsMax: 1_000 } as const;
const BEGIN: RunEntry = {
  kind: "begin",
  createdAt: 5,
  submission: encodeSubmission(submission({ manifests: [manifest("w", { load })] })),
  grants: [],
};
const CORES = [0, 1].map((core) => ({ core, worker: `w${core}`, incarnation: 1 }));

function begun(): Run {
  const run = new Run();
  run.apply(BEGIN);
  run.apply({ kind: "open", cores: CORES });
  return run;
}

describe("the state of a run", () => {
  it("makes tokens that rise with every placement and every view", () => {
    const run = begun();
    const place = { kind: "place", workflow: "w", cores: [0, 1] } as const;
    const tokens = [run.step(place), run.step(place), run.step(place, 3)].map((step) =>
      step?.kind === "place" ? step.execution : null,
    );
    expect(tokens).toEqual([2 ** 20, 2 ** 20 + 1, 3 * 2 ** 20 + 2]);
    expect(run.state.attempts.map(({ core, worker }) => [core, worker])).toEqual([
      ...[0, 1, 0, 1, 0, 1].map((core) => [core, `w${core}`]),
    ]);
  });

  it("grants each iteration once, and knows when there are no more (T6)", () => {
    const run = begun();
    const grant = (core: number) =>
      run.step({ kind: "grant", workflow: "w", core, name: "iterations", size: 4 });
    expect([grant(0), grant(1), grant(0)]).toMatchObject([
      { from: 0, to: 4, last: false },
      { from: 4, to: 8, last: false },
      { from: 8, to: 10, last: true },
    ]);
    expect(run.state.history).toEqual([]);
  });

  it("closes every attempt once, with how it ended (T2)", () => {
    const run = begun();
    run.step({ kind: "place", workflow: "w", cores: [0, 1] });
    const finished = {
      kind: "finished",
      execution: 1,
      provided: { a: 1 },
      notes: [],
      counts: [],
      faults: [],
    } as const;
    run.step({ kind: "finished", workflow: "w", core: 0, finished });
    expect(run.apply({ kind: "coreLost", core: 0, what: "gone" })).toBe("coreLost");
    expect(run.apply({ kind: "coreLost", core: 0, what: "gone" })).toBe("rejected LOST_BEFORE");
    run.apply({ kind: "coreLost", core: 1, what: "gone" });
    expect(run.state.attempts.map(({ status }) => status)).toEqual(["finished", "lost"]);
  });

  it("takes nothing before its beginning and nothing after its end", () => {
    const run = new Run();
    expect(run.apply({ kind: "open", cores: CORES })).toBe("rejected NOT_BEGUN");
    run.apply(BEGIN);
    run.apply({ kind: "open", cores: CORES });
    expect(run.apply({ kind: "open", cores: CORES })).toBe("rejected CORE_TAKEN");
    run.apply({ kind: "end", status: "COMPLETED", reason: null, summary: null });
    expect(run.apply({ kind: "open", cores: [] })).toBe("rejected ENDED");
  });

  it("comes back whole from its bytes, and from nothing less", () => {
    const run = begun();
    run.step({ kind: "place", workflow: "w", cores: [0, 1] });
    run.step({ kind: "grant", workflow: "w", core: 0, name: "iterations", size: 4 });
    run.step({ kind: "setupDone", workflow: "w", value: { rows: [1, "two", null] } });
    run.apply({ kind: "control", control: { kind: "scale", factor: 1.5 }, by: "ada", at: 7 });
    const bytes = run.state.snapshot();
    const copy = new RunState();
    for (let cut = 0; cut < bytes.length; cut++)
      expect(copy.restore(bytes.subarray(0, cut))).toBe(false);
    expect(copy.restore(bytes)).toBe(true);
    expect(copy.snapshot()).toEqual(bytes);
    const data = encodeRunEntry({
      kind: "step",
      step: { kind: "grant", workflow: "w", core: 1, name: "iterations", size: 4 },
    });
    copy.apply({ seq: 9, view: 1, eventId: "x", data });
    const grant = { kind: "grant", workflow: "w", core: 1, name: "iterations", size: 4 } as const;
    expect(copy.agreed("x", grant)).toMatchObject({ from: 4, to: 8 });
  });
});
