/**
 * A synthetic run for tests, the preview and the cost measurement: a closed and an open workflow, ramp, a latency
 * spike, some failures. A function of the given time, so pictures of it can be compared.
 */

import type { LiveRun, LiveWorkflow } from "../../core/load/results/live.ts";
import {
  type Distribution,
  type HistogramSummary,
  type RunSummary,
  type Series,
  type StepSummary,
  SUMMARY_SCHEMA,
  type ThresholdOutcome,
  type WorkflowSummary,
} from "../../core/load/results/model.ts";

export interface SyntheticOptions {
  readonly totalSeconds: number;
  /** Workflows beyond the first two wait. */
  readonly workflows: readonly SyntheticWorkflow[];
  readonly failing: boolean;
}

interface SyntheticWorkflow {
  readonly name: string;
  readonly steps: readonly string[];
  /** Arrivals per second; null makes it closed. */
  readonly target: number | null;
}

export const SHOP: SyntheticOptions = {
  totalSeconds: 30,
  failing: true,
  workflows: [
    { name: "browse", steps: ["home", "search", "product"], target: null },
    { name: "checkout", steps: ["login", "add to cart", "pay", "receipt"], target: 200 },
  ],
};

const WINDOW_MS = 100;
const SPIKE_AT = 0.45;
const SPIKE_LENGTH = 0.08;

/** Smooth noise 0 … 1 without randomness. */
function noise(seed: number, at: number): number {
  return (
    (Math.sin(at * 2.1 + seed) + Math.sin(at * 5.3 + seed * 2.7) + Math.sin(at * 11.7 + seed)) / 6 +
    0.5
  );
}

function rateAt(perSecond: number, seed: number, share: number, at: number): number {
  const ramp = Math.min(1, 0.15 + share * 6);
  return perSecond * ramp * (0.95 + 0.1 * noise(seed, at)) * (spiking(share) ? 0.6 : 1);
}

function spiking(share: number): boolean {
  return share > SPIKE_AT && share < SPIKE_AT + SPIKE_LENGTH;
}

function latencyAt(seed: number, share: number, at: number): readonly [number, number, number] {
  const base = 1.5 + seed * 1.7;
  const slow = spiking(share) ? 18 : 1;
  const p50 = base * (0.9 + 0.2 * noise(seed + 1, at)) * Math.sqrt(slow);
  return [
    p50,
    p50 * (2.2 + noise(seed + 2, at)) * Math.sqrt(slow),
    p50 * (5 + 4 * noise(seed + 3, at)) * slow,
  ];
}

function seriesOf(perSecond: number, seed: number, now: number, total: number): Series {
  const length = Math.floor((now * 1_000) / WINDOW_MS);
  const at = Array.from({ length }, (_, index) => (index * WINDOW_MS) / 1_000);
  const requests = at.map((seconds) =>
    Math.round((rateAt(perSecond, seed, seconds / total, seconds) * WINDOW_MS) / 1_000),
  );
  const latencies = at.map((seconds) => latencyAt(seed, seconds / total, seconds));
  return {
    windowMs: WINDOW_MS,
    atSeconds: at,
    requests,
    failed: requests.map((count, index) =>
      spiking((at[index] ?? 0) / total) ? Math.round(count * 0.12) : 0,
    ),
    p50: latencies.map(([p50]) => p50),
    p95: latencies.map(([, p95]) => p95),
    p99: latencies.map(([, , p99]) => p99),
  };
}

function distribution(count: number, p50: number, p99: number): Distribution {
  const between = (share: number): number => p50 + (p99 - p50) * share;
  return {
    count,
    min: p50 * 0.3,
    mean: p50 * 1.2,
    p50,
    p75: between(0.1),
    p90: between(0.3),
    p95: between(0.5),
    p99,
    p99_9: p99 * 1.8,
    p99_99: p99 * 2.4,
    max: p99 * 3.1,
  };
}

const EMPTY = distribution(0, 0, 0);

/** One hump around p50 and a small second one, as cache misses produce. */
function histogramOf(requests: number, p50: number): HistogramSummary {
  const upToMs = Array.from({ length: 240 }, (_, index) => 0.2 * 1.04 ** index);
  const hump = (at: number, middle: number): number => Math.exp(-8 * Math.log(at / middle) ** 2);
  const count = upToMs.map((at) =>
    Math.round((requests / 40) * (hump(at, p50) + 0.06 * hump(at, p50 * 7))),
  );
  return { upToMs, count };
}

