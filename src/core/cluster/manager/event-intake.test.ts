import { expect, it } from "vitest";
import type { Events, WorkerEvent } from "../messages.ts";
import { EventIntake } from "./event-intake.ts";
import { contextOf } from "./testing/context.ts";

type CoreLost = Extract<WorkerEvent, { kind: "coreLost" }>;
const LOST: CoreLost = { kind: "coreLost", core: 0, what: "gone", complete: true };

/** A leader receiving events from one worker; `waits`: entries that must be committed before an event is confirmed. */
class Bench {
  readonly context = contextOf();
  readonly intake = new EventIntake(this.context);
  readonly taken: number[] = [];
  #ids = 0;

  /** Returns the answers sent to the worker at once. */
  take(first: number, cores: readonly number[], waits: readonly string[] = []): unknown[] {
    const events = cores.map((core): CoreLost => ({ ...LOST, core }));
    const row: Events = {
      ...{ kind: "events", worker: "w0", incarnation: 1, job: "job", view: 1, first, events },
    };
    this.intake.take(++this.#ids, row, (event) => {
      if (event.kind === "coreLost") this.taken.push(event.core);
      return waits;
    });
    return this.answers();
  }

  answers(): unknown[] {
    return this.context
      .takeEffects()
      .flatMap((effect) => (effect.kind === "answer" ? [effect.answer] : []));
  }
}

it("accepts each event once and in order, however often it arrives", () => {
  const bench = new Bench();
  expect(bench.take(0, [0, 1])).toEqual([{ kind: "taken", next: 2 }]);
  expect(bench.take(0, [0, 1, 2])).toEqual([{ kind: "taken", next: 3 }]);
  // Event 3 is missing.
  expect(bench.take(4, [4])).toEqual([{ kind: "taken", next: 3 }]);
  expect(bench.taken).toEqual([0, 1, 2]);
});

it("confirms an event once its entries are in the log, and accepts it only once", () => {
  const bench = new Bench();
  expect(bench.take(0, [0], ["entry"])).toEqual([]);
  // The worker retries: earlier events are answered as far as they are committed.
  expect(bench.take(0, [0, 1])).toEqual([{ kind: "taken", next: 0 }]);
  bench.intake.settled("entry");
  expect(bench.answers()).toEqual([{ kind: "taken", next: 2 }]);
  expect(bench.taken).toEqual([0, 1]);
});

it("returns the retained metrics with the answer, repeats them on retries, and reports them once", () => {
  const bench = new Bench();
  const held = { execution: 1, part: null, frame: 4 };
  const life = { worker: "w0", incarnation: 1 };
  const figures = { kind: "figures", execution: 1, part: null, bytes: new Uint8Array(0) } as const;
  const tell = (first: number): unknown[] => {
    const row = { kind: "events", ...life, job: "job", view: 1, first, wantsHeld: true } as const;
    bench.intake.take(first, { ...row, events: [{ ...figures, cores: [] }] }, () => {
      bench.intake.hold(life, held);
      return [];
    });
    return bench.answers();
  };
  expect(tell(0)).toEqual([{ kind: "taken", next: 1, held: [held] }]);
  // The answer was lost: a repeated event is not processed again and gets the same answer.
  expect(tell(0)).toEqual([{ kind: "taken", next: 1, held: [held] }]);
  expect(bench.take(1, [7])).toEqual([{ kind: "taken", next: 2 }]);
});
