/**
 * The shape of summary.json as a decoder: validates files given to `compare`, and is the source of
 * docs/reference/summary.schema.json. The compiler keeps it equal to the results model in both directions, so a field
 * cannot be added to one and forgotten in the other.
 *
 * Unknown fields are accepted: a summary of a later minor version stays readable.
 */

import { z } from "zod";
import {
  type FigureDescription,
  figuresOf,
  STEP_FIGURES,
  TOTAL_FIGURES,
} from "../../core/load/results/figures.ts";
import {
  EVENT_KINDS,
  type RunSummary,
  SUMMARY_SCHEMA,
  TRUST_CODES,
} from "../../core/load/results/model.ts";

const count = z.int().min(0);
const amount = z.number().min(0);
const labels = z.record(z.string(), z.string());
const countByName = z.record(z.string(), count);

export const distributionSchema = z
  .looseObject({
    count: count.describe("Values measured; all figures are 0 when this is 0."),
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
  })
  .meta({ id: "Distribution", description: "Milliseconds, three significant digits." });

/** A field of the model for each figure of the table. */
function figureShape<Table extends Readonly<Record<string, FigureDescription>>>(table: Table) {
  const fields = figuresOf(table).map(([field, { kind, label, optional }]) => {
    const type = { counter: count, gauge: amount, distribution: distributionSchema }[kind];
    return [field, (optional === true ? type.optional() : type).describe(label)];
  });
  return Object.fromEntries(fields) as FigureShape<Table>;
}

type FigureShape<Table extends Readonly<Record<string, FigureDescription>>> = {
  -readonly [Field in keyof Table]: Table[Field] extends { readonly optional: true }
    ? z.ZodOptional<FigureType<Table[Field]>>
    : FigureType<Table[Field]>;
};
type FigureType<Figure extends FigureDescription> = Figure["kind"] extends "distribution"
  ? typeof distributionSchema
  : typeof amount;

const histogramSchema = z
  .looseObject({
    upToMs: z.array(amount).describe("Upper edge of each bucket, ascending."),
    count: z.array(count).describe("Values in each bucket."),
  })
  .refine(({ upToMs, count }) => upToMs.length === count.length, {
    message: "upToMs and count must have the same length",
  })
  .meta({
    id: "Histogram",
    description: "Parallel arrays: bucket i holds the values in (upToMs[i-1], upToMs[i]].",
  });

const seriesSchema = z
  .looseObject({
    windowMs: z.number().positive().describe("Width of one window."),
    atSeconds: z.array(z.number()).describe("Start of each window, seconds since the run began."),
    requests: z.array(count).describe("Requests that finished in the window."),
    failed: z.array(count).describe("Of them, failed."),
    p50: z.array(amount.nullable()).describe("Median in ms; null when nothing finished."),
    p95: z.array(amount.nullable()),
    p99: z.array(amount.nullable()),
    steady: z
      .looseObject({ p95: z.array(amount.nullable()), p99: z.array(amount.nullable()) })
      .optional()
      .describe("Only while a run is under way."),
    errors: z
      .record(z.string(), z.array(count))
      .optional()
      .describe("Failures by kind, those of the graceful stop included."),
  })
  .refine(
    ({ atSeconds, requests, failed, p50, p95, p99, errors = {} }) =>
      [requests, failed, p50, p95, p99, ...Object.values(errors)].every(
        ({ length }) => length === atSeconds.length,
      ),
    { message: "all arrays of a series must have the same length" },
  )
  .meta({ id: "Series", description: "Parallel arrays, one entry per window." });

const meanMs = z.array(amount.nullable());
const phasesSchema = z
  .looseObject({
    connectMs: meanMs.describe("0 where no connection was opened; null where no answer began."),
    tlsMs: meanMs,
    waitingMs: meanMs.describe("From there to the first byte."),
    bodyMs: meanMs.describe("From the first byte to the end."),
  })
  .meta({ id: "PhaseMeans", description: "Where the time of an answered call went, as means." });

function phaseLists({ connectMs, tlsMs, waitingMs, bodyMs }: z.infer<typeof phasesSchema>) {
  return [connectMs, tlsMs, waitingMs, bodyMs];
}