function stepOf(
  name: string,
  series: Series,
  seed: number,
  elapsed: number,
  failing: boolean,
): StepSummary {
  const requests = series.requests.reduce((sum, count) => sum + count, 0);
  const failed = failing ? series.failed.reduce((sum, count) => sum + count, 0) : 0;
  const timeouts = Math.floor(failed * 0.7);
  const errors = {
    timeout: timeouts,
    reset: Math.floor(failed * 0.2),
    status: failed - timeouts - Math.floor(failed * 0.2),
  };
  const p50 = 1.5 + seed * 1.7;
  return {
    name,
    protocol: "http/1.1",
    tags: {},
    requests,
    ok: requests - failed,
    failed,
    interrupted: 0,
    errors: failed === 0 ? {} : errors,
    statuses: {
      "200": requests - failed,
      ...(errors.status > 0 && failing ? { "503": errors.status } : {}),
    },
    ratePerSecond: elapsed > 0 ? requests / elapsed : 0,
    bytesIn: requests * 1_830,
    bytesOut: requests * 214,
    latencyMs: distribution(requests, p50, p50 * 9),
    okLatencyMs: distribution(requests, p50, p50 * 9),
    serviceMs: distribution(requests, p50, p50 * 6),
    firstByteMs: distribution(requests, p50 * 0.8, p50 * 5),
    connectMs: EMPTY,
    tlsMs: EMPTY,
    histogram: histogramOf(requests, p50),
    series,
  };
}

function workflowSummary(
  { name, steps, target }: SyntheticWorkflow,
  index: number,
  elapsed: number,
  { totalSeconds, failing }: SyntheticOptions,
): WorkflowSummary {
  const started = index >= 2 ? 0 : elapsed;
  const summaries = steps.map((step, at) => {
    const seed = index * 3 + at;
    const perSecond = target ?? 900;
    return stepOf(step, seriesOf(perSecond, seed, started, totalSeconds), seed, started, failing);
  });
  const iterations = summaries.at(-1)?.requests ?? 0;
  const done = elapsed >= totalSeconds;
  return {
    name,
    status: index >= 2 ? "waiting" : done ? "completed" : "running",
    error: null,
    load:
      target === null
        ? `64 virtual users for ${totalSeconds}s`
        : `${target}/s for ${totalSeconds}s, at most 500 virtual users`,
    model: target === null ? "closed" : "open",
    corrected: target !== null,
    cores: 1,
    startedAtSeconds: 0,
    elapsedSeconds: started,
    iterations: { completed: iterations, interrupted: done ? 3 : 0 },
    arrivals:
      target === null
        ? null
        : {
            targetPerSecond: target,
            achievedPerSecond: started > 0 ? (summaries[0]?.requests ?? 0) / started : 0,
            started: summaries[0]?.requests ?? 0,
            missed: failing ? 41 : 0,
            sendLagMs: distribution(iterations, 0.08, 2.4),
          },
    checks: [
      { name: `${steps[0] ?? name} is ok`, passed: iterations, failed: 0 },
      ...(failing && target !== null
        ? [{ name: "total is right", passed: iterations, failed: Math.floor(iterations / 500) }]
        : []),
    ],
    metrics:
      target === null
        ? []
        : [
            {
              name: "basket value",
              kind: "trend",
              tags: { currency: "EUR" },
              values: {
                count: iterations,
                mean: 48.23,
                p50: 41.5,
                p95: 120.75,
                p99: 188,
                max: 240,
              },
            },
            {
              name: "coupons",
              kind: "rate",
              tags: {},
              values: { hits: Math.floor(iterations / 7), total: iterations, rate: 1 / 7 },
            },
          ],
    steps: summaries,
  };
}

