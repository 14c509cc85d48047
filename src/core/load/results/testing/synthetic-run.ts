/**
 * Realistic summaries without a run: latencies are drawn request by request from log-normal laws with
 * stalls, and counted with the real histogram, so percentiles, histograms and series agree with each
 * other as those of a run do. Two workflows, seven steps, an open and a closed model.
 */

import { Random } from "../../../base/random.ts";
import { Histogram } from "../../stats/histogram.ts";
import { formatMs, formatPercent } from "../format.ts";
import {
  type RunSummary,
  type StepSummary,
  SUMMARY_SCHEMA,
  type ThresholdOutcome,
  type TimelineEvent,
  type Totals,
  type WorkflowSummary,
} from "../model.ts";
import { distribution, histogramSummary } from "../summarise.ts";
import { coreSeries, latencyWindows, loadSeries, windowMsOf } from "./synthetic-series.ts";

export interface SyntheticOptions {
  readonly seed?: string | number;
  readonly seconds?: number;
  /** Multiplies every latency; 1.2 is a target 20 % slower. */
  readonly slowdown?: number;
  /** Multiplies the probability of failure. */
  readonly errors?: number;
  /** Multiplies the rate. */
  readonly rate?: number;
  /** Standard deviation of the slow drift that makes neighbouring windows alike; 0 for none. */
  readonly drift?: number;
  /** How much of the drift a window inherits from the one before, 0 … 1. */
  readonly memory?: number;
  /** Everything goes well: thresholds hold, no stall, no loss. */
  readonly healthy?: boolean;
  /** Repeats the steps of each workflow this many times, under names of their own. */
  readonly copies?: number;
}

interface StepPlan {
  readonly name: string;
  readonly protocol: string;
  readonly perSecond: number;
  readonly medianMs: number;
  /** Spread of the logarithm: 0.3 is narrow, 0.8 has a long tail. */
  readonly spread: number;
  readonly failures: Readonly<Record<string, number>>;
  readonly status: string;
  readonly bytesIn: number;
}

const BROWSE: readonly StepPlan[] = [
  plan("home page", 220, 8, 0.35, { timeout: 0.0002 }, 14_200),
  plan("search", 210, 34, 0.55, { timeout: 0.002, status: 0.004 }, 6_800),
  plan("product page", 205, 12, 0.4, {}, 22_400),
  plan("recommendations", 200, 55, 0.75, { timeout: 0.01, reset: 0.002 }, 3_100),
];
const CHECKOUT: readonly StepPlan[] = [
  plan("sign in", 60, 95, 0.25, { status: 0.001 }, 900),
  plan("add to cart", 60, 18, 0.45, { reset: 0.0008 }, 640),
  plan("pay", 60, 140, 0.5, { status: 0.012, timeout: 0.003, tls: 0.0004 }, 1_200),
];

const SETTLED: Required<SyntheticOptions> = {
  seed: "synthetic",
  seconds: 60,
  slowdown: 1,
  errors: 1,
  rate: 1,
  drift: 0.06,
  memory: 0.7,
  healthy: false,
  copies: 1,
};

/** When the load falls to a half, as in `loadSeries`. */
export function lostAtSeconds(seconds: number): number {
  return 5 + Math.round(seconds * 0.9);
}

function lostCore(seconds: number): TimelineEvent {
  return {
    atSeconds: lostAtSeconds(seconds),
    kind: "core lost",
    workflow: "checkout",
    text: "executor core 1 ended with SIGKILL",
  };
}