const windowsSchema = z
  .looseObject({
    windowMs: z.number().positive().describe("Width of one window, a second or more."),
    atSeconds: z.array(z.number()).describe("Start of each window that holds anything."),
    histograms: z.array(histogramSchema).describe("Latencies of each window."),
    failures: z.array(histogramSchema).optional().describe("Of failures among them."),
    phases: phasesSchema.optional(),
  })
  .refine(
    ({ atSeconds, histograms, failures = histograms, phases }) =>
      [histograms, failures, ...(phases === undefined ? [] : phaseLists(phases))].every(
        ({ length }) => length === atSeconds.length,
      ),
    { message: "all arrays of the windows must have the same length" },
  )
  .meta({ id: "LatencyWindows", description: "Parallel arrays, one entry per window." });

const sampleSchema = z
  .looseObject({
    atSeconds: z.number().describe("Since the run began."),
    kind: z.string().describe("Of the error, as in errors."),
    status: count.describe("Protocol status; 0 for none."),
    call: z.string().describe("Method and URL; empty where the protocol has none."),
    text: z.string().describe("What was said, the first 512 bytes; secrets masked."),
  })
  .meta({ id: "ErrorSample", description: "What a failure looked like." });

const totalsSchema = z
  .looseObject(figureShape(TOTAL_FIGURES))
  .meta({ id: "Totals", description: "Several steps together." });

const stepSchema = z
  .looseObject({
    name: z.string(),
    protocol: z.string().describe("Such as http or websocket."),
    tags: labels,
    ...figureShape(STEP_FIGURES),
    errors: countByName.describe("failed, by kind; sums to failed."),
    statuses: countByName.describe("Answers by protocol status."),
    histogram: histogramSchema.describe("Of latencyMs, two significant digits."),
    series: seriesSchema.describe("Over time, in windows."),
    windows: windowsSchema.optional().describe("Latencies over time, whole."),
    samples: z.array(sampleSchema).optional().describe("Up to five of each kind and status."),
  })
  .meta({ id: "Step", description: "One step of a workflow: a measured call." });

const arrivalsSchema = z
  .looseObject({
    targetPerSecond: amount.describe("Mean over the measured time of what was asked for."),
    achievedPerSecond: amount.describe("What was really started."),
    started: count,
    missed: count.describe(
      "Were due and never started: every virtual user was busy, or their core was lost.",
    ),
    missedByLosses: count.optional().describe("Of them, those of lost cores."),
    sendLagMs: distributionSchema.describe("Start after the intended moment."),
  })
  .meta({ id: "Arrivals", description: "How well an open model held its rate." });

const breakpointSchema = z
  .looseObject({
    of: z.enum(["rate", "vus"]),
    held: amount.nullable().describe("The highest load that held; null when even the first broke."),
    broke: amount.nullable().describe("The lowest load that broke; null when none did."),
    decided: z.boolean().describe("The search came to its end."),
    text: z.string().describe("For people."),
    probes: z.array(
      z.looseObject({
        load: amount,
        held: z.boolean(),
        reason: z.string().nullable().describe("What broke."),
        fromSeconds: amount.describe("Judged part, in the workflow's measured time."),
        toSeconds: amount,
      }),
    ),
  })
  .meta({ id: "Breakpoint", description: "The highest load that the thresholds bore." });

const checkSchema = z
  .looseObject({
    name: z.string(),
    passed: count,
    failed: count,
    warmup: count.optional().describe("Runs of it in the warm-up, which are in neither count."),
  })
  .meta({ id: "Check" });

const metricSchema = z
  .looseObject({
    name: z.string(),
    kind: z.enum(["counter", "gauge", "rate", "trend"]),
    tags: labels,
    values: z.record(z.string(), z.number()).describe("Figures of the metric, by its kind."),
  })
  .meta({ id: "Metric", description: "A metric the workflow records itself." });

