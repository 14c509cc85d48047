/** Contract of every back-end, and what its stub server must support. */

import { beforeEach, describe, expect, it } from "vitest";
import type { LiveRun } from "../../core/load/results/live.ts";
import type { ReportOutcome, RunSummary } from "../../core/load/results/model.ts";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { openReporting } from "../registry.ts";
import type { Reporting } from "../reporting.ts";

/** Must never appear outside of a request. */
export const SECRET = "s3cret-0123456789";

/**
 * Reaction to a write. "wait": asks to retry after a second. "busy": a transient failure. "hang": accepts it and never
 * answers.
 */
export type Answer = "take" | "refuse" | "wait" | "busy" | "hang";

/** Back-end on this machine that answers as a test wants, and records what it was sent. */
export interface Stub {
  /** `NAME=TARGET,…`; the port can be replaced by one that nobody listens on. */
  readonly report: (port?: number) => string;
  readonly env: Readonly<Record<string, string>>;
  /** Called with the number of the write, from 1. */
  answer: (write: number) => Answer;
  /** One text per write, answered or not. */
  readonly writes: string[];
  /** Whether the sender of the first write proved that it may write. */
  readonly isProven?: () => boolean;
  /** Text of a rejection, with *** in place of the secret. */
  readonly refusal: string | RegExp;
}

interface ContractOptions {
  readonly name: string;
  readonly stub: () => Stub;
  /** Minimum of points that a run produces: for stores, two files. */
  readonly pointsMin?: number;
}

/** Port of the "discard" service, on which nothing listens. */
const NOBODY = 9;
const run = syntheticRun({ seed: "contract", seconds: 2, rate: 0.2 });
const live: LiveRun = {
  phase: "running",
  scale: 1,
  elapsedSeconds: 1,
  totalSeconds: 2,
  summary: run,
  workflows: [],
  ratePerSecond: 0,
  failedPerSecond: 0,
};

/** One back-end under test. */
class Trial {
  readonly name: string;
  readonly pointsMin: number;
  readonly said: string[] = [];
  readonly #current: () => Stub;
  #stub: Stub | undefined;

  constructor({ name, pointsMin = 50, stub }: ContractOptions) {
    this.name = name;
    this.pointsMin = pointsMin;
    this.#current = stub;
  }

  get stub(): Stub {
    this.#stub ??= this.#current();
    return this.#stub;
  }

  /** Resets the stub. */
  begin(): void {
    this.#stub = this.#current();
    this.#stub.writes.length = 0;
    this.#stub.answer = () => "take";
    this.said.length = 0;
  }

  open(settings = "", port?: number): Promise<Reporting> {
    return openReporting([`${this.stub.report(port)}${settings}`], {
      env: this.stub.env,
      onProblem: (reporter, problem) => this.said.push(`${reporter}: ${problem}`),
    });
  }

  /** A run with one interval and an end. */
  async report(settings = ""): Promise<ReportOutcome> {
    const reporting = await this.open(settings);
    await reporting.start(run);
    reporting.progress(live, 60_000);
    return outcomeOf(await reporting.finish(run));
  }
}

/**
 * Reaction to answers of all kinds; never blocks a run, never loses anything silently. Real time passes where a
 * back-end is given time; no test asserts on it. (REP-1, REP-2, REP-5)
 */
export function describeContract(options: ContractOptions): void {
  const trial = new Trial(options);
  describe(options.name, () => {
    beforeEach(() => trial.begin());
    answersOf(trial);
    lifeOf(trial);
  });
}

function answersOf(trial: Trial): void {
  const { name, pointsMin, said } = trial;
  it("sends everything, and reports it", async () => {
    const outcome = await trial.report();
    expect(outcome).toMatchObject({ reporter: name, dropped: 0, problem: null });
    expect(outcome.sent).toBeGreaterThanOrEqual(pointsMin);
    expect(trial.stub.isProven?.() ?? true).toBe(true);
  });

  it("does not retry a rejected payload, and reports the reason", async () => {
    trial.stub.answer = () => "refuse";
    const outcome = await trial.report();
    const { refusal, writes } = trial.stub;
    expect(outcome.sent).toBe(0);
    expect(outcome.dropped).toBeGreaterThanOrEqual(pointsMin);
    if (typeof refusal === "string") expect(outcome.problem).toBe(refusal);
    else expect(outcome.problem).toMatch(refusal);
    expect(said).toEqual([`${name}: ${outcome.problem}`]);
    expect(JSON.stringify(said)).not.toContain(SECRET);
    expect(new Set(writes).size).toBe(writes.length);
  });

  it("retries with the same payload after the requested pause", async () => {
    trial.stub.answer = (write) => (write === 1 ? "wait" : "take");
    const outcome = await trial.report();
    expect(outcome).toMatchObject({ dropped: 0, problem: expect.stringMatching(/\S/) });
    expect(trial.stub.writes[1]).toEqual(trial.stub.writes[0]);
  });

  it("retries after transient failures", async () => {
    trial.stub.answer = (write) => (write <= 2 ? "busy" : "take");
    const outcome = await trial.report();
    expect(outcome.dropped).toBe(0);
    expect(outcome.sent).toBeGreaterThanOrEqual(pointsMin);
  });
}

function lifeOf(trial: Trial): void {
  const { pointsMin, said } = trial;
  it("abandons an unresponsive server at its deadline", async () => {
    trial.stub.answer = () => "hang";
    const outcome = await trial.report(",deadline=300ms");
    expect(outcome.sent).toBe(0);
    expect(outcome.dropped).toBeGreaterThanOrEqual(pointsMin);
    expect(outcome.problem).toBe("it did not take everything within 0.3 s");
  });

  it("leaves the run unchanged when nobody listens", async () => {
    const reporting = await trial.open(",deadline=300ms", NOBODY);
    await reporting.start(run);
    for (let second = 60; second < 300; second += 60) reporting.progress(live, second * 1_000);
    const { reports, ...rest } = await reporting.finish(run);
    expect(rest).toEqual(run);
    expect(reports?.[0]).toMatchObject({ sent: 0, problem: expect.stringMatching(/\S/) });
    expect(reports?.[0]?.dropped).toBeGreaterThanOrEqual(pointsMin);
    expect(said).toHaveLength(1);
  });

  it("can be closed while sending, and closed again", async () => {
    const reporting = await trial.open();
    await reporting.start(run);
    reporting.progress(live, 60_000);
    const [first, second] = await Promise.all([reporting.finish(run), reporting.finish(run)]);
    expect(second).toBe(first);
    const writes = trial.stub.writes.length;
    await reporting.abandon();
    expect(trial.stub.writes).toHaveLength(writes);
    expect(outcomeOf(first)).toMatchObject({ dropped: 0, problem: null });
  });
}

function outcomeOf({ reports }: RunSummary): ReportOutcome {
  const [outcome] = reports ?? [];
  if (outcome === undefined) throw new Error("there is one outcome");
  return outcome;
}
