import { describe, expect, it, vi } from "vitest";
import { millis } from "../../base/brand.ts";
import type { CoreEvent } from "../../load/job/core-messages.ts";
import { manifest } from "../../load/job/testing/manifest.ts";
import { readFrame } from "../../load/stats/frames.ts";
import { StatsRecorder } from "../../load/stats/stats-recorder.ts";
import type { Order, Orders } from "../messages.ts";
import { HeldJob } from "./held-job.ts";
import type { WorkerEffect, WorkerInput } from "./types.ts";
import { PROCESSES_PER_CORE_MAX, Worker } from "./worker.ts";

const CONFIG = {
  ...{ name: "w1", incarnation: 7, cores: 2, version: "1", isolationMs: 60_000 },
  errorKinds: 0,
};
const JOB = "job-1";
const SHAPE = { errorKinds: CONFIG.errorKinds, corrected: false };

/** A worker connected to m1, whose disk stores views at once. */
class Bench {
  readonly worker: Worker;
  now = 0;
  ids = 0;
  readonly disk: { keeps: boolean };

  constructor({ keeps = true, contact = true } = {}) {
    this.worker = new Worker(CONFIG, [["old", 5]]);
    this.disk = { keeps };
    if (contact) this.step({ kind: "link", manager: "m1", up: true });
  }

  /** Disconnects m1; last contact was now or earlier. */
  down(heardAt = this.now): WorkerEffect[] {
    return this.step({ kind: "link", manager: "m1", up: false, heardAt: millis(heardAt) });
  }

  step(input: WorkerInput): WorkerEffect[] {
    const effects = [...this.worker.step(input, millis(this.now))];
    if (this.disk.keeps && effects.some(({ kind }) => kind === "keepViews"))
      effects.push(...this.step({ kind: "viewsKept" }));
    return effects;
  }

  orders(orders: readonly Order[], over: Partial<Orders> & { readonly from?: string } = {}) {
    const { from = "m1", ...rest } = over;
    const request = {
      ...({ kind: "orders", job: JOB, view: 1, incarnation: 7, first: 0, orders } as const),
      ...rest,
    };
    return this.step({ kind: "request", manager: from, id: ++this.ids, request });
  }

  core(slot: number, event: CoreEvent): WorkerEffect[] {
    return this.step({ kind: "core", slot, event });
  }

  taken(next: number, view = 1): WorkerEffect[] {
    return this.step({ kind: "answered", job: JOB, view, answer: { kind: "taken", next } });
  }
}

function open(...cores: number[]): Order {
  return { kind: "open", cores, entry: "flow.mjs", files: [], overrides: {} };
}

function start(core: number, token: number): Order {
  return { kind: "command", core, token, command: { kind: "prepare", ...prepared(token) } };
}

function prepared(execution: number) {
  return { execution, workflow: "w", share: { index: 0, count: 1, users: [1] }, context: {} };
}

function frame(execution: number, byte: number): CoreEvent {
  const health = { cpu: 0, residentBytes: 0, activeUsers: 0 };
  return { kind: "frame", execution, part: null, bytes: Uint8Array.of(byte), health };
}

const finished = (execution: number): CoreEvent => ({
  ...{ kind: "finished", execution, provided: {}, notes: [], counts: [], faults: [] },
});

const answers = (effects: readonly WorkerEffect[]): unknown[] =>
  effects.flatMap((effect) => (effect.kind === "answer" ? [effect.answer] : []));
const kinds = (effects: readonly WorkerEffect[]): string[] => effects.map(({ kind }) => kind);
const rows = (effects: readonly WorkerEffect[]) =>
  effects.flatMap((effect) => (effect.kind === "events" ? [effect] : []));

