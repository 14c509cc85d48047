import { describe, expect, it } from "vitest";
import { manifest } from "../../load/job/testing/manifest.ts";
import type { TrackingChange } from "../overload/job-timeout.ts";
import {
  DATACENTER_KIND,
  type DatacenterEntry,
  DatacenterState,
  encodeDatacenterEntry,
  type Grant,
} from "./datacenter-state.ts";
import { encodeRunEntry, type RunEntry } from "./run-entries.ts";
import type { CallCounts } from "./run-result.ts";
import { RUN_KIND, RunState } from "./run-state.ts";
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

  submit(
    job: string,
    key: string,
    submission = BYTES,
    name = "x",
    tenant: string | null = null,
  ): string {
    const needs = { cores: null, usefulCores: 1, timeoutMs: null, tenant };
    const digest = `${submission.length} ${submission[0]}`;
    const taken = { name, takenBy: "n0", digest, createdAt: 0, needs };
    return this.apply({ kind: "submit", job, key, ...taken, submission });
  }

  admit(job: string, cores: number, worker = "w", incarnation = 1): string {
    const grants = [{ worker, incarnation, capacity: 4, cores }];
    return this.apply({ kind: "admit", job, grants, members: ["n0"] });
  }

  end(job: string, onlyQueued = false, reason: string | null = null, calls?: CallCounts): string {
    const over = { status: "COMPLETED", reason, summary: null, onlyQueued } as const;
    return this.apply({ kind: "end", job, ...over, ...(calls === undefined ? {} : { calls }) });
  }
}

const GONE = { awaited: false, figures: null } as const;