const groupSchema = z
  .looseObject({
    name: z.string(),
    ok: count.describe("The body returned, and no call in it failed."),
    failed: count,
    durationMs: distributionSchema.describe("From the moment each was due."),
    activeMs: distributionSchema.describe("durationMs without pauses."),
  })
  .meta({ id: "Group", description: "A group of calls in a flow." });

const loadSeriesSchema = z
  .looseObject({
    windowMs: z.number().positive().describe("Width of one window."),
    atSeconds: z.array(z.number()).describe("Start of each window, seconds since the run began."),
    users: z.array(amount).describe("Virtual users at work, a mean."),
    target: z.array(amount).describe("Users, or arrivals per second, that the plan asks for."),
    arrivals: z.array(amount).describe("Arrivals that began in the window."),
    iterations: z.array(amount).describe("Iterations completed in the window."),
  })
  .meta({ id: "LoadSeries", description: "Parallel arrays, one entry per window." });

const workflowSchema = z
  .looseObject({
    name: z.string(),
    status: z.enum(["waiting", "running", "completed", "failed", "interrupted", "not run"]),
    error: z.string().nullable().describe("Why the workflow failed; null when it did not."),
    load: z.string().describe("The load model in words."),
    model: z.enum(["closed", "open", "iterations", "once"]),
    corrected: z.boolean().describe("Latencies count from the intended start."),
    cores: count.describe("Executor cores given to this workflow."),
    startedAtSeconds: amount.describe("Since the run began."),
    elapsedSeconds: amount.describe("Time of measurement, warm-up excluded."),
    iterations: z.looseObject({
      completed: count,
      ended: count.optional().describe("By a failed call or the body's own wish."),
      failed: count.optional().describe("The body of the flow threw."),
      interrupted: count.describe("Cut off at the end of the graceful stop."),
      unresolved: count
        .optional()
        .describe(
          "Cut off, and their code or userSetup never came to its end; also those due in the warm-up.",
        ),
      durationMs: distributionSchema
        .optional()
        .describe("Of all but interrupted ones, from the moment each was due."),
      okDurationMs: distributionSchema.optional().describe("Of completed ones."),
      activeMs: distributionSchema.optional().describe("durationMs without pauses."),
    }),
    arrivals: arrivalsSchema.nullable().describe("Only open models."),
    breakpoint: breakpointSchema.optional().describe("Only of a search for the breakpoint."),
    checks: z.array(checkSchema),
    metrics: z.array(metricSchema),
    steps: z.array(stepSchema),
    totals: totalsSchema.optional().describe("All steps together."),
    loadSeries: loadSeriesSchema.optional().describe("The load over time."),
    groups: z.array(groupSchema).optional().describe("Groups of flows."),
    aside: z
      .array(stepSchema)
      .optional()
      .describe("Calls of setup, teardown and the like: of the workflow's figures only in sent."),
  })
  .meta({ id: "Workflow" });

const thresholdSchema = z
  .looseObject({
    expression: z.string().describe("As written, spaces normalised."),
    passed: z.boolean(),
    actual: z.number().nullable().describe("In the unit of the expression; null without data."),
    actualText: z.string().describe("For people."),
    workflow: z.string().nullable().describe("Where it was declared; null for the whole run."),
    implicit: z.boolean().describe("A gate that holds without having been declared."),
    aborted: z.boolean().describe("This threshold ended the run early."),
  })
  .meta({ id: "Threshold" });

const coreSchema = z
  .looseObject({
    core: count,
    cpu: amount.describe("Share of one CPU, 0 to 1."),
    lagMsP50: amount,
    lagMsP99: amount,
    lagMsMax: amount,
    lateShare: amount.optional().describe("Share of the time with timers more than 50 ms late…"),
    blockedShare: amount.optional().describe("…because the core's own code kept it busy."),
    residentBytes: amount,
    alive: z.boolean().describe("False when the core was lost during the run."),
    series: z
      .looseObject({
        windowMs: z.number().positive(),
        atSeconds: z.array(z.number()),
        cpu: z.array(amount).describe("Share of one CPU."),
        lagMs: z.array(amount).describe("The latest timer of the window."),
      })
      .optional()
      .describe("Parallel arrays, one entry per window."),
  })
  .meta({ id: "Core", description: "One executor core of the generator." });

