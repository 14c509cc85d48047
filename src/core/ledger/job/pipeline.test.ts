import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import { Random } from "../../base/random.ts";
import { LEDGER_DEFAULTS } from "./config.ts";
import type { Durability } from "./durability.ts";
import type { EventId } from "./events.ts";
import { CommitPipeline, type PipelineEffect, type PipelineInput } from "./pipeline.ts";
import { JOB } from "./testing/events.ts";

const hlc = { wallMs: 7, logical: 0 };
const X = "x" as EventId;

class Bench {
  readonly pipeline: CommitPipeline;
  now = 0;
  effects: PipelineEffect[] = [];

  constructor(tiers = { regional: true, global: true }, config = LEDGER_DEFAULTS.pipeline) {
    this.pipeline = new CommitPipeline({ tiers, config }, new Random(1));
  }

  step(input: PipelineInput): this {
    this.effects.push(...this.pipeline.step(input, millis(this.now)));
    return this;
  }

  submit(required: Durability, waiter = 1, eventId = X): this {
    return this.step({ kind: "submit", waiter, eventId, jobId: JOB, required });
  }

  local(eventId = X, lsn = 41): this {
    return this.step({ kind: "localDurable", eventId, lsn, hlc });
  }

  regional(eventId = X): this {
    return this.step({ kind: "regionalCommitted", eventId });
  }

  global(eventId = X): this {
    return this.step({ kind: "globalCommitted", eventId });
  }

  advance(ms: number): this {
    const until = this.now + ms;
    for (;;) {
      const deadline = this.pipeline.nextDeadline();
      if (deadline === null || deadline > until) break;
      this.now = Math.max(this.now, deadline);
      this.step({ kind: "tick" });
    }
    this.now = until;
    return this;
  }

  /** The effects since the last look, in short. */
  look(): string[] {
    const seen = this.effects.map(brief);
    this.effects = [];
    return seen;
  }
}

function brief(effect: PipelineEffect): string {
  switch (effect.kind) {
    case "append":
      return "append";
    case "propose":
      return `propose ${effect.tier}`;
    case "markState":
      return `mark ${effect.state} ${effect.lsn}`;
    case "answer": {
      const { durabilityAchieved, error, outcome } = effect.result;
      return `answer ${outcome} ${durabilityAchieved}${error === null ? "" : `: ${error}`}`;
    }
  }
}

describe("a commit", () => {
  it("LOCAL answers after the own copy is durable and goes no further", () => {
    const bench = new Bench().submit("LOCAL");
    expect(bench.look()).toEqual(["append"]);
    expect(bench.local().look()).toEqual(["answer reached LOCAL"]);
    expect(bench.pipeline.sizes).toEqual({ entries: 0, waiters: 0, timers: 0 });
  });

  it("REGIONAL answers after stage 2 and sends stage 3 on in the background (PIPE-2)", () => {
    const bench = new Bench().submit("REGIONAL");
    expect(bench.look()).toEqual(["append", "propose regional"]);
    expect(bench.local().look()).toEqual([]);
    expect(bench.regional().look()).toEqual([
      "propose global",
      "mark REGIONAL 41",
      "answer reached REGIONAL",
    ]);
    expect(bench.global().look()).toEqual(["mark GLOBAL 41"]);
    expect(bench.pipeline.sizes).toEqual({ entries: 0, waiters: 0, timers: 0 });
  });

  it("GLOBAL runs stages 2 and 3 side by side; the region need not answer (PIPE-8)", () => {
    const bench = new Bench().submit("GLOBAL");
    expect(bench.look()).toEqual(["append", "propose regional", "propose global"]);
    expect(bench.local().advance(6_000).look()).not.toContain("answer unknown LOCAL");
    expect(bench.global().look()).toEqual(["mark GLOBAL 41", "answer reached GLOBAL"]);
    expect(bench.regional().look()).toEqual([]);
    expect(bench.pipeline.sizes).toEqual({ entries: 0, waiters: 0, timers: 0 });
  });

  it("REGIONAL on a node without a regional tier is served by the global one", () => {
    const bench = new Bench({ regional: false, global: true }).submit("REGIONAL");
    expect(bench.look()).toEqual(["append", "propose global"]);
    expect(bench.local().global().look()).toEqual(["mark GLOBAL 41", "answer reached GLOBAL"]);
  });

  it("reports no level before the own copy is durable (PIPE-1)", () => {
    const bench = new Bench().submit("GLOBAL").regional().global();
    expect(bench.look()).toEqual(["append", "propose regional", "propose global"]);
    expect(bench.local().look()).toEqual(["mark GLOBAL 41", "answer reached GLOBAL"]);
  });

  it("does not go on asking the region for what the world holds already", () => {
    const bench = new Bench().submit("GLOBAL").global();
    bench.look();
    expect(bench.advance(20_000).look()).toEqual([]);
  });

  it("carries the entry's own lsn and time in its answer (PIPE-6)", () => {
    const bench = new Bench().submit("REGIONAL").regional().local();
    expect(bench.effects.find(({ kind }) => kind === "answer")).toEqual({
      kind: "answer",
      waiter: 1,
      result: {
        outcome: "reached",
        lsn: 41,
        hlc,
        durabilityAchieved: "REGIONAL",
        regionalConfirmed: true,
        globalConfirmed: false,
        error: null,
      },
    });
  });

  it("NONE is answered at once and leaves nothing", () => {
    const bench = new Bench().submit("NONE");
    expect(bench.look()).toEqual(["answer reached NONE"]);
    expect(bench.pipeline.sizes.entries).toBe(0);
  });
});

