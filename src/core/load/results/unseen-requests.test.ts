/** The bound of a lost core's requests since its last frame is never below the real number. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Recorder } from "../../../engine/recorder.ts";
import { recorderHost } from "../../../engine/testing/recorder-host.ts";
import { ERROR_KINDS } from "../../../protocols/protocol.ts";
import { manifest } from "../job/testing/manifest.ts";
import {
  type LoadPlan,
  loadAt,
  plannedArrivals,
  type Share,
  type Stage,
  shareOfUsers,
} from "../plan/load.ts";
import { UnseenRequests } from "./unseen-requests.ts";
import { WorkflowAggregate } from "./workflow-aggregate.ts";

const FRAME_MS = 100;
const VITALS = { cpu: 0, residentBytes: 0, activeUsers: 1 };
const TIMES = { startedAt: 0, endedAt: 10, firstByteAt: 5, connectMs: -1, tlsMs: -1 };
const CALL = { errorKind: null, status: 200, ...TIMES, bytesIn: 1, bytesOut: 1 };

/** Calls of a virtual user per second. */
const CALLS_PER_USER = 7;

/** One core that follows its plan, and reports for a while. */
class Loading {
  readonly workflow: WorkflowAggregate;
  readonly #recorder = new Recorder(false, recorderHost());
  readonly #load: LoadPlan;
  readonly #share: Share;
  #factor = 1;
  #due = 0;
  #now = 0;
  made = 0;

  constructor(load: LoadPlan, core = 0, count = 1) {
    this.#load = load;
    const users = Array.from({ length: count }, () => 1_000);
    this.#share = { index: core, count, users };
    this.workflow = new WorkflowAggregate(manifest("shop", { load }), ERROR_KINDS);
    this.workflow.started([...users.keys()], 0);
    this.#recorder.measureFrom(0);
  }