const generatorSchema = z
  .looseObject({
    cpu: amount.describe("Busiest executor core, share of one CPU."),
    lagMsP99: amount.describe("Event-loop lag of the worst executor core."),
    limited: z.boolean().describe("The generator, not the target, was the limit."),
    cause: z.enum(["saturated", "data", "noisy"]).nullable().optional(),
    reason: z.string().nullable(),
    cores: z.array(coreSchema),
  })
  .meta({ id: "Generator" });

const trustSchema = z
  .looseObject({
    trusted: z.boolean(),
    reasons: z
      .array(z.looseObject({ code: z.enum(TRUST_CODES), text: z.string() }))
      .describe("Why not; empty when it is trusted."),
    required: z
      .boolean()
      .optional()
      .describe("An untrusted result does not count as passed (exit code 98)."),
  })
  .meta({ id: "Trust", description: "Whether the figures are worth a verdict." });

const lossSchema = z
  .looseObject({
    core: count,
    atSeconds: amount,
    what: z.string().describe("What happened."),
    cost: z.string().describe("What of the load or the results went with it."),
    at: z.string().optional().describe("ISO 8601."),
    worker: z.string().nullish().describe("Who had the core; null on one machine."),
    users: count.nullish().describe("Users that were at work there; null when nobody knows."),
    requestsNotCounted: count.nullish().describe("In no figure; null when nobody knows."),
    exact: z.boolean().optional().describe("False where that is only the most there can be."),
    missingMs: amount
      .nullish()
      .describe("Of the plan, in which nobody did its share; null when nobody knows."),
    dealtAgainTo: z.string().nullish().describe("Who does its share since; null when nobody."),
  })
  .meta({ id: "Loss" });

const clusterSchema = z
  .looseObject({
    jobId: z.string(),
    leader: z.string().nullish().describe("The gate that led it in the end."),
    split: z.array(z.looseObject({ datacenter: z.string(), share: amount })),
    datacenters: z.array(
      z.looseObject({
        name: z.string(),
        status: z.string().describe("How the job ended there."),
        workers: count,
        requests: count,
        failed: count,
        ratePerSecond: amount,
        latencyMs: distributionSchema,
      }),
    ),
    startSkewMs: amount.optional().describe("Between the first and the last to begin."),
    changes: z
      .array(z.looseObject({ at: z.string(), by: z.string(), what: z.string() }))
      .optional()
      .describe("What became of the job on its way."),
  })
  .meta({ id: "Cluster", description: "Where a job of a cluster ran." });

const eventSchema = z
  .looseObject({
    atSeconds: z.number().describe("Since the run began."),
    kind: z.enum(EVENT_KINDS),
    workflow: z.string().nullable().describe("The workflow it is about; null for the run."),
    text: z.string(),
  })
  .meta({ id: "Event" });

const reportSchema = z
  .looseObject({
    reporter: z.string().describe("Such as influxdb."),
    target: z.string().describe("Where to, without credentials."),
    sent: count.describe("Points that were taken."),
    unconfirmed: z.literal(true).optional().describe("Sent over UDP, which acknowledges nothing."),
    dropped: count.describe("Points that were not: refused, or too late."),
    problem: z.string().nullable().describe("The last thing that went wrong."),
  })
  .meta({ id: "Report", description: "What became of the results at one reporter." });

const environmentSchema = z
  .looseObject({
    hyperscale: z.string().describe("Version."),
    node: z.string(),
    platform: z.string(),
    cpuModel: z.string(),
    cpus: count.describe("CPUs of the machine."),
    cores: count.describe("Executor cores used."),
    command: z.string().describe("The command line that made this run."),
  })
  .meta({ id: "Environment" });

