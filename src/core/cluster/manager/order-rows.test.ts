/** Whether a worker is working for a job, by a clock that the test controls. */

import { describe, expect, it } from "vitest";
import { OrderRows } from "./order-rows.ts";
import { contextOf } from "./testing/context.ts";

const SECOND = 1_000;
const LIFE = { worker: "w1", incarnation: 1 };
const HEARTBEAT = {
  ...({ kind: "heartbeat", incarnation: 1, cores: 4, version: "1.0.0", draining: false } as const),
};

/** Two jobs of one manager with orders for the same worker. */
class Asked {
  readonly context = contextOf();
  readonly #ids: number[] = [];
  readonly one = this.#rows("one");
  readonly other = this.#rows("other");

  constructor() {
    this.context.setTime(0, 0);
    this.context.workers.onHeartbeat({ ...HEARTBEAT, worker: LIFE.worker }, 0);
    for (const rows of [this.one, this.other]) {
      rows.open(LIFE);
      rows.push(LIFE, { kind: "open", cores: [0], entry: "flow.mjs", files: [], overrides: {} });
      rows.send();
    }
  }

  #rows(job: string): OrderRows {
    const nothing = (): void => undefined;
    const listener = { onAnnounced: nothing, onAnnouncedAgain: nothing, onRefused: nothing };
    return new OrderRows(job, 1, this.context, listener);
  }

  /** Advances time while the worker keeps sending heartbeats. */
  at(seconds: number): this {
    this.context.setTime(seconds * SECOND, seconds * SECOND);
    this.context.workers.onHeartbeat({ ...HEARTBEAT, worker: LIFE.worker }, this.context.now);
    return this;
  }

  /** Orders and announcements sent so far. */
  get sent(): number {
    return this.#sent().length;
  }

  #sent(): readonly number[] {
    this.#ids.push(
      ...this.context.takeEffects().flatMap((one) => (one.kind === "worker" ? [one.id] : [])),
    );
    return this.#ids;
  }

  /** Answers the last request without accepting an order. */
  stalled(): void {
    this.accepted(0);
  }

  accepted(next: number): void {
    for (const id of [...this.#sent()]) this.one.onAnswer(id, { kind: "taken", next });
    this.one.send();
  }

  /** Leaves the request for the first job unanswered, so that it is retried. */
  unanswered(): void {
    this.one.onAnswer(1, null);
    this.one.send();
  }
}

type Step = readonly [at: number, what: (asked: Asked) => void];
const event: (asked: Asked) => void = ({ one }) => one.onMessage(LIFE);
const answer: (asked: Asked) => void = ({ one }) =>
  one.onAnswer(1, { kind: "announced", cores: [], events: 0 });

describe("a worker with pending requests of a job", () => {
  const table: readonly (readonly [
    what: string,
    steps: readonly Step[],
    at: number,
    silent: boolean,
  ])[] = [
    ["is waited for", [], 19.999, false],
    ["is silent for 20 s", [], 20, true],
    ["answers", [[5, answer]], 60, false],
    ["reports an event instead", [[19, event]], 38.999, false],
    ["reports an event instead, then is silent", [[19, event]], 39, true],
    ["reports an event after it was declared silent", [[25, event]], 26, false],
    ["answers after it was declared silent", [[25, answer]], 26, false],
    ["leaves a retry unanswered", [[10, (asked) => asked.unanswered()]], 20, true],
    [
      "reports as another incarnation",
      [[19, ({ one }) => one.onMessage({ ...LIFE, incarnation: 2 })]],
      20,
      true,
    ],
    [
      "is silent while another worker reports",
      [[19, ({ one }) => one.onMessage({ ...LIFE, worker: "w2" })]],
      20,
      true,
    ],
    ["reports about another job only", [[19, ({ other }) => other.onMessage(LIFE)]], 20, true],
  ];
  for (const [what, steps, at, silent] of table)
    it(`${what}: ${silent ? "lost to the job" : "at work"} (ACKW-2, HFD-4)`, () => {
      const asked = new Asked();
      for (const [when, step] of steps) step(asked.at(when));
      expect(asked.at(at).one.isSilent(LIFE)).toBe(silent);
    });

  it("is lost to the job when it accepts no order, whatever else it reports", () => {
    const asked = new Asked();
    answer(asked.at(1));
    asked.one.send();
    for (let second = 2; second < 22; second++) {
      asked.at(second);
      asked.one.onMessage(LIFE);
      asked.stalled();
      expect([second, asked.one.isSilent(LIFE)]).toEqual([second, false]);
    }
    expect(asked.at(22).one.isSilent(LIFE)).toBe(true);
    const sent = asked.sent;
    asked.stalled();
    expect(asked.sent).toBe(sent);
    asked.at(23).one.send();
    asked.accepted(1);
    expect(asked.one.isSilent(LIFE)).toBe(false);
  });

  it("is alive and works for other jobs when it is silent about one (AD-30, HFD-1)", () => {
    const asked = new Asked();
    asked.at(5).other.onAnswer(2, { kind: "announced", cores: [], events: 0 });
    asked.at(30);
    expect([asked.one.isSilent(LIFE), asked.other.isSilent(LIFE)]).toEqual([true, false]);
    expect(asked.context.workers.takeFailed(asked.context.now).lost).toEqual([]);
    expect(asked.context.workers.isAlive(LIFE.worker, LIFE.incarnation)).toBe(true);
    expect(asked.context.workers.isOpen(LIFE.worker)).toBe(true);
    // The job does not wait for the worker, and the other job has nothing to wait for.
    expect([asked.one.allAnnounced, asked.other.allAnnounced]).toEqual([true, true]);
  });

  it("is lost to every job as soon as it dies, long before the order timeout (AD-30)", () => {
    const { context, one, other } = new Asked();
    context.setTime(4 * SECOND, 4 * SECOND);
    expect(context.workers.takeFailed(context.now).lost).toMatchObject([LIFE]);
    expect(context.workers.isAlive(LIFE.worker, LIFE.incarnation)).toBe(false);
    expect([one.isSilent(LIFE), other.isSilent(LIFE)]).toEqual([false, false]);
    expect([one.allAnnounced, other.allAnnounced]).toEqual([true, true]);
  });
});
