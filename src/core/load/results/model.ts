/**
 * The one results model. `summary.json` is this type written down; the terminal, the HTML report,
 * JUnit, CSV and `compare` all read it and nothing else. Documented for users in docs/reference/results.md.
 *
 * Times are milliseconds unless the name says otherwise. Latencies of open models are measured from
 * the intended start (`latencyMs`, response time) and from the real start (`serviceMs`); in closed
 * models the two are the same numbers.
 */

export const SUMMARY_SCHEMA = "hyperscale/summary@1";

export type Verdict = "passed" | "failed" | "interrupted";

export interface RunSummary {
  readonly schema: typeof SUMMARY_SCHEMA;
  /** Unique id of the run; results of earlier versions have none, as with all optional fields. */
  readonly runId?: string | undefined;
  /** File or URL that was run. */
  readonly name: string;
  /** Title given by the author. */
  readonly title?: string | undefined;
  readonly tags?: Readonly<Record<string, string>> | undefined;
  readonly verdict: Verdict;
  /** Answer of a run that asks a question: "breakpoint: 800/s held, 850/s broke (…)". Absent otherwise. */
  readonly headline?: string | undefined;
  /** Why, in sentences: failed thresholds, failed workflows, interruption. Empty when passed without remark. */
  readonly reasons: readonly string[];
  /** When the first workflow began, the origin of all seconds: ISO 8601, clock of the coordinator. */
  readonly startedAt: string;
  readonly durationSeconds: number;
  readonly thresholds: readonly ThresholdOutcome[];
  readonly generator: GeneratorHealth;
  /** Processes lost during the run, and the load or results lost with them. */
  readonly lost: readonly Loss[];
  /** Whether the metrics can be trusted; absent in results of earlier versions. */
  readonly trust?: Trust | undefined;
  /** Remarks that a reader of the numbers must know, for example that a closed model does not correct. */
  readonly notes: readonly string[];
  readonly workflows: readonly WorkflowSummary[];
  /** All steps of all workflows, over the time in which any of them was measured. */
  readonly totals?: Totals | undefined;
  /** Events of the run, in order of time. */
  readonly events?: readonly TimelineEvent[] | undefined;
  /** Outcome of the requested reporters. (REP-5) */
  readonly reports?: readonly ReportOutcome[] | undefined;
  readonly environment: RunEnvironment;
  /** Present for a job led by gates. */
  readonly cluster?: ClusterSummary | undefined;
}

/** Where a job ran, and the part of each datacenter. */
export interface ClusterSummary {
  readonly jobId: string;
  /** The gate that led it in the end; results of earlier versions have none. */
  readonly leader?: string | null | undefined;
  /** Part of the plan of each datacenter: together 1, or 1 for each that had the whole of it. */
  readonly split: readonly { readonly datacenter: string; readonly share: number }[];
  readonly datacenters: readonly DatacenterSummary[];
  /** Between the first and the last datacenter to begin, by wall clocks; results of earlier versions have none. */
  readonly startSkewMs?: number | undefined;
  /** Changes of the job, in order of time. */
  readonly changes?: readonly ClusterChange[] | undefined;
}

/** An event of a job beside its load. */
export interface ClusterChange {
  /** ISO 8601, clock of the leading gate. */
  readonly at: string;
  /** The gate. */
  readonly by: string;
  /** Such as "paused", "scaled", "dispatched: dc1". */
  readonly what: string;
}

interface DatacenterSummary {
  readonly name: string;
  /** How the job ended there: "COMPLETED", "FAILED", "LOST", … */
  readonly status: string;
  readonly workers: number;
  readonly requests: number;
  readonly failed: number;
  readonly ratePerSecond: number;
  readonly latencyMs: Distribution;
}

/** Several steps together; percentiles are those of all their calls, never means of percentiles. */
export interface Totals {
  readonly requests: number;
  readonly ok: number;
  readonly failed: number;
  /** Requests on the wire: what the target's own log should count. */
  readonly sent: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Calls that ended inside the measured time, over that time. */
  readonly ratePerSecond: number;
  readonly latencyMs: Distribution;
  readonly okLatencyMs: Distribution;
}

export const EVENT_KINDS = [
  "core lost",
  "threshold crossed",
  "pause",
  "resume",
  "scale",
  "stall",
] as const;

export interface TimelineEvent {
  /** Since the run began. */
  readonly atSeconds: number;
  readonly kind: (typeof EVENT_KINDS)[number];
  /** The workflow it is about; null for the run. */
  readonly workflow: string | null;
  readonly text: string;
}