export function syntheticRun(options: SyntheticOptions = {}): RunSummary {
  const settled = { ...SETTLED, ...options };
  const random = new Random(settled.seed);
  const { healthy, seconds } = settled;
  const workflows = [browse(settled, random), checkout(settled, random)];
  const demanded = thresholds(healthy, workflows);
  return {
    schema: SUMMARY_SCHEMA,
    runId: "0d1f0a52-6c1e-4b5e-9f43-2a7d7c1c9e10",
    name: "examples/shop.ts",
    title: "spring sale",
    tags: { branch: "main" },
    verdict: healthy ? "passed" : "failed",
    reasons: demanded
      .filter(({ passed }) => !passed)
      .map(({ expression, actualText }) => `Threshold ${expression} failed: ${actualText}.`),
    startedAt: "2026-03-14T09:26:53.589Z",
    durationSeconds: seconds + 5.2,
    thresholds: demanded,
    generator: {
      cpu: healthy ? 0.41 : 0.97,
      lagMsP99: healthy ? 1.4 : 38.5,
      limited: !healthy,
      reason: healthy
        ? null
        : "Executor core 1 used 97 % of a CPU and its event loop ran 38.5 ms late (p99). Latencies " +
          "include that wait. Use more cores (--cores) or a lower rate.",
      cores: [0, 1].map((core) => ({
        core,
        cpu: healthy ? 0.41 - core * 0.03 : 0.88 + core * 0.09,
        lagMsP50: 0.2 + core * 0.3,
        lagMsP99: healthy ? 1.4 : 12.1 + core * 26.4,
        lagMsMax: healthy ? 6.1 : 41 + core * 77,
        residentBytes: 148_000_000 + core * 9_000_000,
        alive: healthy || core === 0,
        series: coreSeries(settled, core),
      })),
    },
    lost: healthy
      ? []
      : [
          {
            core: 1,
            atSeconds: lostAtSeconds(seconds),
            what: "Executor core 1 ended with SIGKILL.",
            cost: "32 virtual users and half of the rate of checkout; results of its last 100 ms.",
          },
        ],
    notes: [
      "browse is a closed model: it sends less when the target slows down, and its latencies do " +
        "not count the requests that were never sent. Use a rate to measure from the intended start.",
    ],
    workflows,
    totals: syntheticTotals(workflows, seconds),
    events: healthy ? [] : [lostCore(seconds)],
    environment: {
      hyperscale: "0.1.0",
      node: "v20.20.2",
      platform: "linux x64",
      cpuModel: "AMD EPYC 7B13",
      cpus: 2,
      cores: 2,
      command: "hyperscale run examples/shop.ts --cores 2",
    },
  };
}

function plan(
  name: string,
  perSecond: number,
  medianMs: number,
  ...rest: [spread: number, failures: Readonly<Record<string, number>>, bytesIn: number]
): StepPlan {
  const [spread, failures, bytesIn] = rest;
  return { name, protocol: "http", perSecond, medianMs, spread, failures, status: "200", bytesIn };
}

function copied(steps: readonly StepPlan[], { copies }: Required<SyntheticOptions>): StepPlan[] {
  return Array.from({ length: copies }, (_, copy) =>
    steps.map((step) => (copy === 0 ? step : { ...step, name: `${step.name} ${copy + 1}` })),
  ).flat();
}

function browse(options: Required<SyntheticOptions>, random: Random): WorkflowSummary {
  const steps = copied(BROWSE, options).map((step) =>
    syntheticStep(step, options, random.fork(step.name), false),
  );
  const searches = steps[1]?.ok ?? 0;
  return {
    name: "browse",
    status: "completed",
    error: null,
    load: `64 virtual users for ${options.seconds}s`,
    model: "closed",
    corrected: false,
    cores: 1,
    startedAtSeconds: 5,
    elapsedSeconds: options.seconds,
    iterations: { completed: steps[3]?.requests ?? 0, interrupted: 12 },
    arrivals: null,
    checks: [
      { name: "home page is complete", passed: steps[0]?.requests ?? 0, failed: 0 },
      { name: "search finds something", passed: searches, failed: options.healthy ? 0 : 118 },
    ],
    loadSeries: loadSeries(options, 64, false),
    metrics: [
      {
        name: "results_per_search",
        kind: "trend",
        tags: { index: "products" },
        values: { count: searches, min: 0, mean: 17.4, p50: 16, p95: 39, p99: 48, max: 50 },
      },
      {
        name: "cache_hits",
        kind: "rate",
        tags: {},
        values: { hits: 9_120, total: 12_400, rate: 0.735 },
      },
    ],
    steps,
  };
}