  scale(factor: number): void {
    this.#factor = factor;
    this.workflow.loadChanged(factor, this.#now);
  }

  /** Delays reading its last frame. */
  late(ms: number): void {
    const bytes = this.#frame();
    this.run(ms, false);
    this.#receive(bytes);
  }

  run(ms: number, isHeard: boolean): void {
    for (const until = this.#now + ms; this.#now < until; ) {
      this.#now += FRAME_MS;
      this.#due += this.#required();
      for (; this.made < Math.floor(this.#due); this.made++)
        this.#recorder.call(this.#recorder.stepNumber("pay", "http", {}), CALL, 0, 0, this.#now);
      if (isHeard) this.#tell();
    }
  }

  /** Required load in the last window. */
  #required(): number {
    const load = this.#load;
    if (load.kind === "rate") {
      const before = plannedArrivals(load, this.#now - FRAME_MS);
      return this.#factor * (plannedArrivals(load, this.#now) - before);
    }
    const total = Math.round(this.#factor * loadAt(load, this.#now - FRAME_MS));
    return (CALLS_PER_USER * shareOfUsers(total, this.#share) * FRAME_MS) / 1_000;
  }

  #tell(): void {
    this.#receive(this.#frame());
  }

  #frame(): Uint8Array {
    const moment = { measuredMs: this.#now, warmingUp: false, target: 0, arrivalsWaiting: 0 };
    return this.#recorder.frame(moment, this.#now, "window");
  }

  #receive(bytes: Uint8Array): void {
    const core = this.#share.index;
    this.#recorder.acknowledged(this.workflow.frame(core, bytes, VITALS, this.#now).held);
  }

  get loss(): ReturnType<WorkflowAggregate["shareOf"]> {
    return this.workflow.shareOf(this.#share.index, this.#now);
  }
}

const rate = (stages: readonly Stage[]): LoadPlan => ({ kind: "rate", stages, vusMax: 9 });
const level = fc.integer({ min: 0, max: 200 });
const stages = fc.array(
  fc.record({
    durationMs: fc.integer({ min: 1, max: 40 }).map((at) => at * 100),
    from: level,
    to: level,
  }),
  { minLength: 1, maxLength: 4 },
);

describe("the bound of a lost core's requests since its last frame", () => {
  it("holds for any plan, however it is changed", () => {
    const ms = fc.integer({ min: 0, max: 60 }).map((at) => at * FRAME_MS);
    const factor = fc.constantFrom(null, 0.5, 2, 5);
    fc.assert(
      fc.property(stages, ms, ms, factor, factor, (plan, heardMs, unheardMs, early, late) => {
        const core = new Loading(rate(plan));
        core.run(heardMs / 2, true);
        if (early !== null) core.scale(early);
        core.run(heardMs / 2, true);
        // The core may have received this, and has not reported since.
        if (late !== null) core.scale(late);
        core.run(unheardMs, false);
        const { isUnbounded, requestsCounted, requestsUnseen } = core.loss;
        if (isUnbounded !== true)
          expect(core.made - requestsCounted).toBeLessThanOrEqual(requestsUnseen);
        // A core that reported for a while has a bound.
        else expect(heardMs < 1_300 || requestsCounted === 0).toBe(true);
      }),
    );
  });

  it("holds where users are assigned to several cores, and their number changes", () => {
    const ms = fc.integer({ min: 20, max: 60 }).map((at) => at * FRAME_MS);
    const users = fc.integer({ min: 1, max: 30 });
    const factor = fc.constantFrom(null, 0.5, 2, 5);
    const at = fc.record({ core: fc.nat(4), more: fc.nat(4) });
    fc.assert(
      fc.property(users, users, ms, ms, factor, at, (from, to, heardMs, unheardMs, late, where) => {
        const steps = [
          { durationMs: heardMs, from, to: from },
          { durationMs: 60_000, from: to, to },
        ];
        const count = where.core + where.more + 1;
        const core = new Loading({ kind: "vus", stages: steps }, where.core, count);
        core.run(heardMs, true);
        if (late !== null) core.scale(late);
        core.run(unheardMs, false);
        const { isUnbounded, requestsCounted, requestsUnseen } = core.loss;
        if (isUnbounded !== true)
          expect(core.made - requestsCounted).toBeLessThanOrEqual(requestsUnseen);
        else expect(requestsCounted).toBe(0);
      }),
    );
  });

  it("counts from when its last frame was sent, not from when it was read", () => {
    const core = new Loading(rate([{ durationMs: 60_000, from: 50, to: 50 }]));
    core.run(10_000, true);
    core.late(20_000);
    const { requestsCounted, requestsUnseen } = core.loss;
    const unseen = core.made - requestsCounted;
    expect(unseen).toBeGreaterThan(900);
    expect(requestsUnseen).toBeGreaterThanOrEqual(unseen);
    expect(requestsUnseen - unseen).toBeLessThan(15);
  });

  it("is close to the real number under a steady load", () => {
    const core = new Loading(rate([{ durationMs: 60_000, from: 50, to: 50 }]));
    core.run(10_000, true);
    core.run(3_000, false);
    const { isUnbounded, requestsCounted, requestsUnseen } = core.loss;
    expect(isUnbounded).toBe(false);
    const unseen = core.made - requestsCounted;
    expect(requestsUnseen - unseen).toBeGreaterThanOrEqual(0);
    expect(requestsUnseen - unseen).toBeLessThan(15);
  });

  it("is above zero where only the first frame reported requests", () => {
    const unseen = new UnseenRequests();
    for (const measuredMs of [500, 1_000, 1_500])
      unseen.seen({ measuredMs, requests: 20, load: 1 }, measuredMs);
    expect(unseen.most(2_500, 1, 1)?.most).toBeGreaterThan(14);
  });

  it("ignores loads before the first received frame", () => {
    const unseen = new UnseenRequests();
    for (const [at, measuredMs] of [60_000, 60_500, 61_000, 61_500].entries())
      unseen.seen({ measuredMs, requests: 59_000 + 5 * at, load: 10 }, measuredMs);
    expect(unseen.most(62_500, 1, 10)?.most).toBeLessThan(20);
  });

  it("is unknown for a core that has hardly begun", () => {
    const steady = [{ durationMs: 60_000, from: 50, to: 50 }];
    const silent = new Loading(rate(steady));
    silent.run(2_000, false);
    expect(silent.loss).toMatchObject({ isUnbounded: true, requestsUnseen: 0 });
    const early = new Loading(rate(steady));
    early.run(900, true);
    expect(early.loss.isUnbounded).toBe(true);
  });
});