describe("the state of a datacenter", () => {
  it("assigns no core twice and frees them at the end of a job", () => {
    const dc = new Datacenter();
    for (const job of ["a", "b", "c"]) dc.submit(job, job);
    expect(dc.admit("a", 3)).toBe("admitted");
    expect(dc.admit("a", 1)).toBe("rejected NOT_QUEUED");
    expect(dc.admit("b", 2)).toBe("rejected NO_CAPACITY");
    expect(dc.admit("b", 1)).toBe("admitted");
    // Another incarnation of the worker has cores of its own.
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

  it("recognises a key for as long as the job is remembered", () => {
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

  it("caps waiting submissions", () => {
    const dc = new Datacenter();
    const large = new Uint8Array(262_144);
    const outcomes = ["a", "b", "c", "d", "e"].map((job) => dc.submit(job, job, large));
    expect(outcomes).toEqual([...Array(4).fill("queued"), "rejected QUEUE_FULL"]);
    dc.admit("a", 1);
    dc.apply({ kind: "begun", job: "a" });
    expect(dc.submit("e", "e", large)).toBe("queued");
  });

  it("stays within the snapshot size, however long names and reasons are", () => {
    const dc = new Datacenter();
    const long = "é".repeat(5_000);
    for (let at = 0; at < 400; at++) {
      const job = `job-${at}`;
      dc.submit(job, job, BYTES, long);
      dc.end(job, false, long);
    }
    expect(dc.state.jobs.size).toBeGreaterThan(100);
    expect(dc.state.snapshot().length).toBeLessThanOrEqual(DATACENTER_KIND.snapshotBytesMax);
    expect(dc.submit("next", "next")).toBe("queued");
  });

  it("forgets the same jobs as an older manager, which keeps no calls", () => {
    const [before, now] = [new Datacenter(), new Datacenter()];
    const reason = "r".repeat(900);
    for (let index = 0; index < 700; index++) {
      const job = `j${index}`;
      for (const dc of [before, now]) dc.submit(job, job);
      before.end(job, false, reason);
      now.end(job, false, reason, { requests: 123_456_789, failed: 1 });
    }
    expect(now.state.jobs.size).toBeLessThan(700);
    expect([...now.state.jobs.keys()]).toEqual([...before.state.jobs.keys()]);
    expect(now.state.jobs.get("j699")?.calls).toEqual({ requests: 123_456_789, failed: 1 });
  });

  it("forgets the same jobs after a round trip through its bytes", () => {
    const [one, other] = [new Datacenter(), new Datacenter()];
    const reason = "r".repeat(900);
    for (let index = 0; index < 900; index++) {
      const job = `j${index}`;
      for (const dc of [one, other]) {
        dc.submit(job, job);
        // Some stay open for long, ahead of finished ones.
        if (index % 7 > 0) dc.end(job, false, reason);
        else if (index > 70) dc.end(`j${index - 70}`, false, reason);
        dc.apply({ kind: "begun", job });
      }
      if (index % 97 === 0) expect(other.state.restore(other.state.snapshot())).toBe(true);
    }
    expect(one.state.jobs.size).toBeLessThan(900);
    expect([...other.state.jobs.keys()]).toEqual([...one.state.jobs.keys()]);
    expect([...other.state.open.keys()]).toEqual([...one.state.open.keys()]);
  });

  it("knows the last served tenant without scanning all remembered jobs", () => {
    const dc = new Datacenter();
    const end = (job: string, at: number, status: "COMPLETED" | "CANCELLED" = "COMPLETED") =>
      dc.apply({ kind: "end", job, status, reason: null, summary: null, onlyQueued: false, at });
    for (let index = 0; index < 1_200; index++) {
      const job = `j${index}`;
      const tenant = index < 100 ? "early" : index % 2 === 0 ? "even" : null;
      dc.submit(job, job, BYTES, "x", tenant);
      // A job cancelled before it had cores was not served.
      end(job, index, index === 1_199 ? "CANCELLED" : "COMPLETED");
    }
    const expected = new Map([
      ["even", 1_198],
      ["default", 1_197],
    ]);
    expect(new Map(dc.state.lastServed)).toEqual(expected);
    dc.state.restore(dc.state.snapshot());
    expect(new Map(dc.state.lastServed)).toEqual(expected);
  });

  it("is restored from its complete bytes and from nothing less", () => {
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
    expect(copy.restore(new DatacenterState().snapshot())).toBe(true);
    expect(copy.usedCores("w", 1)).toBe(0);
  });
});

type Led = Extract<RunEntry, { readonly view: number }>;
type Decided<Entry = Led> = Entry extends Led ? Omit<Entry, "view" | "at"> : never;

class Run {
  readonly state = new RunState();
  #seq = 0;

  /** `view`: view of the primary that accepted it. */
  apply(entry: RunEntry, view = 1): string {
    const data = encodeRunEntry(entry);
    expect(this.state.problemOf(data)).toBe(null);
    const seq = this.#seq++;
    const { outcome, reason } = this.state.apply({ seq, view, eventId: `e${seq}`, data });
    return outcome === "rejected" ? `rejected ${reason}` : outcome;
  }

  /** Applies an entry of a leader in its own view. */
  led(decided: Decided, view = 1, at = 0): string {
    return this.apply({ ...decided, view, at }, view);
  }

  adopt(view: number, at = 0): string {
    return this.led({ kind: "adopt" }, view, at);
  }

  place(workflow: string, cores: readonly number[], view = 1): number | null {
    this.led({ kind: "step", step: { kind: "place", workflow, cores } }, view);
    const last = this.state.history.at(-1);
    return last?.kind === "step" && last.step.kind === "place" ? last.step.execution : null;
  }

  grant(core: number, request = 1): ReturnType<RunState["given"]> {
    this.led({ kind: "step", step: asked(core, request) });
    return this.state.given(asked(core, request));
  }

  numbers(core: number, id: number): ReturnType<RunState["given"]> {
    const step = { kind: "numbers", core, id, name: "ids", count: 64 } as const;
    this.led({ kind: "step", step });
    return this.state.given(step);
  }
}

function asked(core: number, request: number) {
  const block = { name: "iterations", size: 4, request };
  return { kind: "grant", workflow: "w", execution: 7, core, ...block } as const;
}

const load = { kind: "shared", vus: 2, iterations: 10, durationMsMax: 1_000 } as const;
const BEGIN: RunEntry = {
  kind: "begin",
  createdAt: 5,
  waitedMs: 0,
  submission: encodeSubmission(submission({ manifests: [manifest("w", { load })] })),
  grants: [],
};
const CORES = [0, 1].map((core) => ({ core, worker: `w${core}`, incarnation: 1 }));
const FINISHED = { kind: "finished", execution: 1, notes: [], counts: [], faults: [] } as const;

const COMPLETED = { kind: "end", status: "COMPLETED", reason: null, summary: null } as const;
const CANCEL: RunEntry = {
  ...{ kind: "control", at: 8, by: "ada" },
  control: { kind: "cancel", reason: "enough" },
};

function granted(run: Run): void {
  run.led({ kind: "timeouts", change: { kind: "extended", worker: "w0", ms: 15_000 } });
}

function begun(): Run {
  const run = new Run();
  run.apply(BEGIN);
  run.adopt(1);
  run.led({ kind: "open", cores: CORES });
  return run;
}

describe("the state of a run", () => {
  it("makes tokens that increase with every placement and every view", () => {
    const run = begun();
    const tokens = [run.place("w", [0, 1]), run.place("w", [0, 1])];
    run.adopt(3);
    tokens.push(run.place("w", [0, 1], 3));
    expect(tokens).toEqual([2 ** 20, 2 ** 20 + 1, 3 * 2 ** 20 + 2]);
    expect(run.state.attempts.map(({ core, worker }) => [core, worker])).toEqual([
      ...[0, 1, 0, 1, 0, 1].map((core) => [core, `w${core}`]),
    ]);
  });

  it("accepts decisions only from the leader that adopted it", () => {
    const run = begun();
    const lost = { kind: "coreLost", core: 0, what: "gone", ...GONE } as const;
    // Left behind by the leader of view 1, and committed by the primary of view 2.
    expect(run.apply({ ...lost, view: 1, at: 9 }, 2)).toBe("rejected STALE_VIEW");
    expect(run.led(lost, 2)).toBe("rejected NOT_ADOPTED");
    expect(run.adopt(2)).toBe("adopted");
    expect(run.led(lost, 2)).toBe("coreLost");
    expect(run.apply({ ...lost, core: 1, view: 1, at: 9 }, 1)).toBe("rejected NOT_ADOPTED");
    expect(run.apply({ kind: "control", at: 9, control: { kind: "pause" }, by: "ada" }, 2)).toBe(
      "control",
    );
  });

  it("has a time that never goes back, whatever the clocks of its leaders say", () => {
    const run = begun();
    run.led({ kind: "start" }, 1, 5_000);
    run.adopt(2, 100);
    run.led({ kind: "coreLost", core: 0, what: "gone", ...GONE }, 2, 200);
    expect(run.state.history.map(({ at }) => at)).toEqual([5_000, 5_000]);
    expect(run.state.at).toBe(5_000);
  });

  it("grants each iteration once, and reports when there are no more (T6)", () => {
    const run = begun();
    expect([run.grant(0), run.grant(1), run.grant(0, 2)]).toMatchObject([
      { from: 0, to: 4, last: false },
      { from: 4, to: 8, last: false },
      { from: 8, to: 10, last: true },
    ]);
    expect(run.state.history).toEqual([]);
  });

  it("returns the same block to a retry, and its numbers to no other request (T6)", () => {
    const run = begun();
    expect([run.grant(0), run.grant(0), run.grant(1)]).toMatchObject([
      { from: 0, to: 4 },
      { from: 0, to: 4 },
      { from: 4, to: 8 },
    ]);
    expect([run.numbers(0, 3), run.numbers(0, 3), run.numbers(1, 3)]).toMatchObject([
      { from: 0, to: 64 },
      { from: 0, to: 64 },
      { from: 64, to: 128 },
    ]);
    const copy = new RunState();
    copy.restore(run.state.snapshot());
    expect(copy.given(asked(0, 1))).toMatchObject({ from: 0, to: 4 });
  });

  it("closes every attempt once, with its outcome (T2)", () => {
    const run = begun();
    run.place("w", [0, 1]);
    const finished = { ...FINISHED, provided: { a: 1 } };
    run.led({ kind: "step", step: { kind: "finished", workflow: "w", core: 0, finished } });
    expect(run.led({ kind: "coreLost", core: 0, what: "gone", ...GONE })).toBe("coreLost");
    expect(run.led({ kind: "coreLost", core: 0, what: "gone", ...GONE })).toBe(
      "rejected LOST_BEFORE",
    );
    run.led({ kind: "coreLost", core: 1, what: "gone", ...GONE });
    expect(run.state.attempts.map(({ status }) => status)).toEqual(["finished", "lost"]);
  });

  it("closes an attempt on a core whose loss was committed before it (T2)", () => {
    const run = begun();
    run.led({ kind: "coreLost", core: 1, what: "gone", ...GONE });
    run.place("w", [0, 1]);
    expect(run.state.attempts.map(({ status }) => status)).toEqual(["running", "lost"]);
  });

  it("rejects entries before its beginning and after its end", () => {
    const run = new Run();
    expect(run.adopt(1)).toBe("rejected NOT_BEGUN");
    run.apply(BEGIN);
    run.adopt(1);
    run.led({ kind: "open", cores: CORES });
    expect(run.led({ kind: "open", cores: CORES })).toBe("rejected CORE_TAKEN");
    run.led({ kind: "start" });
    expect(run.led({ kind: "start" })).toBe("rejected STARTED_BEFORE");
    run.led({ kind: "end", status: "COMPLETED", reason: null, summary: null });
    expect(run.led({ kind: "open", cores: [] })).toBe("rejected ENDED");
  });

  it("stays within the snapshot size, and can still be cancelled and ended", () => {
    const run = begun();
    const provided = { text: "x".repeat(450_000) };
    const outcomes = [0, 1, 2, 3, 4].map((core) => {
      const finished = { ...FINISHED, provided };
      return run.led({ kind: "step", step: { kind: "finished", workflow: "w", core, finished } });
    });
    expect(outcomes).toEqual([...Array(3).fill("step"), ...Array(2).fill("rejected TOO_LARGE")]);
    const control = { kind: "scale", factor: 2 } as const;
    const asked = Array.from({ length: 500 }, () =>
      run.apply({ kind: "control", at: 0, control, by: "b".repeat(16_000) }),
    );
    expect(asked.at(-1)).toBe("rejected TOO_MANY_CONTROLS");
    const reason = "r".repeat(16_000);
    expect(
      run.apply({ kind: "control", at: 0, control: { kind: "cancel", reason }, by: "a" }),
    ).toBe("control");
    expect(run.state.cancelled?.length).toBeLessThan(2_000);
    expect(run.led({ kind: "end", status: "CANCELLED", reason, summary: null })).toBe("ended");
    expect(run.state.snapshot().length).toBeLessThanOrEqual(RUN_KIND.snapshotBytesMax);
  });

  it("keeps its timeout state across leaders and encoding (AD-34.2, AD-34.47)", () => {
    const run = begun();
    const changes: readonly TrackingChange[] = [
      { kind: "progress", progressAt: 9_000, advance: 70 },
      { kind: "extended", worker: "w0", ms: 15_000 },
      { kind: "overdue", cause: "stuck", reason: "still" },
    ];
    for (const [at, change] of changes.entries())
      expect(run.led({ kind: "timeouts", change }, 1, 10_000 + at)).toBe("tracked");
    const known = {
      ...{ progressAt: 10_001, advance: 70, extendedMs: 15_000, extensionMsMax: 15_000 },
      ...{ extendedAt: 10_001, extended: ["w0"] },
      overdue: { cause: "stuck", reason: "still", at: 10_002 },
    };
    expect(run.state.timeouts).toEqual(known);
    run.adopt(2, 20_000);
    const copy = new RunState();
    expect(copy.restore(run.state.snapshot())).toBe(true);
    expect([run.state.timeouts, copy.timeouts]).toEqual([known, known]);
    expect(copy.limit).toEqual(run.state.limit);
  });

  const timeOut = (view: number, extendedMs: number): RunEntry => {
    const control = { kind: "timeOut", reason: "late", view, extendedMs } as const;
    return { kind: "control", at: 9, control, by: "gate" };
  };
  const decisions: readonly (readonly [
    what: string,
    before: (run: Run) => void,
    view: number,
    extendedMs: number,
    outcome: string,
  ])[] = [
    ["about what its leader told", () => undefined, 1, 0, "control"],
    ["about what a leader before told", (run) => run.adopt(2), 1, 0, "rejected STALE_FENCE"],
    ["about what the second leader told", (run) => run.adopt(2), 2, 0, "control"],
    ["of before more time was granted", granted, 1, 0, "rejected EXTENDED_SINCE"],
    ["that knows of the grant", granted, 1, 15_000, "control"],
    ["after its end", (run) => run.led(COMPLETED), 1, 0, "rejected ENDED"],
    ["after a cancel", (run) => run.apply(CANCEL), 1, 0, "rejected ENDING"],
    ["after another", (run) => run.apply(timeOut(1, 0)), 1, 0, "rejected ENDING"],
  ];
  for (const [what, before, view, extendedMs, outcome] of decisions)
    it(`answers a timeout ${what}: ${outcome} (AD-34.10, AD-34.12, AD-34.24)`, () => {
      const run = begun();
      before(run);
      const ended = run.state.endAsked;
      expect(run.apply(timeOut(view, extendedMs), 2)).toBe(outcome);
      const asked = outcome === "control" ? ["TIMED_OUT", "late"] : ended;
      expect(run.state.endAsked).toEqual(asked);
    });

  it("is restored from its complete bytes and from nothing less", () => {
    const run = begun();
    run.led({ kind: "start" });
    run.place("w", [0, 1]);
    run.grant(0);
    const value = { rows: [1, "two", null] };
    run.led({ kind: "step", step: { kind: "setupDone", workflow: "w", value } });
    run.apply({ kind: "control", control: { kind: "scale", factor: 1.5 }, by: "ada", at: 7 });
    run.led({ kind: "coreLost", core: 1, what: "gone", ...GONE });
    const bytes = run.state.snapshot();
    const copy = new RunState();
    for (let cut = 0; cut < bytes.length; cut++)
      expect(copy.restore(bytes.subarray(0, cut))).toBe(false);
    expect(copy.restore(bytes)).toBe(true);
    expect(copy.snapshot()).toEqual(bytes);
    expect([copy.view, copy.isStarted, [...copy.lostCores]]).toEqual([1, true, [1]]);
    const data = encodeRunEntry({ kind: "step", view: 1, at: 9, step: asked(1, 1) });
    copy.apply({ seq: 9, view: 1, eventId: "x", data });
    expect(copy.given(asked(1, 1))).toMatchObject({ from: 4, to: 8 });
  });
});
