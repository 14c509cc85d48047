import { describe, expect, it } from "vitest";
import { Histogram } from "../stats/histogram.ts";
import { MetricRecorder, MetricTotals } from "../stats/metrics.ts";
import { StepTotals } from "../stats/step-stats.ts";
import { WindowStore } from "../stats/window-store.ts";
import { STEP_RULES } from "../stats/windows.ts";
import { metricSource } from "./metric-source.ts";
import { type MetricSource, parseThreshold, type Reading, ThresholdJudge } from "./thresholds.ts";
import type { WorkflowData } from "./workflow-data.ts";

const KINDS = ["reset", "timeout"];

function judgeOf(text: string, workflow: string | null = null, over = {}): ThresholdJudge {
  const result = parseThreshold(text);
  if (!result.ok) throw new Error(result.problem);
  const spec = { expression: text, abortOnFail: false, afterMs: 0, ...over };
  return new ThresholdJudge(result.threshold, spec, workflow);
}

function step(name: string, ok: number, timeouts: number, latencyMs: number, tags = {}) {
  const totals = new StepTotals(KINDS.length, false);
  totals.tally.counts[0] = ok;
  totals.failed[1] = timeouts;
  totals.tally.counts[2] = 10 * ok;
  for (let i = 1; i <= ok + timeouts; i++)
    totals.latency.record((latencyMs * 1_000 * i) / (ok + timeouts));
  return { name, protocol: "http", tags, totals, windows: new WindowStore(STEP_RULES), number: 0 };
}

function data(name: string, over: Partial<WorkflowData> = {}): WorkflowData {
  return {
    name,
    mix: null,
    startedAtSeconds: 0,
    measuredFromSeconds: 0,
    elapsedSeconds: 10,
    steps: [],
    aside: [],
    measures: true,
    checks: [],
    iterations: 0,
    iterationsInside: 0,
    iterationsInterrupted: 0,
    groups: [],
    namesOverflowed: false,
    unanswered: { calls: 0, iterations: 0, iterationsOver: 0, shareMax: null, users: null },
    arrivals: null,
    metrics: new MetricTotals(),
    iterationsMissed: null,
    counters: [],
    ended: true,
    faults: [],
    ...over,
  };
}

function custom(): MetricTotals {
  const totals = new MetricTotals();
  const recorder = new MetricRecorder(totals);
  for (let i = 1; i <= 10; i++) recorder.series("cart", "trend", { shop: "a" }).add(i, 0);
  recorder.series("cart", "trend", { shop: "b" }).add(100, 0);
  recorder.series("orders", "counter").add(50, 0);
  recorder.series("hits", "rate").add(1, 0);
  recorder.series("hits", "rate").add(0, 0);
  recorder.series("depth", "gauge").add(-4, 1);
  recorder.series("depth", "gauge").add(7, 2);
  recorder.fold(1);
  return totals;
}

const lag = new Histogram();
lag.record(12_000);

/** Ten arrivals that never began, after five seconds each. */
const waited = new Histogram();
waited.record(5_000_000, 10);

const source = metricSource(
  [
    data("browse", {
      steps: [step("home", 90, 10, 100, { tier: "gold" }), step("login", 100, 0, 1_000)],
      checks: [
        { name: "is json", passed: 95, failed: 5 },
        { name: "is 200", passed: 100, failed: 0 },
      ],
      iterations: 100,
      iterationsInside: 100,
      arrivals: { started: 990, missed: 10, missedByLosses: 0, lag, waited },
      counters: ["refunds"],
      metrics: custom(),
    }),
    data("buy", {
      measuredFromSeconds: 10,
      steps: [step("pay", 50, 50, 10)],
      iterations: 20,
      iterationsInside: 20,
    }),
  ],
  { cpu: 0.5, lag },
  KINDS,
);