function thresholdsOf(summaries: readonly WorkflowSummary[], failing: boolean): ThresholdOutcome[] {
  const steps = summaries.flatMap(({ steps }) => steps);
  const requests = steps.reduce((sum, step) => sum + step.requests, 0);
  const failed = steps.reduce((sum, step) => sum + step.failed, 0);
  const share = requests === 0 ? 0 : (failed / requests) * 100;
  const slow = failing ? 61.4 : 38.2;
  const base = { workflow: null, implicit: false, aborted: false };
  return [
    {
      ...base,
      expression: "latency.p99 < 50ms",
      passed: slow < 50,
      actual: slow,
      actualText: `${slow} ms`,
    },
    {
      ...base,
      expression: "errors.rate < 1%",
      passed: share < 1,
      actual: share,
      actualText: `${share.toFixed(2)} %`,
    },
    {
      ...base,
      expression: "requests.rate > 1000/s",
      passed: true,
      actual: 3512,
      actualText: "3,512/s",
      workflow: "browse",
    },
  ];
}

export function syntheticSummary(elapsed: number, options: SyntheticOptions = SHOP): RunSummary {
  const workflows = options.workflows.map((workflow, index) =>
    workflowSummary(workflow, index, elapsed, options),
  );
  const thresholds = thresholdsOf(workflows, options.failing);
  const broken = thresholds.filter(({ passed }) => !passed);
  const core = {
    cpu: 0.62,
    lagMsP50: 0.2,
    lagMsP99: 1.4,
    lagMsMax: 9,
    residentBytes: 94_000_000,
    alive: true,
  };
  return {
    schema: SUMMARY_SCHEMA,
    name: "examples/shop.ts",
    verdict: broken.length > 0 ? "failed" : "passed",
    reasons: broken.map(
      ({ expression, actualText }) => `threshold ${expression} failed: ${actualText}`,
    ),
    startedAt: "2026-01-02T03:04:05.000Z",
    durationSeconds: elapsed,
    thresholds,
    generator: {
      cpu: 0.62,
      lagMsP99: 1.4,
      limited: false,
      reason: null,
      cores: [
        { ...core, core: 0 },
        { ...core, core: 1, cpu: 0.48 },
      ],
    },
    lost: [],
    notes: ["The workflow browse is closed: its latencies do not count waiting for a busy server."],
    workflows,
    environment: {
      hyperscale: "0.1.0",
      node: "20.20.2",
      platform: "linux x64",
      cpuModel: "synthetic",
      cpus: 2,
      cores: 2,
      command: "hyperscale run examples/shop.ts",
    },
  };
}

export function syntheticRun(elapsed: number, options: SyntheticOptions = SHOP): LiveRun {
  const summary = syntheticSummary(elapsed, options);
  const share = Math.min(1, elapsed / options.totalSeconds);
  const workflows = summary.workflows.map((workflow, index): LiveWorkflow => {
    const { target = null } = options.workflows[index] ?? {};
    const steps = workflow.steps.map((step, at) => {
      const [p50, p95, p99] = latencyAt(index * 3 + at, share, elapsed);
      const ratePerSecond =
        workflow.status === "waiting" ? 0 : rateAt(target ?? 900, index * 3 + at, share, elapsed);
      return {
        name: step.name,
        ratePerSecond,
        failedPerSecond: options.failing && spiking(share) ? ratePerSecond * 0.12 : 0,
        p50,
        p95,
        p99,
      };
    });
    return {
      name: workflow.name,
      status: workflow.status,
      doing: null,
      warmingUp: elapsed < 1 && workflow.status === "running",
      progress: workflow.status === "waiting" ? 0 : share,
      activeVus: workflow.status === "waiting" ? 0 : target === null ? 64 : 37,
      targetVus: target === null ? 64 : 500,
      ratePerSecond: steps.reduce((sum, step) => sum + step.ratePerSecond, 0),
      targetPerSecond: target,
      steps,
    };
  });
  return {
    phase: elapsed < 1 ? "warming up" : elapsed >= options.totalSeconds ? "done" : "running",
    elapsedSeconds: elapsed,
    totalSeconds: options.totalSeconds,
    summary,
    workflows,
    ratePerSecond: workflows.reduce((sum, workflow) => sum + workflow.ratePerSecond, 0),
    scale: 1,
    failedPerSecond: workflows.reduce(
      (sum, { steps }) => sum + steps.reduce((all, step) => all + step.failedPerSecond, 0),
      0,
    ),
  };
}