/** A reporter never changes the verdict: points it could not send are reported here. */
export interface ReportOutcome {
  /** Such as "influxdb". */
  readonly reporter: string;
  /** Destination without credentials. */
  readonly target: string;
  /** Accepted points; unconfirmed ones were sent, and may be lost. */
  readonly sent: number;
  /** Sent over UDP, which acknowledges nothing; absent where points are acknowledged. */
  readonly unconfirmed?: true | undefined;
  /** Points that were not accepted: rejected, or too late. */
  readonly dropped: number;
  /** The last problem. */
  readonly problem: string | null;
}

interface RunEnvironment {
  readonly hyperscale: string;
  readonly node: string;
  readonly platform: string;
  readonly cpuModel: string;
  readonly cpus: number;
  /** Executor cores used. */
  readonly cores: number;
  /** The command line that made this run. */
  readonly command: string;
}

export interface ThresholdOutcome {
  /** As the user wrote it, spaces normalised: "latency.p99 < 200ms". */
  readonly expression: string;
  readonly passed: boolean;
  /** In the unit of the expression; null when there was nothing to measure. */
  readonly actual: number | null;
  /** For people: "312 ms", "1.4 %", "no data". */
  readonly actualText: string;
  /** Workflow the threshold was declared in; null for one of the whole run. */
  readonly workflow: string | null;
  /** A gate that applies without having been declared, such as "every check passes". */
  readonly implicit: boolean;
  /** This threshold ended the run early. */
  readonly aborted: boolean;
}

/** Why a result is untrusted. */
export const TRUST_CODES = [
  /** A datacenter did not do its part. */
  "partial",
  /** The load generator was the limit, not the target. */
  "generator-limited",
  "generator-noisy",
  /** Executor cores were lost: load was not generated, or is not counted. */
  "lost",
] as const;

export interface Trust {
  readonly trusted: boolean;
  /** Empty when it is trusted. */
  readonly reasons: readonly {
    readonly code: (typeof TRUST_CODES)[number];
    readonly text: string;
  }[];
  /** True: an untrusted result does not count as passed (`--require-trusted`). */
  readonly required?: boolean | undefined;
}

export interface GeneratorHealth {
  /** Busiest executor core, 0 … 1 of one CPU. */
  readonly cpu: number;
  /** Event-loop lag of the worst executor core, weighted by time. */
  readonly lagMsP99: number;
  /** The generator, not the target, was the limit. */
  readonly limited: boolean;
  /** Why it cannot be trusted: see `generator-health.ts`. Other programs that disturbed it are not its limit. */
  readonly cause?: "saturated" | "data" | "noisy" | null | undefined;
  readonly reason: string | null;
  readonly cores: readonly CoreHealth[];
}

export interface CoreHealth {
  readonly core: number;
  readonly cpu: number;
  readonly lagMsP50: number;
  readonly lagMsP99: number;
  readonly lagMsMax: number;
  /** Share of the time in which its timers were more than 50 ms late… */
  readonly lateShare?: number | undefined;
  /** …because its own code kept it busy. */
  readonly blockedShare?: number | undefined;
  readonly residentBytes: number;
  readonly alive: boolean;
  readonly series?: CoreSeries | undefined;
}

/** Parallel arrays, one entry per window. */
interface CoreSeries {
  readonly windowMs: number;
  readonly atSeconds: readonly number[];
  /** CPU time over time, 1 for a whole CPU. */
  readonly cpu: readonly number[];
  /** The latest timer of the window. */
  readonly lagMs: readonly number[];
}

export interface Loss {
  readonly core: number;
  readonly atSeconds: number;
  /** Description: "executor core 1 ended with SIGKILL". */
  readonly what: string;
  /** Cost: virtual users lost, share of the rate lost, results of the last fraction of a second lost. */
  readonly cost: string;
  /** ISO 8601, wall clock of the coordinator. */
  readonly at?: string | undefined;
  /** The worker that had the core; null in a run of one machine. */
  readonly worker?: string | null | undefined;
  /** Users active there, as last reported; null when unknown, as of a datacenter that reported nothing. */
  readonly users?: number | null | undefined;
  /** Requests made there that are not counted; null when their number is unknown. */
  readonly requestsNotCounted?: number | null | undefined;
  /** False where that is only an upper bound. */
  readonly exact?: boolean | undefined;
  /**
   * Time of the plan in which no core had the share. Of a datacenter: from its last reported metrics to the end of the
   * load, though it may have continued unseen; null when unknown.
   */
  readonly missingMs?: number | null | undefined;
  /** Worker that continues its share; null for none. */
  readonly dealtAgainTo?: string | null | undefined;
}