describe("a threshold judged by totals", () => {
  it.each<[string, string | null, boolean, number | null, string]>([
    ["latency{step=home}.max <= 100ms", null, true, 100, "100 ms"],
    ["latency{step=login}.mean < 0.4s", null, false, 0.505, "505 ms"],
    ["latency{tier=gold}.count == 100", null, true, 100, "100"],
    // Arrivals that never began count in the latency of their workflow, in no step's and no count.
    ["browse.latency.max < 2s", null, false, 5, "5.00 s"],
    ["browse.latency.count == 200", null, true, 200, "200"],
    ["browse.latency{ok}.max < 2s", null, true, 1, "1.00 s"],
    ["latency.max < 20ms", "buy", true, 10, "10.0 ms"],
    ["browse.latency.max < 20ms", "buy", false, 5_000, "5.00 s"],
    ["latency{ok}.count == 300", null, true, 300, "300"],
    ["latency{step=home,ok}.max <= 100ms", null, true, 100, "100 ms"],
    ["service{ok}.max <= 100ms", null, false, null, "no data"],
    ["errors.rate < 10%", null, false, 20, "20 %"],
    ["errors.rate < 0.1", "browse", true, 0.05, "0.05"],
    ["errors{kind=timeout}.count < 60", null, false, 60, "60"],
    ["errors{kind=reset}.count == 0", null, true, 0, "0"],
    ["requests.count == 300", null, true, 300, "300"],
    // The workflows ran one after the other: 20 seconds in all.
    ["requests.rate > 14/s", null, true, 15, "15/s"],
    ["requests.rate > 14/s", "buy", false, 10, "10/s"],
    ["bytesIn.count > 2000", null, true, 2_400, "2,400"],
    ["checks.rate >= 99%", null, false, 97.5, "97.5 %"],
    ['checks{check="is json"}.rate > 94%', null, true, 95, "95 %"],
    ["iterations.rate > 5/s", null, true, 6, "6/s"],
    ["arrivals.missed == 0", null, false, 10, "10"],
    ["arrivals.missed.rate <= 1%", null, true, 1, "1 %"],
    ["refunds.count == 0", null, true, 0, "0"],
    ["refunds{shop=a}.count == 0", "browse", true, 0, "0"],
    ["arrivals.rate >= 99/s", "browse", true, 99, "99/s"],
    ["arrivals.lag.max < 20ms", null, true, 12, "12.0 ms"],
    ["generator.cpu < 40%", "buy", false, 50, "50 %"],
    ["generator.lag.p99 < 50ms", null, true, 12, "12.0 ms"],
    ["cart.max <= 100", null, true, 100, "100"],
    ["cart{shop=a}.mean < 5", null, false, 5.5, "5.50"],
    ["orders.count > 5", null, true, 50, "50"],
    ["orders.rate > 5/s", "browse", false, 5, "5/s"],
    ["hits.rate > 0.5", null, false, 0.5, "0.5"],
    ["depth.last == 7", null, true, 7, "7"],
    ["depth.min >= 0", null, false, -4, "-4"],
    // Missing data does not pass.
    ["latency{step=lgin}.p99 < 1s", null, false, null, "no data"],
    ["nowhere.latency.p99 < 1s", null, false, null, "no data"],
    ["connect.p99 < 1s", null, false, null, "no data"],
    ["unheard.count > 0", null, false, null, "no data"],
    ["arrivals.missed == 0", "buy", false, null, "no data"],
    ["orders.p99 > 0", null, false, null, "no p99 of this metric"],
  ])("%s in %s", (text, workflow, passed, actual, actualText) => {
    expect(judgeOf(text, workflow).judge(source)).toEqual({ passed, actual, actualText });
  });
});