function checkout(options: Required<SyntheticOptions>, random: Random): WorkflowSummary {
  const steps = copied(CHECKOUT, options).map((step) =>
    syntheticStep(step, options, random.fork(step.name), true),
  );
  const lag = new Histogram();
  const lags = random.fork("lag");
  for (let i = 0; i < 4_000; i++) lag.record(Math.round(lags.between(20, 900)));
  if (!options.healthy)
    for (let i = 0; i < 300; i++) lag.record(Math.round(lags.between(1e4, 2e6)));
  const pay = steps[2];
  const started = steps[0]?.requests ?? 0;
  return {
    name: "checkout",
    status: "completed",
    error: null,
    load: `60/s for ${options.seconds}s, at most 400 virtual users`,
    model: "open",
    corrected: true,
    cores: 1,
    startedAtSeconds: 5,
    elapsedSeconds: options.seconds,
    iterations: { completed: pay?.requests ?? 0, interrupted: 3 },
    arrivals: {
      targetPerSecond: 60,
      achievedPerSecond: started / options.seconds,
      started,
      missed: options.healthy ? 0 : 214,
      sendLagMs: distribution(lag),
    },
    checks: [
      {
        name: "order is confirmed",
        passed: pay?.ok ?? 0,
        failed: options.healthy ? 0 : (pay?.failed ?? 0),
      },
    ],
    loadSeries: loadSeries(options, 60, true),
    metrics: [
      {
        name: "orders",
        kind: "counter",
        tags: { currency: "EUR" },
        values: { count: pay?.ok ?? 0 },
      },
      { name: "open_carts", kind: "gauge", tags: {}, values: { last: 41, min: 0, max: 97 } },
    ],
    steps,
  };
}

function thresholds(
  healthy: boolean,
  workflows: readonly WorkflowSummary[],
): readonly ThresholdOutcome[] {
  const outcome = (
    expression: string,
    actual: number,
    actualText: string,
    rest: Partial<ThresholdOutcome> = {},
  ): ThresholdOutcome => {
    const base = { workflow: null, implicit: false, aborted: false, passed: true };
    return { expression, actual, actualText, ...base, ...rest };
  };
  const { failed: failures, requests } = syntheticTotals(workflows, 1);
  const failed = requests === 0 ? 0 : failures / requests;
  const search = workflows[0]?.steps[1]?.latencyMs.p99 ?? 0;
  const pay = workflows[1]?.steps[2]?.latencyMs.p99 ?? 0;
  return [
    outcome("errors.rate < 5%", failed * 100, formatPercent(failed), { passed: failed < 0.05 }),
    outcome("latency{step=search}.p99 < 400ms", search, formatMs(search), { workflow: "browse" }),
    outcome(`latency{step=pay}.p99 < ${healthy ? 600 : 200}ms`, pay, formatMs(pay), {
      workflow: "checkout",
      passed: healthy,
    }),
    outcome("latency.p95 over 10s < 800ms", 412, "412 ms", { workflow: "checkout" }),
    outcome("checks.rate > 99%", healthy ? 100 : 98.42, formatPercent(healthy ? 1 : 0.9842), {
      workflow: "checkout",
      implicit: true,
      passed: healthy,
    }),
  ];
}

function syntheticTotals(workflows: readonly WorkflowSummary[], seconds: number): Totals {
  const steps = workflows.flatMap((workflow) => workflow.steps);
  const sum = (value: (step: StepSummary) => number): number =>
    steps.reduce((all, step) => all + value(step), 0);
  const latency = new Histogram();
  for (const histogram of steps.flatMap((step) => step.windows?.histograms ?? []))
    for (const [at, ms] of histogram.upToMs.entries())
      latency.record(ms * 1_000, histogram.count[at]);
  const latencyMs = distribution(latency);
  return {
    requests: sum((step) => step.requests),
    ok: sum((step) => step.ok),
    failed: sum((step) => step.failed),
    sent: sum((step) => step.sent ?? 0),
    bytesIn: sum((step) => step.bytesIn),
    bytesOut: sum((step) => step.bytesOut),
    ratePerSecond: sum((step) => step.requests) / seconds,
    latencyMs,
    okLatencyMs: latencyMs,
  };
}

interface Tally {
  readonly latency: Histogram;
  readonly failures: Histogram;
  readonly errors: Record<string, number>;
  readonly statuses: Record<string, number>;
  requests: number;
  failed: number;
}