export const summarySchema = z
  .looseObject({
    schema: z.literal(SUMMARY_SCHEMA),
    runId: z.string().optional().describe("Tells this run from all others."),
    name: z.string().describe("File or URL that was run."),
    title: z.string().optional().describe("What its author calls it."),
    tags: labels.optional(),
    verdict: z.enum(["passed", "failed", "interrupted"]),
    headline: z.string().optional().describe("The answer of a search, such as its breakpoint."),
    reasons: z.array(z.string()).describe("Why, in sentences."),
    startedAt: z.iso
      .datetime({ offset: true })
      .describe("When the first workflow began: all seconds are counted from here."),
    durationSeconds: amount.describe("Of the whole run, warm-up and stop included."),
    thresholds: z.array(thresholdSchema),
    generator: generatorSchema.describe("Health of the load generator."),
    lost: z.array(lossSchema).describe("What died during the run and what it cost."),
    trust: trustSchema.optional(),
    notes: z.array(z.string()).describe("Remarks a reader of the numbers must know."),
    workflows: z.array(workflowSchema),
    totals: totalsSchema.optional().describe("All steps of all workflows."),
    events: z.array(eventSchema).optional().describe("What happened to the run."),
    reports: z.array(reportSchema).optional().describe("What reporters sent, and what not."),
    environment: environmentSchema,
    cluster: clusterSchema.optional().describe("Only of a job that gates have led."),
  })
  .meta({ title: "Hyperscale summary.json", description: "The result of one run." });

type DeepReadonly<T> = T extends (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;
/** Drops the index signatures that accept unknown fields. */
type Known<T> = T extends (infer Item)[]
  ? Known<Item>[]
  : T extends object
    ? { [Key in keyof T as NamedKey<T, Key>]: Known<T[Key]> }
    : T;
/** Keeps the keys of a record; of an open object only the named ones. */
type NamedKey<T, Key extends keyof T> = unknown extends T[Key & string]
  ? string extends Key
    ? never
    : Key
  : Key;
type Decoded = DeepReadonly<Known<z.infer<typeof summarySchema>>>;

/** Both lines fail to compile when the model and this schema differ. */
const decodedIsModel: (decoded: Decoded) => RunSummary = (decoded) => decoded;
const modelIsDecoded: (model: RunSummary) => Decoded = (model) => model;

export type SummaryResult =
  | { readonly ok: true; readonly summary: RunSummary }
  | { readonly ok: false; readonly problem: string };

/** Limit of a cluster job. Checking a larger file takes longer than anybody waits. */
const WORKFLOWS_MAX = 1_024;

/** Reads the text of a summary.json; an error says what is wrong, and where. */
export function decodeSummary(text: string): SummaryResult {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { ok: false, problem: `is not JSON: ${(error as Error).message}` };
  }
  if (typeof value !== "object" || value === null || !("schema" in value)) {
    return { ok: false, problem: `is not a summary: it has no "schema": "${SUMMARY_SCHEMA}"` };
  }
  const { schema } = value;
  if (typeof schema !== "string") {
    return { ok: false, problem: `is not a summary: it has no "schema": "${SUMMARY_SCHEMA}"` };
  }
  if (schema !== SUMMARY_SCHEMA) {
    const problem = `has the schema "${schema}"; this version reads "${SUMMARY_SCHEMA}"`;
    return { ok: false, problem };
  }
  const workflows = "workflows" in value && Array.isArray(value.workflows) ? value.workflows : [];
  if (workflows.length > WORKFLOWS_MAX) {
    const most = `at most ${WORKFLOWS_MAX} can be read`;
    return { ok: false, problem: `has ${workflows.length} workflows; ${most}` };
  }
  const decoded = summarySchema.safeParse(value);
  if (decoded.success) return { ok: true, summary: decodedIsModel(decoded.data) };
  const first = decoded.error.issues[0];
  const where = first === undefined ? "" : `${pathText(first.path)}: ${first.message}`;
  const more = decoded.error.issues.length - 1;
  return {
    ok: false,
    problem: `is damaged: ${where}${more > 0 ? ` (and ${more} more problems)` : ""}`,
  };
}

function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`))
    .join("")
    .replace(/^\./, "");
}

/** JSON Schema (draft 2020-12), kept in the repository as docs/reference/summary.schema.json. */
export function summaryJsonSchema(): unknown {
  return z.toJSONSchema(summarySchema, { target: "draft-2020-12", reused: "inline" });
}

void modelIsDecoded;