describe("a threshold over a stretch of time", () => {
  /** One latency per 100 ms; the test controls the clock and the values. */
  class Feed implements MetricSource {
    readonly histogram = new Histogram();
    count = 0;
    nowMs = 0;
    measuredMs(): number {
      return this.nowMs;
    }
    read({ metric }: { metric: string }): Reading {
      if (metric === "latency") return { kind: "distribution", histogram: this.histogram };
      return { kind: "count", count: this.count, inside: this.count, seconds: 1 };
    }
    run(judge: ThresholdJudge, fromMs: number, toMs: number, latencyMs: number): boolean {
      let abort = false;
      for (let ms = fromMs; ms < toMs; ms += 100) {
        this.histogram.record(latencyMs * 1_000);
        this.count++;
        this.nowMs = ms;
        abort ||= judge.observe(this);
      }
      return abort;
    }
  }

  it("remembers the worst stretch, also when the whole looks good", () => {
    const [feed, judge] = [new Feed(), judgeOf("latency.p90 over 1s < 50ms")];
    feed.run(judge, 0, 20_000, 10);
    feed.run(judge, 20_000, 22_000, 300);
    feed.run(judge, 22_000, 100_000, 10);
    expect(judge.judge(feed)).toMatchObject({ passed: false });
    expect(judge.judge(feed).actual).toBeCloseTo(300, 0);
    expect(judgeOf("latency.p90 < 50ms").judge(feed)).toMatchObject({ passed: true });
  });

  it("counts rates inside the stretch only", () => {
    const [feed, judge] = [new Feed(), judgeOf("requests.rate over 2s > 8/s")];
    feed.run(judge, 0, 10_000, 1);
    expect(judge.judge(feed)).toMatchObject({ passed: true });
    expect(judge.judge(feed).actual).toBeCloseTo(10, 0);
    // Three seconds of silence, observed.
    for (feed.nowMs = 10_000; feed.nowMs < 13_000; feed.nowMs += 100) judge.observe(feed);
    expect(judge.judge(feed)).toMatchObject({ passed: false });
  });

  it("begins with the first instant, though it is first checked later", () => {
    const [feed, judge] = [new Feed(), judgeOf("latency.max over 1s < 50ms")];
    feed.histogram.record(300_000);
    feed.run(judge, 600, 5_000, 10);
    expect(judge.judge(feed)).toMatchObject({ passed: false, actual: 300 });
  });

  it("ends with the last instant, though it was not checked since", () => {
    const [feed, judge] = [new Feed(), judgeOf("requests.rate over 1s > 5/s")];
    feed.run(judge, 100, 3_100, 1);
    feed.nowMs = 4_000;
    expect(judge.judge(feed)).toMatchObject({ passed: false });
  });

  it("has no value while nothing is measured: warm-up, before its workflow, after its end", () => {
    const spec = { abortOnFail: true };
    const [feed, judge] = [new Feed(), judgeOf("requests.rate over 1s > 5/s", null, spec)];
    for (let i = 0; i < 50; i++) expect(judge.observe(feed)).toBe(false);
    expect(feed.run(judge, 100, 2_100, 1)).toBe(false);
    for (let i = 0; i < 50; i++) expect(judge.observe(feed)).toBe(false);
    expect(judge.judge(feed)).toMatchObject({ passed: true });
  });

  it("judges a run shorter than the stretch as a whole", () => {
    const [feed, judge] = [new Feed(), judgeOf("latency.max over 1m < 50ms")];
    feed.run(judge, 0, 5_000, 60);
    expect(judge.judge(feed)).toMatchObject({ passed: false, actual: 60 });
  });

  it("requests the end of the run only after the given time", () => {
    const spec = { abortOnFail: true, afterMs: 5_000 };
    const early = judgeOf("latency.p90 over 1s < 50ms", null, spec);
    expect(new Feed().run(early, 0, 4_900, 300)).toBe(false);
    const late = judgeOf("latency.p90 over 1s < 50ms", null, spec);
    expect(new Feed().run(late, 0, 6_000, 300)).toBe(true);
    expect(late.aborted).toBe(true);
    const totals = judgeOf("latency.max < 50ms", null, { abortOnFail: true });
    expect(new Feed().run(totals, 0, 200, 300)).toBe(true);
    const never = judgeOf("latency.max < 50ms");
    expect(new Feed().run(never, 0, 200, 300)).toBe(false);
  });

  it("starts over when the measurement does", () => {
    const [feed, judge] = [new Feed(), judgeOf("latency.max over 1s < 50ms")];
    feed.run(judge, 0, 500, 300);
    feed.histogram.clear();
    feed.run(judge, 500, 5_000, 10);
    expect(judge.judge(feed)).toMatchObject({ passed: true });
  });
});

describe("an abort", () => {
  it.each<[string, boolean]>([
    // Only grows, so it may still be reached.
    ["requests.count > 1000", false],
    ["requests.count >= 1000", false],
    ["orders.count == 60", false],
    ["orders.count != 50", false],
    // Too many stay too many.
    ["requests.count < 10", true],
    ["orders.count == 40", true],
    ["errors.count <= 5", true],
    ["arrivals.missed < 5", true],
    // Others may change, and their author asked for the end.
    ["requests.rate > 1000/s", true],
    ["latency.p50 > 10s", true],
  ])("because of %s: %s", (text, aborts) => {
    expect(judgeOf(text, "browse", { abortOnFail: true }).observe(source)).toBe(aborts);
  });
});