describe("a timeout is an unknown outcome", () => {
  it("after 5 s without the region: LOCAL; late confirmations advance the entry exactly once", () => {
    const bench = new Bench().submit("REGIONAL").local().advance(4_999);
    expect(bench.look().filter((it) => it.startsWith("answer"))).toEqual([]);
    expect(bench.advance(1).look()).toContain("answer unknown LOCAL: Regional consensus timeout");
    expect(bench.pipeline.sizes.waiters).toBe(0);
    bench.regional().regional().global().global();
    const late = bench.look().filter((it) => !it.startsWith("propose"));
    expect(late).toEqual(["mark REGIONAL 41", "mark GLOBAL 41"]);
    expect(bench.pipeline.sizes).toEqual({ entries: 0, waiters: 0, timers: 0 });
  });

  it("after 30 s without the world: the level reached until then", () => {
    const reached = new Bench().submit("GLOBAL").local().regional().advance(30_000);
    expect(reached.look()).toContain("answer unknown REGIONAL: Global replication timeout");
    const alone = new Bench().submit("GLOBAL").local().advance(30_000);
    expect(alone.look()).toContain("answer unknown LOCAL: Regional consensus timeout");
    const gate = new Bench({ regional: false, global: true }).submit("GLOBAL").local();
    expect(gate.advance(30_000).look()).toContain(
      "answer unknown LOCAL: Global replication timeout",
    );
  });

  it("without the own copy: nothing is claimed", () => {
    const bench = new Bench().submit("REGIONAL").regional().advance(5_000);
    expect(bench.look()).toContain("answer unknown NONE: Local write timeout");
    expect(bench.local().look()).toContain("mark REGIONAL 41");
  });

  it("proposals are repeated with growing waits until confirmed (PIPE-4)", () => {
    const bench = new Bench({ regional: false, global: true });
    expect(bench.submit("GLOBAL").local().look()).toEqual(["append", "propose global"]);
    const times: number[] = [];
    for (let ms = 0; ms < 200_000; ms += 50) {
      bench.advance(50);
      if (bench.look().includes("propose global")) times.push(bench.now);
    }
    const waits = times.map((at, index) => at - (times[index - 1] ?? 0));
    const expected = [1, 2, 4, 8, 16, 30, 30, 30];
    expect(waits.length).toBeGreaterThanOrEqual(6);
    for (const [at, ms] of waits.slice(0, expected.length).entries()) {
      expect(ms).toBeGreaterThanOrEqual((expected[at] ?? 0) * 1_000);
      expect(ms).toBeLessThanOrEqual((expected[at] ?? 0) * 1_200 + 100);
    }
    expect(bench.global().advance(100_000).look()).toEqual(["mark GLOBAL 41"]);
  });
});