describe("orders", () => {
  it("are executed once and in order, however often they are sent", () => {
    const bench = new Bench();
    const first = bench.orders([open(0, 1)]);
    expect(kinds(first)).toEqual(["keepViews", "open", "answer"]);
    expect(answers(first)).toEqual([{ kind: "taken", next: 1 }]);
    expect(answers(bench.orders([open(0, 1), start(0, 9)]))).toEqual([{ kind: "taken", next: 2 }]);
    expect(kinds(bench.orders([open(0, 1), start(0, 9)]))).toEqual(["answer"]);
    // With a gap, nothing is executed, and the sender learns where to resume.
    expect(answers(bench.orders([start(1, 9)], { first: 3 }))).toEqual([
      { kind: "taken", next: 2 },
    ]);
  });

  it.each([
    ["of another incarnation", { incarnation: 6 }, "wrongIncarnation"],
    ["of a view that an earlier process stored on disk", { job: "old", view: 4 }, "staleView"],
    ["of a deposed leader", { view: 0 }, "staleView"],
  ] as const)("%s are refused (AD-10)", (_what, over, reason) => {
    const bench = new Bench();
    bench.orders([open(0)]);
    expect(answers(bench.orders([start(0, 3)], over))).toMatchObject([{ kind: "refused", reason }]);
  });

  it("of a new view wait until it is on disk; queued ones of an older view are refused", () => {
    const bench = new Bench({ keeps: false });
    expect(kinds(bench.orders([open(0)], { view: 2 }))).toEqual(["keepViews"]);
    expect(kinds(bench.orders([open(0)], { view: 3, from: "m2" }))).toEqual(["keepViews"]);
    expect(kinds(bench.step({ kind: "viewsKept" }))).toEqual([]);
    const kept = bench.step({ kind: "viewsKept" });
    expect(answers(kept)).toMatchObject([
      { kind: "refused", reason: "staleView" },
      { kind: "taken", next: 1 },
    ]);
  });

  it("with a lower token than the core has are skipped without blocking later ones (AD-10)", () => {
    const bench = new Bench();
    bench.orders([open(0), start(0, 9)]);
    const effects = bench.orders([start(0, 8), start(0, 10)], { first: 2 });
    expect(answers(effects)).toEqual([{ kind: "taken", next: 4 }]);
    expect(effects.flatMap((one) => (one.kind === "command" ? [one.command] : []))).toMatchObject([
      { execution: 10 },
    ]);
  });

  it("reject cores beyond capacity, and exiting cores free slots", () => {
    const bench = new Bench();
    const all = Array.from({ length: CONFIG.cores * PROCESSES_PER_CORE_MAX }, (_, i) => i);
    bench.orders([open(...all)]);
    const over = bench.orders([open(100)], { first: 1 });
    expect(answers(over)).toEqual([{ kind: "taken", next: 2 }]);
    const lost = { kind: "coreLost", core: 100, what: "it has room for 0 cores", complete: true };
    expect(rows(over)[0]?.events.events).toEqual([lost]);
    bench.orders([{ kind: "release", cores: [0] }], { first: 2 });
    bench.orders([open(101)], { first: 3 });
    expect(rows(bench.taken(1))[0]?.events.events).toMatchObject([{ kind: "coreLost", core: 101 }]);
    bench.step({ kind: "coreGone", slot: 1, what: null });
    expect(kinds(bench.orders([open(102)], { first: 4 }))).toContain("open");
  });

  it("repeated after the job was closed start nothing again", () => {
    const bench = new Bench();
    bench.orders([open(0)]);
    const released = bench.orders([{ kind: "release", cores: [0] }], { first: 1 });
    expect(kinds(released)).toEqual(["endCore", "answer", "closed"]);
    expect(kinds(bench.orders([open(0), { kind: "release", cores: [0] }]))).toEqual(["answer"]);
    expect(bench.worker.jobs).toEqual([]);
  });
});