function syntheticStep(
  step: StepPlan,
  options: Required<SyntheticOptions>,
  random: Random,
  open: boolean,
): StepSummary {
  const total = newTally();
  const windows: Tally[] = [];
  const windowMs = windowMsOf(options.seconds);
  const count = Math.round((options.seconds * 1_000) / windowMs);
  let drift = 0;
  for (let i = 0; i < count; i++) {
    const { memory } = options;
    drift = memory * drift + options.drift * Math.sqrt(1 - memory ** 2) * gauss(random);
    windows.push(fillWindow(step, options, { random, drift, progress: i / count, open }, total));
  }
  const { latency } = total;
  const service = open ? scaled(latency, 0.97) : latency;
  const connections = scaled(latency, 0.08, 64);
  return {
    name: step.name,
    protocol: step.protocol,
    tags: {},
    requests: total.requests,
    ok: total.requests - total.failed,
    failed: total.failed,
    interrupted: 3,
    errors: total.errors,
    statuses: total.statuses,
    ratePerSecond: total.requests / options.seconds,
    bytesIn: total.requests * step.bytesIn,
    bytesOut: total.requests * 240,
    latencyMs: distribution(latency),
    okLatencyMs: distribution(latency),
    serviceMs: distribution(service),
    firstByteMs: distribution(scaled(latency, 0.9)),
    connectMs: distribution(connections),
    tlsMs: distribution(new Histogram()),
    histogram: histogramSummary(latency),
    series: {
      windowMs,
      atSeconds: windows.map((_, i) => 5 + (i * windowMs) / 1_000),
      requests: windows.map(({ requests }) => requests),
      failed: windows.map(({ failed }) => failed),
      p50: windows.map((window) => quantileMs(window, 0.5)),
      p95: windows.map((window) => quantileMs(window, 0.95)),
      p99: windows.map((window) => quantileMs(window, 0.99)),
      errors: Object.fromEntries(
        Object.keys(total.errors).map((kind) => [
          kind,
          windows.map(({ errors }) => errors[kind] ?? 0),
        ]),
      ),
    },
    windows: latencyWindows(windows, windowMs),
    sent: total.requests + 3,
    samples: Object.keys(total.errors).map((kind, at) => ({
      atSeconds: 5.5 + at * 7.3,
      kind,
      status: kind === "status" ? 503 : 0,
      call: `GET http://shop.test/${step.name.replaceAll(" ", "-")}`,
      text: kind === "status" ? '{"error":"try again later"}' : `${kind} of the connection`,
    })),
  };
}

interface Moment {
  readonly random: Random;
  readonly drift: number;
  /** 0 … 1 of the run. */
  readonly progress: number;
  readonly open: boolean;
}

function fillWindow(
  step: StepPlan,
  options: Required<SyntheticOptions>,
  { random, drift, progress, open }: Moment,
  total: Tally,
): Tally {
  const window = newTally();
  // Half-way the target stalls: a closed model sends less, an open one queues.
  const stalled = !options.healthy && progress > 0.5 && progress < 0.57;
  const mean = (step.perSecond * options.rate * windowMsOf(options.seconds)) / 1_000;
  const expected = stalled && !open ? mean * 0.12 : mean * Math.exp(-drift * 0.5);
  const requests = Math.max(0, Math.round(expected + Math.sqrt(expected) * gauss(random) * 0.6));
  for (let i = 0; i < requests; i++) {
    const base = step.medianMs * options.slowdown * Math.exp(drift + step.spread * gauss(random));
    const slow = stalled ? base * random.between(4, 14) : base;
    const us = Math.round(slow * 1_000);
    const kind = failureOf(step, options.errors * (stalled ? 6 : 1), random);
    for (const tally of [window, total]) record(tally, us, kind, step.status);
  }
  return window;
}

function record(tally: Tally, us: number, kind: string | null, status: string): void {
  tally.requests++;
  tally.latency.record(us);
  if (kind !== null) {
    tally.failed++;
    tally.failures.record(us);
    tally.errors[kind] = (tally.errors[kind] ?? 0) + 1;
  }
  const answered = kind === null ? status : kind === "status" ? "503" : null;
  if (answered !== null) tally.statuses[answered] = (tally.statuses[answered] ?? 0) + 1;
}

function failureOf(step: StepPlan, factor: number, random: Random): string | null {
  let draw = random.float();
  for (const [kind, probability] of Object.entries(step.failures)) {
    draw -= probability * factor;
    if (draw < 0) return kind;
  }
  return null;
}

function newTally(): Tally {
  const [latency, failures] = [new Histogram(), new Histogram()];
  return { latency, failures, errors: {}, statuses: {}, requests: 0, failed: 0 };
}

/** Box-Muller. */
function gauss(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.float())) * Math.cos(2 * Math.PI * random.float());
}

function scaled(
  histogram: Histogram,
  factor: number,
  countMax = Number.POSITIVE_INFINITY,
): Histogram {
  const result = new Histogram();
  for (let i = 1; i <= 200; i++) {
    const times = Math.min(histogram.count, countMax) / 200;
    result.record(Math.round(histogram.quantile(i / 200) * factor), Math.max(1, Math.floor(times)));
  }
  return result;
}

function quantileMs({ latency }: Tally, fraction: number): number | null {
  return latency.count === 0 ? null : Math.round(latency.quantile(fraction)) / 1_000;
}
