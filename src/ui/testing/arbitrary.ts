/** Any run at all, within the limits of the model: empty lists, extremes, long and wide names. */

import fc from "fast-check";
import type { LiveRun, LiveWorkflow, RunPhase } from "../../core/load/results/live.ts";
import {
  type CheckSummary,
  type CoreHealth,
  type Distribution,
  type HistogramSummary,
  type MetricSummary,
  type RunSummary,
  type Series,
  type StepSummary,
  SUMMARY_SCHEMA,
  type ThresholdOutcome,
  type WorkflowStatus,
  type WorkflowSummary,
} from "../../core/load/results/model.ts";

const amount = fc.oneof(
  fc.constantFrom(0, 1, 0.0001, 999.5, 1e9, Number.MAX_SAFE_INTEGER, Number.MAX_VALUE),
  fc.double({ min: 0, max: 1e6, noNaN: true }),
);
const count = fc.oneof(fc.nat(), fc.constantFrom(0, Number.MAX_SAFE_INTEGER));

/** Names as users write them, and as nobody should: escapes, line breaks, wide and combining characters. */
export const name: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    "",
    "login",
    "注文を確認する",
    "emoji 🚀🚀",
    "e\u0301",
    "\x1b[31mred\x1b[0m",
    "a\nb\tc",
    "x".repeat(300),
  ),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.string({ maxLength: 20 }),
);

const status = fc.constantFrom<WorkflowStatus>(
  "waiting",
  "running",
  "completed",
  "failed",
  "interrupted",
  "not run",
);
const phase = fc.constantFrom<RunPhase>(
  "starting",
  "warming up",
  "running",
  "paused",
  "stopping",
  "done",
);
const counts = fc.dictionary(name, count, { maxKeys: 6 });
const tags = fc.dictionary(fc.string({ maxLength: 5 }), name, { maxKeys: 2 });

const distribution: fc.Arbitrary<Distribution> = fc.record({
  count,
  min: amount,
  mean: amount,
  p50: amount,
  p75: amount,
  p90: amount,
  p95: amount,
  p99: amount,
  p99_9: amount,
  p99_99: amount,
  max: amount,
});

const series: fc.Arbitrary<Series> = fc
  .record({
    windowMs: fc.constantFrom(100, 200, 1_600, 60_000),
    windows: fc.array(
      fc.record({
        requests: count,
        failed: count,
        p50: fc.option(amount),
        p95: fc.option(amount),
        p99: fc.option(amount),
      }),
      { maxLength: 30 },
    ),
    from: fc.constantFrom(0, 1.5, 1e6),
  })
  .map(({ windowMs, windows, from }) => ({
    windowMs,
    atSeconds: windows.map((_, index) => from + (index * windowMs) / 1_000),
    requests: windows.map((window) => window.requests),
    failed: windows.map((window) => window.failed),
    p50: windows.map((window) => window.p50),
    p95: windows.map((window) => window.p95),
    p99: windows.map((window) => window.p99),
  }));

const histogram: fc.Arbitrary<HistogramSummary> = fc
  .array(fc.tuple(fc.double({ min: 0.001, max: 1e7, noNaN: true }), count), { maxLength: 20 })
  .map((buckets) => {
    const sorted = [...buckets].sort(([a], [b]) => a - b);
    return { upToMs: sorted.map(([upTo]) => upTo), count: sorted.map(([, held]) => held) };
  });

const step: fc.Arbitrary<StepSummary> = fc.record({
  name,
  protocol: fc.constant("http/1.1"),
  tags,
  requests: count,
  ok: count,
  failed: count,
  interrupted: count,
  errors: counts,
  statuses: counts,
  ratePerSecond: amount,
  bytesIn: count,
  bytesOut: count,
  latencyMs: distribution,
  okLatencyMs: distribution,
  serviceMs: distribution,
  firstByteMs: distribution,
  connectMs: distribution,
  tlsMs: distribution,
  histogram,
  series,
});

const check: fc.Arbitrary<CheckSummary> = fc.record({ name, passed: count, failed: count });
const metric: fc.Arbitrary<MetricSummary> = fc.record({
  name,
  kind: fc.constantFrom("counter", "gauge", "rate", "trend"),
  tags,
  values: fc.dictionary(fc.constantFrom("count", "rate", "p99", "last"), amount, { maxKeys: 3 }),
});