describe("events", () => {
  it("are numbered, sent one message at a time, and repeated until acknowledged", () => {
    const bench = new Bench();
    bench.orders([open(0)]);
    expect(
      rows(bench.core(1, { kind: "log", line: "a", isComplaint: false }))[0]?.events,
    ).toMatchObject({ first: 0 });
    expect(rows(bench.core(1, { kind: "log", line: "b", isComplaint: false }))).toEqual([]);
    const again = rows(bench.step({ kind: "answered", job: JOB, view: 1, answer: null }));
    expect(again[0]?.events).toMatchObject({ first: 0, events: [{ core: 0 }, { core: 0 }] });
    expect(rows(bench.taken(2))).toEqual([]);
    expect(
      rows(bench.core(1, { kind: "log", line: "c", isComplaint: false }))[0]?.events,
    ).toMatchObject({ first: 2 });
  });

  it("replace queued frames by the next one of the same core and execution", () => {
    const bench = new Bench();
    bench.orders([open(0, 1)]);
    bench.core(1, { kind: "log", line: "under way", isComplaint: false });
    bench.core(1, frame(9, 1));
    bench.core(2, frame(9, 2));
    bench.core(1, frame(9, 3));
    bench.core(1, finished(9));
    const [row] = rows(bench.taken(1));
    const sent = row?.events.events.map((one) =>
      one.kind === "core" && one.event.kind === "frame" ? [...one.event.bytes] : one.kind,
    );
    expect(sent).toEqual([[3], [2], "core"]);
  });

  it("that are unacknowledged go to the next leader, numbered from zero, while the load keeps running", () => {
    const bench = new Bench();
    bench.orders([open(0), start(0, 9)]);
    bench.core(1, { kind: "log", line: "a", isComplaint: false });
    bench.taken(1);
    bench.core(1, { kind: "log", line: "b", isComplaint: false });
    bench.step({ kind: "link", manager: "m2", up: true });
    const request = { kind: "announce", job: JOB, view: 2 } as const;
    const effects = bench.step({ kind: "request", manager: "m2", id: 50, request });
    const cores = [{ core: 0, token: 9 }];
    expect(answers(effects)).toEqual([{ kind: "announced", cores, events: 1 }]);
    expect(rows(effects)).toMatchObject([{ to: "m2", events: { view: 2, first: 0 } }]);
    expect(kinds(effects)).not.toContain("endCore");
  });

  it("of finished shares go to every new leader, even if acknowledged before", () => {
    const bench = new Bench();
    const announce = (view: number) => {
      const request = { kind: "announce", job: JOB, view } as const;
      return bench.step({ kind: "request", manager: "m1", id: 50 + view, request });
    };
    const bytes = (effects: readonly WorkerEffect[]) =>
      rows(effects).flatMap(({ events }) =>
        events.events.flatMap((one) =>
          one.kind === "core" && one.event.kind === "frame" ? [...one.event.bytes] : [],
        ),
      );
    bench.orders([open(0, 1), start(0, 9), start(1, 9)]);
    for (const event of [frame(9, 1), frame(9, 2), finished(9)]) bench.core(1, event);
    bench.core(2, frame(9, 3));
    // Calls of its tear-down follow the load.
    bench.core(1, frame(9, 4));
    for (let next = 1; next <= 5; next++) bench.taken(next);
    for (const view of [2, 3]) {
      const effects = announce(view);
      expect(answers(effects)).toMatchObject([{ kind: "announced", events: 2 }]);
      // The other core generates load: its next frame goes to the next leader.
      expect(bytes(effects)).toEqual([2, 4]);
      bench.taken(2, view);
    }
    bench.orders([{ kind: "release", cores: [0, 1] }], { view: 3 });
    expect(answers(announce(4))).toMatchObject([{ events: 0 }]);
  });

  it("stay unchanged once sent, because the leader may have accepted them", () => {
    const bench = new Bench();
    bench.orders([open(0)]);
    bench.core(1, frame(9, 1));
    bench.step({ kind: "answered", job: JOB, view: 1, answer: null });
    bench.core(1, frame(9, 2));
    bench.core(1, finished(9));
    const [row] = rows(bench.step({ kind: "answered", job: JOB, view: 1, answer: null }));
    const frames = row?.events.events.flatMap((one) =>
      one.kind === "core" && one.event.kind === "frame" ? [[...one.event.bytes]] : [],
    );
    expect(frames).toEqual([[1], [2]]);
  });

  it("are not dropped by an answer of the previous leader", () => {
    const bench = new Bench();
    bench.orders([open(0)]);
    bench.core(1, { kind: "log", line: "a", isComplaint: false });
    bench.step({ kind: "link", manager: "m2", up: true });
    const request = { kind: "announce", job: JOB, view: 2 } as const;
    bench.step({ kind: "request", manager: "m2", id: 50, request });
    bench.core(1, { kind: "log", line: "b", isComplaint: false });
    expect(rows(bench.taken(57, 1))).toEqual([]);
    const answer = { kind: "refused", reason: "notLeader", message: "m2" } as const;
    bench.step({ kind: "answered", job: JOB, view: 1, answer });
    expect(rows(bench.taken(1, 2))).toMatchObject([
      { to: "m2", events: { view: 2, first: 1, events: [{ event: { line: "b" } }] } },
    ]);
  });

  it("are resent after a delay when the leader does not accept them", () => {
    const bench = new Bench();
    bench.orders([open(0)]);
    bench.core(1, { kind: "log", line: "a", isComplaint: false });
    expect(rows(bench.taken(0))).toEqual([]);
    bench.now = bench.worker.nextDeadline() ?? 0;
    expect(bench.now).toBeGreaterThan(0);
    expect(rows(bench.step({ kind: "tick" }))).toMatchObject([{ events: { first: 0 } }]);
  });

  it("need no deadline when the delay has passed and nothing is queued", () => {
    const bench = new Bench();
    bench.orders([open(0)]);
    bench.taken(0);
    bench.now = bench.worker.nextDeadline() ?? 0;
    bench.step({ kind: "tick" });
    expect(bench.worker.nextDeadline()).toBeGreaterThan(bench.now);
  });

  it("are sent empty after a long silence, so that cores of finished jobs are released", () => {
    const bench = new Bench();
    bench.orders([open(0)]);
    const asked = (): ReturnType<typeof rows> => {
      for (let at = 0; at < 40; at++) {
        bench.now = bench.worker.nextDeadline() ?? 0;
        const said = rows(bench.step({ kind: "tick" }));
        if (said.length > 0) return said;
      }
      return [];
    };
    expect(asked()).toMatchObject([{ to: "m1", events: { first: 0, events: [] } }]);
    const elsewhere = { kind: "refused", reason: "notLeader", message: "" } as const;
    bench.step({ kind: "answered", job: JOB, view: 1, answer: elsewhere });
    bench.step({ kind: "link", manager: "m2", up: true });
    expect(asked()).toHaveLength(1);
    const over = { kind: "refused", reason: "unknownJob", message: "over" } as const;
    const effects = bench.step({ kind: "answered", job: JOB, view: 1, answer: over });
    expect(kinds(effects)).toContain("endCore");
  });

  it("report a lost core, but not a released one", () => {
    const bench = new Bench();
    bench.orders([open(0, 1)]);
    const [row] = rows(bench.step({ kind: "coreGone", slot: 1, what: "SIGKILL" }));
    expect(row?.events.events).toEqual([
      { kind: "coreLost", core: 0, what: "SIGKILL", complete: false },
    ]);
    bench.taken(1);
    bench.orders([{ kind: "release", cores: [1] }], { first: 1 });
    expect(rows(bench.step({ kind: "coreGone", slot: 2, what: null }))).toEqual([]);
  });

  it("of a job unknown to its leader stop what runs of it", () => {
    const bench = new Bench();
    bench.orders([open(0)]);
    bench.core(1, { kind: "log", line: "a", isComplaint: false });
    const answer = { kind: "refused", reason: "unknownJob", message: "over" } as const;
    const effects = bench.step({ kind: "answered", job: JOB, view: 1, answer });
    expect(kinds(effects)).toEqual(["log", "endCore", "closed"]);
  });

  it("are clipped when user code exceeds the limits of a message", () => {
    const bench = new Bench();
    bench.orders([open(0)]);
    const [row] = rows(
      bench.core(1, { kind: "log", line: "x".repeat(100_000), isComplaint: false }),
    );
    const [first] = row?.events.events ?? [];
    expect(first?.kind === "core" && first.event.kind === "log" ? first.event.line.length : 0).toBe(
      5_002,
    );
  });
});