export type WorkflowStatus =
  | "waiting"
  | "running"
  | "completed"
  | "failed"
  | "interrupted"
  | "not run";

export interface WorkflowSummary {
  readonly name: string;
  readonly status: WorkflowStatus;
  readonly error: string | null;
  /** For people: "64 virtual users for 30s", "1000/s for 10s, at most 2000 virtual users". */
  readonly load: string;
  readonly model: "closed" | "open" | "iterations" | "once";
  /** Latencies are measured from the intended start, so waiting for a busy server is counted. */
  readonly corrected: boolean;
  readonly cores: number;
  readonly startedAtSeconds: number;
  /** Time of measurement, warm-up excluded. */
  readonly elapsedSeconds: number;
  readonly iterations: IterationCounts;
  /** Only open models. */
  readonly arrivals: ArrivalSummary | null;
  /** Only of a search for the breakpoint. */
  readonly breakpoint?: BreakpointSummary | undefined;
  readonly checks: readonly CheckSummary[];
  readonly metrics: readonly MetricSummary[];
  readonly steps: readonly StepSummary[];
  readonly totals?: Totals | undefined;
  readonly loadSeries?: LoadSeries | undefined;
  /** Groups of flows; results of earlier versions have none. */
  readonly groups?: readonly GroupSummary[] | undefined;
  /** Calls of setup, userSetup and teardown (tag `phase`): excluded from all metrics of the workflow. */
  readonly aside?: readonly StepSummary[] | undefined;
}

export interface GroupSummary {
  /** "checkout/pay". */
  readonly name: string;
  /** The body returned, and no call in it failed. */
  readonly ok: number;
  readonly failed: number;
  /** From the time each was due. */
  readonly durationMs: Distribution;
  /** Excludes pauses written by the author. */
  readonly activeMs: Distribution;
}

/** Each iteration has exactly one outcome. */
export interface IterationCounts {
  readonly completed: number;
  /** Ended by a failed call or by the body itself; only flows. */
  readonly ended?: number | undefined;
  /** The body threw; only flows. */
  readonly failed?: number | undefined;
  /** Cut off at the end of the graceful stop. */
  readonly interrupted: number;
  /** Cut-off iterations, also of the warm-up, that were older than typical ones and waited for code or `userSetup`. */
  readonly unresolved?: number | undefined;
  /** Durations of all but interrupted ones, from the time each was due; absent in results of earlier versions. */
  readonly durationMs?: Distribution | undefined;
  /** Durations of completed ones. */
  readonly okDurationMs?: Distribution | undefined;
  /** Excludes pauses made by the workflow. */
  readonly activeMs?: Distribution | undefined;
}

export interface ArrivalSummary {
  /** Mean required rate over the measured time. */
  readonly targetPerSecond: number;
  readonly achievedPerSecond: number;
  readonly started: number;
  /** Due and never started: every virtual user was busy until the end, or the core that had them was lost. */
  readonly missed: number;
  /** Missed arrivals of lost cores, not made or not counted. Absent where no core was lost. */
  readonly missedByLosses?: number | undefined;
  /** Start after the intended time. */
  readonly sendLagMs: Distribution;
}

/** The highest load at which the thresholds held: between `held` and `broke`. */
export interface BreakpointSummary {
  readonly of: "rate" | "vus";
  /** Per second, or virtual users; null when even the first load broke. */
  readonly held: number | null;
  /** The lowest load that broke; null when none did. */
  readonly broke: number | null;
  /** The search came to its end. */
  readonly decided: boolean;
  /** For people: "800/s held, 850/s broke (latency.p99 < 250ms: 312 ms)". */
  readonly text: string;
  readonly probes: readonly ProbeSummary[];
}

interface ProbeSummary {
  readonly load: number;
  readonly held: boolean;
  readonly reason: string | null;
  /** The judged part, in seconds of the workflow's measured time. */
  readonly fromSeconds: number;
  readonly toSeconds: number;
}

export interface CheckSummary {
  readonly name: string;
  readonly passed: number;
  readonly failed: number;
  /** Runs during the warm-up, which are in neither; absent without any. */
  readonly warmup?: number | undefined;
}

export interface MetricSummary {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "rate" | "trend";
  readonly tags: Readonly<Record<string, string>>;
  /** counter: count; gauge: last, min, max; rate: hits, total, rate; trend: a distribution's figures. */
  readonly values: Readonly<Record<string, number>>;
}