const workflow: fc.Arbitrary<WorkflowSummary> = fc.record({
  name,
  status,
  error: fc.option(name),
  load: name,
  model: fc.constantFrom("closed", "open", "iterations", "once"),
  corrected: fc.boolean(),
  cores: fc.nat(64),
  startedAtSeconds: amount,
  elapsedSeconds: amount,
  iterations: fc.record({ completed: count, interrupted: count }),
  arrivals: fc.option(
    fc.record({
      targetPerSecond: amount,
      achievedPerSecond: amount,
      started: count,
      missed: count,
      sendLagMs: distribution,
    }),
  ),
  checks: fc.array(check, { maxLength: 4 }),
  metrics: fc.array(metric, { maxLength: 3 }),
  steps: fc.array(step, { maxLength: 4 }),
});

const threshold: fc.Arbitrary<ThresholdOutcome> = fc.record({
  expression: fc.oneof(
    name,
    fc.constantFrom("latency.p99 < 200ms", "requests.rate > 0", "errors.rate <= 1%"),
  ),
  passed: fc.boolean(),
  actual: fc.option(amount),
  actualText: name,
  workflow: fc.option(name),
  implicit: fc.boolean(),
  aborted: fc.boolean(),
});

const core: fc.Arbitrary<CoreHealth> = fc.record({
  core: fc.nat(64),
  cpu: amount,
  lagMsP50: amount,
  lagMsP99: amount,
  lagMsMax: amount,
  residentBytes: count,
  alive: fc.boolean(),
});

export const anySummary: fc.Arbitrary<RunSummary> = fc.record({
  schema: fc.constant(SUMMARY_SCHEMA),
  name,
  verdict: fc.constantFrom("passed", "failed", "interrupted"),
  reasons: fc.array(name, { maxLength: 3 }),
  startedAt: fc.constant("2026-01-02T03:04:05.000Z"),
  durationSeconds: amount,
  thresholds: fc.array(threshold, { maxLength: 6 }),
  generator: fc.record({
    cpu: amount,
    lagMsP99: amount,
    limited: fc.boolean(),
    reason: fc.option(name),
    cores: fc.array(core, { maxLength: 4 }),
  }),
  lost: fc.array(fc.record({ core: fc.nat(64), atSeconds: amount, what: name, cost: name }), {
    maxLength: 2,
  }),
  notes: fc.array(name, { maxLength: 2 }),
  workflows: fc.array(workflow, { maxLength: 4 }),
  environment: fc.record({
    hyperscale: fc.constant("0.1.0"),
    node: fc.constant("20.20.2"),
    platform: fc.constant("linux x64"),
    cpuModel: name,
    cpus: fc.nat(64),
    cores: fc.nat(64),
    command: name,
  }),
});

const liveWorkflow: fc.Arbitrary<LiveWorkflow> = fc.record({
  name,
  status,
  warmingUp: fc.boolean(),
  doing: fc.constantFrom(null, null, "setting up for 12 s"),
  progress: fc.double({ min: 0, max: 1, noNaN: true }),
  activeVus: count,
  targetVus: count,
  ratePerSecond: amount,
  targetPerSecond: fc.option(amount),
  steps: fc.array(
    fc.record({
      name,
      ratePerSecond: amount,
      failedPerSecond: amount,
      p50: amount,
      p95: amount,
      p99: amount,
    }),
    { maxLength: 4 },
  ),
});

export const anyRun: fc.Arbitrary<LiveRun> = anySummary.chain((summary) =>
  fc.record({
    phase,
    elapsedSeconds: amount,
    totalSeconds: fc.option(amount),
    summary: fc.constant(summary),
    // Mostly the workflows of the summary, as in a real run; sometimes others, as in no real run.
    workflows: fc.oneof(
      fc.array(liveWorkflow, { maxLength: 5 }),
      fc.constant(
        summary.workflows.map(
          ({ name: workflowName, status: workflowStatus, steps }): LiveWorkflow => ({
            name: workflowName,
            status: workflowStatus,
            warmingUp: false,
            doing: null,
            progress: 0.5,
            activeVus: 3,
            targetVus: 5,
            ratePerSecond: 12,
            targetPerSecond: 14,
            steps: steps.map((each) => ({
              name: each.name,
              ratePerSecond: 3,
              failedPerSecond: 1,
              p50: 1,
              p95: 2,
              p99: 3,
            })),
          }),
        ),
      ),
    ),
    ratePerSecond: amount,
    scale: fc.constant(1),
    failedPerSecond: amount,
  }),
);