describe("metrics", () => {
  it("are merged as deltas to the frame the answer acknowledges", () => {
    const bench = new Bench({ contact: false });
    bench.step({ kind: "link", manager: "m1", up: true, merges: true });
    const begin = { kind: "start", execution: 1, setup: null, planMs: 0 } as const;
    bench.orders([open(0)]);
    bench.core(1, { kind: "loaded", manifests: [manifest("w", {})] });
    bench.taken(1);
    const command = { kind: "command", core: 0, token: 1, command: begin } as const;
    bench.orders([start(0, 1), command], { first: 1 });
    const recorder = new StatsRecorder(SHAPE);
    let next = 1;
    /** The next frame of the core, and the frame it is a delta to. */
    const tell = (held: number | null): readonly (number | undefined)[] => {
      recorder.counts.completed++;
      recorder.seal(next, { users: 1, target: 1, cpuMs: 1, lagMsMax: 1 });
      const moment = { measuredMs: 100 * next, warmingUp: false, target: 1, arrivalsWaiting: 0 };
      const bytes = recorder.frame(moment, true);
      bench.now += 200;
      const [row] = rows(bench.core(1, { ...frame(1, 0), bytes } as CoreEvent));
      const [event] = row?.events.events ?? [];
      const written = event?.kind === "figures" ? readFrame(event.bytes, SHAPE) : undefined;
      expect(row?.events.wantsHeld).toBe(true);
      const frames = held === null ? [] : [{ execution: 1, part: null, frame: held }];
      const answer = { kind: "taken", next: ++next, held: frames } as const;
      bench.step({ kind: "answered", job: JOB, view: 1, answer });
      return [written?.number, written?.since];
    };
    expect([tell(1), tell(null), tell(3), tell(0), tell(5)]).toEqual([
      ...[
        [1, 0],
        [2, 1],
        [3, 1],
      ],
      // A leader without state is sent everything.
      ...[
        [4, 3],
        [5, 0],
      ],
    ]);
  });

  /** m1 has acknowledged everything and reported its overload level. */
  function pressed(level: number): Bench {
    const bench = new Bench();
    bench.orders([open(0), start(0, 1)]);
    bench.core(1, frame(1, 1));
    const answer = { kind: "taken", next: 1, level } as const;
    bench.step({ kind: "answered", job: JOB, view: 1, answer });
    return bench;
  }

  it.each([
    [0, 0],
    [1, 100],
    [2, 500],
    [3, 1_000],
    [9, 1_000],
  ])(
    "at level %s are delayed by %s ms, and the last of them is sent (AD-37.10)",
    (level, waitMs) => {
      const bench = pressed(level);
      const at = (now: number, byte: number) => {
        bench.now = now;
        return rows(bench.core(1, frame(1, byte))).map(({ events }) => events.events);
      };
      if (waitMs === 0) {
        expect(at(0, 2)).toHaveLength(1);
        return;
      }
      expect([...at(0, 2), ...at(waitMs - 1, 3)]).toEqual([]);
      expect(bench.worker.nextDeadline()).toBe(waitMs);
      bench.now = waitMs;
      const sent = rows(bench.step({ kind: "tick" }));
      expect(sent.map(({ events }) => events.events)).toEqual([
        [{ kind: "core", core: 0, event: frame(1, 3) }],
      ]);
    },
  );

  it("are delayed by the current level, not by an earlier one (AD-37.5)", () => {
    const bench = pressed(0);
    let next = 1;
    /** Acknowledges the message in flight at this level; returns the delay of the next metrics. */
    const waited = (level: number): number => {
      const answer = { kind: "taken", next: next++, level } as const;
      const from = bench.now;
      const sent = bench.step({ kind: "answered", job: JOB, view: 1, answer });
      sent.push(...bench.core(1, frame(1, next)));
      const isSent = () => rows(sent).some(({ events }) => events.job === JOB);
      for (; !isSent(); sent.push(...bench.step({ kind: "tick" }))) bench.now += 50;
      return bench.now - from;
    };
    expect(rows(bench.core(1, frame(1, 1)))).toHaveLength(1);
    expect([3, 1, 0, 2].map(waited)).toEqual([1_000, 100, 0, 500]);
    // Another manager is overloaded: the highest level counts from the next message on.
    bench.step({ kind: "link", manager: "m2", up: true });
    bench.orders([open(0)], { job: "job-2", from: "m2" });
    const answer = { kind: "taken", next: 0, level: 3 } as const;
    bench.step({ kind: "answered", job: "job-2", view: 1, answer });
    expect(waited(1)).toBe(1_000);
    // The manager is silent from now on, and its level decays every five seconds.
    bench.now += 5_000;
    expect(waited(0)).toBe(500);
    bench.now += 5_000;
    expect(waited(0)).toBe(100);
    bench.now += 5_000;
    expect(waited(0)).toBe(0);
  });

  it("never delay other events, and are sent along with them (AD-37.8)", () => {
    const bench = pressed(3);
    expect(rows(bench.core(1, frame(1, 2)))).toEqual([]);
    const [row] = rows(bench.core(1, finished(1)));
    expect(row?.events.events).toMatchObject([
      { event: { kind: "frame" } },
      { event: { kind: "finished" } },
    ]);
  });

  it("are sent at once when the overloaded manager disconnects or is silent for long", () => {
    const bench = pressed(3);
    bench.step({ kind: "link", manager: "m2", up: true });
    expect(bench.worker.figuresDelayMs(millis(0))).toBe(1_000);
    expect(bench.worker.figuresDelayMs(millis(15_000))).toBe(0);
    bench.down();
    expect(bench.worker.figuresDelayMs(millis(0))).toBe(0);
  });
});