export interface StepSummary {
  readonly name: string;
  readonly protocol: string;
  readonly tags: Readonly<Record<string, string>>;
  /** Finished: ok + failed. */
  readonly requests: number;
  readonly ok: number;
  readonly failed: number;
  /** Cut off at the end of the graceful stop while younger than typical calls; not part of `requests`. */
  readonly interrupted: number;
  /** failed, by kind; sums to `failed`. */
  readonly errors: Readonly<Record<string, number>>;
  /** Answers by protocol status, where the protocol has one. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly ratePerSecond: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Latencies of calls that reached the wire: excludes refused, unresolved and unencrypted ones, and exceptions. */
  readonly latencyMs: Distribution;
  /** `latencyMs` of successes only; results of earlier versions have none. */
  readonly okLatencyMs?: Distribution | undefined;
  readonly serviceMs: Distribution;
  readonly firstByteMs: Distribution;
  /** Only of requests that opened a connection. */
  readonly connectMs: Distribution;
  readonly tlsMs: Distribution;
  /** Histogram of latencyMs, two significant digits, for charts and comparison. */
  readonly histogram: HistogramSummary;
  readonly series: Series;
  /** Requests on the wire, including redirects, retries and those of the warm-up. */
  readonly sent?: number | undefined;
  /** Latencies of each second or of longer windows: any stretch of time has its true percentiles. */
  readonly windows?: LatencyWindows | undefined;
  /** Samples of failures. */
  readonly samples?: readonly ErrorSample[] | undefined;
}

/** Parallel arrays, one entry per non-empty window. */
export interface LatencyWindows {
  readonly windowMs: number;
  readonly atSeconds: readonly number[];
  /** Three significant digits. */
  readonly histograms: readonly HistogramSummary[];
  /** Histograms of failures among them, if there are any. */
  readonly failures?: readonly HistogramSummary[] | undefined;
  /** Results of earlier versions have none. */
  readonly phases?: PhaseMeans | undefined;
}

/** Mean duration of each phase of answered calls; together the service time. */
export interface PhaseMeans {
  /** 0 where no connection was opened; null where no answer began. */
  readonly connectMs: readonly (number | null)[];
  readonly tlsMs: readonly (number | null)[];
  /** From there to the first byte. */
  readonly waitingMs: readonly (number | null)[];
  readonly bodyMs: readonly (number | null)[];
}

/** Up to five of each kind and status of a step. */
export interface ErrorSample {
  /** Since the run began. */
  readonly atSeconds: number;
  readonly kind: string;
  /** 0 where there is none. */
  readonly status: number;
  /** Method and URL, such as "GET https://shop.test/cart"; empty where the protocol has none. */
  readonly call: string;
  /** Problem and the first 512 bytes of the answer: without control characters, secrets masked. */
  readonly text: string;
}

/** Parallel arrays, one entry per window. */
export interface LoadSeries {
  readonly windowMs: number;
  readonly atSeconds: readonly number[];
  /** Virtual users at work, as a mean over the window. */
  readonly users: readonly number[];
  /** Required load: users, or arrivals per second in open models. */
  readonly target: readonly number[];
  /** Arrivals that began in the window; 0 in closed models. */
  readonly arrivals: readonly number[];
  /** Iterations that were completed in the window. */
  readonly iterations: readonly number[];
}

export interface Distribution {
  readonly count: number;
  readonly min: number;
  readonly mean: number;
  readonly p50: number;
  readonly p75: number;
  readonly p90: number;
  readonly p95: number;
  readonly p99: number;
  readonly p99_9: number;
  readonly p99_99: number;
  readonly max: number;
}

/** Parallel arrays: bucket i holds the values in (upToMs[i-1], upToMs[i]]. */
export interface HistogramSummary {
  readonly upToMs: readonly number[];
  readonly count: readonly number[];
}

/** Null where there were never enough. */
interface SteadyPercentiles {
  readonly p95: readonly (number | null)[];
  readonly p99: readonly (number | null)[];
}

/** Parallel arrays, one entry per window; windows start as 100 ms and fold to stay bounded. */
export interface Series {
  readonly windowMs: number;
  /** Seconds since the run began, start of each window. */
  readonly atSeconds: readonly number[];
  readonly requests: readonly number[];
  readonly failed: readonly number[];
  readonly p50: readonly (number | null)[];
  readonly p95: readonly (number | null)[];
  readonly p99: readonly (number | null)[];
  /** p95 and p99 of enough values each, for live charts: files contain `windows` instead. */
  readonly steady?: SteadyPercentiles | undefined;
  /** Failures by kind, including those of the graceful stop; kinds that never happened are left out. */
  readonly errors?: Readonly<Record<string, readonly number[]>> | undefined;
}