describe("repetition, restart and shutdown", () => {
  it("a repeated submission joins the entry: one append, an answer for each (EVT-2)", () => {
    const bench = new Bench().submit("REGIONAL", 1).submit("GLOBAL", 2);
    expect(bench.look()).toEqual(["append", "propose regional", "propose global"]);
    expect(bench.local().regional().look()).toContain("answer reached REGIONAL");
    expect(bench.global().look()).toContain("answer reached GLOBAL");
  });

  it("a LOCAL entry is raised by a later stronger submission", () => {
    const bench = new Bench().submit("LOCAL", 1).submit("GLOBAL", 2);
    expect(bench.look()).toEqual(["append", "propose regional", "propose global"]);
    expect(bench.local().look()).toEqual(["answer reached LOCAL"]);
    expect(bench.pipeline.sizes.entries).toBe(1);
  });

  it("after a restart pending entries go on from where they were, without a new append", () => {
    const base = { kind: "resume", jobId: JOB, lsn: 5, hlc, required: "GLOBAL" } as const;
    const bench = new Bench();
    bench.step({ ...base, eventId: X, reached: "LOCAL" });
    expect(bench.look()).toEqual(["propose regional", "propose global"]);
    bench.step({ ...base, eventId: "y" as EventId, reached: "REGIONAL" });
    expect(bench.look()).toEqual(["propose global"]);
    expect(bench.global("y" as EventId).look()).toEqual(["mark GLOBAL 5"]);
    expect(bench.regional().global().look()).toEqual(["mark REGIONAL 5", "mark GLOBAL 5"]);
    expect(bench.pipeline.sizes).toEqual({ entries: 0, waiters: 0, timers: 0 });
  });

  it("a superseded entry is not proposed again", () => {
    const bench = new Bench().submit("GLOBAL").local();
    bench.step({ kind: "superseded", eventId: X });
    expect(bench.look()).toContain("answer unknown LOCAL: Superseded");
    expect(bench.advance(100_000).look()).toEqual([]);
  });

  it("shutdown answers everybody and leaves nothing (PIPE-7)", () => {
    const bench = new Bench()
      .submit("GLOBAL", 1)
      .submit("REGIONAL", 2, "y" as EventId)
      .local();
    bench.look();
    expect(bench.step({ kind: "shutdown" }).look()).toEqual([
      "answer unknown LOCAL: Shutting down",
      "answer unknown NONE: Shutting down",
    ]);
    expect(bench.pipeline.sizes).toEqual({ entries: 0, waiters: 0, timers: 0 });
  });

  it("levels this node cannot reach, and entries beyond the bound, are refused untouched", () => {
    const manager = new Bench({ regional: true, global: false }).submit("GLOBAL");
    expect(manager.look()).toEqual(["answer refused NONE: This node has no global tier"]);
    expect(manager.submit("REGIONAL").look()).toEqual(["append", "propose regional"]);
    expect(manager.local().regional().look()).toContain("answer reached REGIONAL");
    expect(manager.pipeline.sizes.entries).toBe(0);
    const alone = new Bench({ regional: false, global: false }).submit("REGIONAL");
    expect(alone.look()).toEqual(["answer refused NONE: This node has no replicated tier"]);
    const small = new Bench(undefined, { ...LEDGER_DEFAULTS.pipeline, entriesMax: 1 });
    small.submit("LOCAL").submit("LOCAL", 2, "y" as EventId);
    expect(small.look()).toEqual(["append", "answer refused NONE: Too many commits under way"]);
  });

  it("100,000 commits leave no entry, waiter or timer", () => {
    const bench = new Bench();
    for (let at = 0; at < 100_000; at++) {
      const eventId = `e${at}` as EventId;
      bench.submit("GLOBAL", at, eventId).local(eventId, at).global(eventId);
      bench.effects = [];
    }
    expect(bench.pipeline.sizes).toEqual({ entries: 0, waiters: 0, timers: 0 });
    expect(bench.pipeline.nextDeadline()).toBeNull();
  });
});

describe("any order of confirmations, timeouts and repetitions", () => {
  const kinds = ["submit", "local", "regional", "global", "wait", "long"] as const;
  const kind = fc.constantFrom(...kinds);
  const move = fc.record({
    kind,
    eventId: fc.constantFrom("x", "y").map((id) => id as EventId),
    required: fc.constantFrom<Durability>("LOCAL", "REGIONAL", "GLOBAL"),
  });

  const none = { local: false, regional: false, global: false };

  it("answers each waiter once, with what was really confirmed, and marks in order", () => {
    fc.assert(
      fc.property(fc.array(move, { maxLength: 40 }), (moves) => {
        const bench = new Bench();
        const model = { x: { ...none }, y: { ...none } };
        const eventOf: string[] = [];
        const answered: number[] = [];
        /** The marks of each entry, by its append. */
        const marks: string[] = [];
        const entryOf = new Map<EventId, number>();
        const judge = (): void => {
          for (const effect of bench.effects) {
            if (effect.kind === "append") entryOf.set(effect.eventId, marks.push("") - 1);
            if (effect.kind === "markState") {
              marks[entryOf.get(effect.eventId) as number] += `${effect.state} `;
            }
            if (effect.kind !== "answer") continue;
            answered.push(effect.waiter);
            const seen = model[eventOf[effect.waiter] as "x"];
            const replicated = seen.global ? "GLOBAL" : seen.regional ? "REGIONAL" : "LOCAL";
            expect(effect.result.durabilityAchieved).toBe(seen.local ? replicated : "NONE");
          }
          bench.effects = [];
        };
        for (const { eventId, kind, required } of moves) {
          const isKnown = bench.pipeline.has(eventId);
          if (!isKnown) model[eventId as "x"] = { ...none };
          if (kind === "submit") {
            eventOf.push(eventId);
            bench.submit(required, eventOf.length - 1, eventId);
          } else if (kind === "wait" || kind === "long") {
            bench.advance(kind === "wait" ? 900 : 40_000);
          } else {
            if (isKnown) model[eventId as "x"][kind] = true;
            bench[kind](eventId);
          }
          judge();
        }
        bench.step({ kind: "shutdown" });
        judge();
        expect([...answered].sort((a, b) => a - b)).toEqual([...eventOf.keys()]);
        for (const mark of marks) expect(mark).toMatch(/^(REGIONAL )?(GLOBAL )?$/);
        expect(bench.pipeline.sizes).toEqual({ entries: 0, waiters: 0, timers: 0 });
      }),
      { numRuns: 500 },
    );
  });
});