describe("a worker that has seen many jobs", () => {
  it("skips finished jobs but remembers the position of their orders", () => {
    const bench = new Bench();
    for (let at = 0; at < 50; at++) {
      const job = `job-${at}`;
      const [opened] = bench.orders([open(0)], { job }).flatMap((effect) => {
        return effect.kind === "open" ? effect.opened : [];
      });
      bench.orders([{ kind: "release", cores: [0] }], { job, first: 1 });
      bench.step({ kind: "coreGone", slot: opened?.slot ?? -1, what: null });
    }
    const visits = vi.spyOn(HeldJob.prototype, "isOpen", "get");
    bench.step({ kind: "tick" });
    bench.worker.nextDeadline();
    expect(visits).not.toHaveBeenCalled();
    const repeated = bench.orders([open(0)], { job: "job-0" });
    expect(answers(repeated)).toEqual([{ kind: "taken", next: 2 }]);
    expect(kinds(repeated)).not.toContain("open");
    expect(bench.worker.jobs).toEqual([]);
    bench.orders([open(1)], { job: "job-0", first: 2 });
    bench.step({ kind: "tick" });
    expect(bench.worker.jobs).toEqual(["job-0"]);
    expect(visits).toHaveBeenCalled();
    visits.mockRestore();
  });
});

describe("a worker without managers", () => {
  it("continues for a minute, stops its load gracefully, and keeps its metrics", () => {
    const bench = new Bench();
    bench.orders([open(0), start(0, 9)]);
    bench.now = 1_000;
    bench.down();
    bench.now = 60_999;
    expect(kinds(bench.step({ kind: "tick" }))).toEqual([]);
    bench.now = 61_000;
    const stopped = bench.step({ kind: "tick" });
    expect(stopped[0]).toMatchObject({ kind: "command", command: { kind: "stop", execution: 9 } });
    bench.core(1, frame(9, 1));
    expect(kinds(bench.core(1, finished(9)))).toEqual(["endCore"]);
    const back = rows(bench.step({ kind: "link", manager: "m1", up: true }));
    expect(back[0]?.events.events).toMatchObject([
      { event: { kind: "frame" } },
      { kind: "coreLost", complete: true },
    ]);
  });

  it("does not report load that it cut short as finished, even if a manager is back by then", () => {
    const bench = new Bench();
    bench.orders([open(0), start(0, 9)]);
    bench.down();
    bench.now = 60_000;
    bench.step({ kind: "tick" });
    bench.step({ kind: "link", manager: "m1", up: true });
    const [row] = rows(bench.core(1, finished(9)));
    expect(row?.events.events).toMatchObject([{ kind: "coreLost", core: 0, complete: true }]);
  });

  it("kills load that does not stop in time", () => {
    const bench = new Bench();
    bench.orders([open(0), start(0, 9)]);
    bench.down();
    bench.now = 60_000;
    bench.step({ kind: "tick" });
    bench.now = 61_500;
    expect(bench.step({ kind: "tick" })).toMatchObject([{ kind: "endCore", kill: true }]);
  });

  it("kills it even if a manager is back by then", () => {
    const bench = new Bench();
    bench.orders([open(0), start(0, 9)]);
    bench.down();
    bench.now = 60_000;
    bench.step({ kind: "tick" });
    bench.step({ kind: "link", manager: "m1", up: true });
    bench.now = 61_500;
    const late = bench.step({ kind: "tick" });
    expect(late).toContainEqual({ kind: "endCore", slot: 1, kill: true });
    expect(rows(late)[0]?.events.events).toMatchObject([{ kind: "coreLost", complete: false }]);
  });

  it("stays isolated while its calls fail", () => {
    const bench = new Bench();
    bench.orders([open(0), start(0, 9)]);
    for (let at = 0; at < 60_000; at += 1_000) {
      bench.now = at;
      bench.down();
    }
    bench.now = 60_000;
    expect(kinds(bench.step({ kind: "tick" }))).toContain("command");
  });

  it("counts from the last contact, not from when the connection was given up (T4)", () => {
    const bench = new Bench();
    bench.orders([open(0), start(0, 9)]);
    bench.now = 31_000;
    expect(kinds(bench.down(1_000))).toEqual([]);
    bench.now = 61_000;
    expect(kinds(bench.step({ kind: "tick" }))).toContain("command");
  });

  it("stops its load at once when it was suspended for that long itself", () => {
    const bench = new Bench();
    bench.orders([open(0), start(0, 9)]);
    bench.now = 90_000;
    expect(kinds(bench.down(1_000))).toContain("command");
  });

  it("keeps its load when a manager answers again in time", () => {
    const bench = new Bench();
    bench.orders([open(0), start(0, 9)]);
    bench.down();
    bench.now = 59_000;
    bench.step({ kind: "link", manager: "m2", up: true });
    bench.now = 600_000;
    expect(kinds(bench.step({ kind: "tick" }))).toEqual(["heartbeat"]);
  });
});

describe("a draining worker", () => {
  it("accepts no more cores, reports draining, and is drained when the last core has exited", () => {
    const bench = new Bench();
    bench.orders([open(0)]);
    const [beat] = bench.step({ kind: "drain" });
    expect(beat).toMatchObject({ kind: "heartbeat", heartbeat: { draining: true } });
    expect(rows(bench.orders([open(1)], { first: 1 }))[0]?.events.events).toEqual([
      { kind: "coreLost", core: 1, what: "it takes no more cores", complete: true },
    ]);
    bench.taken(1);
    expect(kinds(bench.orders([{ kind: "release", cores: [0] }], { first: 2 }))).not.toContain(
      "drained",
    );
    expect(kinds(bench.step({ kind: "coreGone", slot: 1, what: null }))).toContain("drained");
  });

  it("reports drained again when it is stopped after a drain", () => {
    const bench = new Bench();
    expect(kinds(bench.step({ kind: "drain" }))).toContain("drained");
    expect(kinds(bench.step({ kind: "tick" }))).not.toContain("drained");
    expect(kinds(bench.step({ kind: "drain" }))).toContain("drained");
  });

  it("that stops waiting ends its load, reports the last metrics, then the loss, and exits", () => {
    const bench = new Bench();
    bench.orders([open(0), start(0, 9)]);
    bench.step({ kind: "drain" });
    const left = bench.step({ kind: "leave" });
    expect(left).toMatchObject([{ kind: "command", command: { kind: "stop", execution: 9 } }]);
    const [figures] = rows(bench.core(1, frame(9, 1)));
    expect(figures?.events.events).toMatchObject([{ event: { kind: "frame" } }]);
    bench.core(1, finished(9));
    expect(kinds(bench.step({ kind: "coreGone", slot: 1, what: null }))).toEqual([]);
    const [lost] = rows(bench.taken(1));
    expect(lost?.events.events).toMatchObject([{ kind: "coreLost", core: 0, complete: true }]);
    expect(kinds(bench.taken(2))).toContain("drained");
  });

  it("that stops waiting kills load that does not stop", () => {
    const bench = new Bench();
    bench.orders([open(0), start(0, 9)]);
    bench.step({ kind: "leave" });
    bench.now = 3_000;
    const late = bench.step({ kind: "tick" });
    expect(late).toContainEqual({ kind: "endCore", slot: 1, kill: true });
    const [lost] = rows(late);
    expect(lost?.events.events).toMatchObject([{ kind: "coreLost", core: 0, complete: false }]);
  });
});
