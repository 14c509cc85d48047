/** Options of `workflow(name, options)` beside its load model: for calls, users and limits. */

import type { Duration } from "../core/base/duration.ts";
import { didYouMean } from "../core/base/nearest.ts";
import type { Share } from "../core/base/share.ts";
import { type CallSettings, DEFAULT_CALL_SETTINGS } from "../protocols/protocol.ts";
import { DefinitionError } from "./errors.ts";
import { checkModel, type LoadOptions, MODEL_KEYS } from "./load-options.ts";
import {
  atLeastZero,
  milliseconds,
  oneOf,
  required,
  share,
  VUS_MAX,
  whole,
} from "./option-values.ts";
import type { MetricList, ThresholdList } from "./threshold-types.ts";

/** The signal of the code is aborted shortly before its limit expires. */
interface LimitOptions {
  readonly setup?: Duration;
  readonly teardown?: Duration;
  readonly userSetup?: Duration;
  readonly userTeardown?: Duration;
}

export interface CommonOptions {
  /** Delay after the workflows that begin with it; 0 by default. */
  readonly startAfter?: Duration;
  /** Load before the measured time; its results are left out. */
  readonly warmup?: Duration;
  /** Time for work in flight to finish after the end; 5s by default. */
  readonly gracefulStop?: Duration;
  /** Share of unanswered calls, and of unresolved iterations, that does not fail the run; 1% by default. */
  readonly maxUnanswered?: Share;
  /** Time for code outside the steps; a minute each by default. */
  readonly limits?: LimitOptions;
  /** Pause of a user after each iteration, fixed or drawn between two bounds. */
  readonly think?: Duration | { readonly min: Duration; readonly max: Duration };
  /** Minimum time between the starts of a user's iterations. */
  readonly pacing?: Duration;
  readonly priority?: "low" | "normal" | "high" | "exclusive" | "auto" | Uppercase<string>;
  /** Tags of every step. */
  readonly tags?: Readonly<Record<string, string>>;
  /** Timeout of the whole call. */
  readonly timeout?: Duration;
  readonly connectTimeout?: Duration;
  /** Timeout until the first byte of the answer. */
  readonly firstByteTimeout?: Duration;
  readonly keepAlive?: boolean;
  /** "user": each virtual user its own connections (default). "shared": one pool per core. */
  readonly connections?: "user" | "shared";
  readonly sharedConnectionsMax?: number;
  /** Redirects to follow per call; none by default. */
  readonly redirects?: number;
  /** "user": kept over iterations (default). "iteration": each iteration begins without. "off". */
  readonly cookies?: "user" | "iteration" | "off";
  /** Accepts any TLS certificate. */
  readonly insecure?: boolean;
  /** Sends a W3C traceparent header: in all iterations (true), or in this share of them. */
  readonly traceparent?: boolean | number;
  /** Destinations of the run's results, as for `--report`: "prometheus=http://127.0.0.1:9090". */
  readonly report?: readonly string[];
}

/** Thresholds and metrics; the lists are types of their own where the compiler reads them. */
export interface JudgedOptions<Thresholds = ThresholdList, Metrics = MetricList> {
  /** Custom metrics that its thresholds name; by default any of the file. */
  readonly metrics?: Metrics;
  readonly thresholds?: Thresholds;
}

export type WorkflowOptions = LoadOptions & CommonOptions & JudgedOptions;

export const DEFAULT_GRACEFUL_STOP_MS = 5_000;
const OPTION_NAMES = new Set([
  ...MODEL_KEYS,
  "vus",
  "duration",
  "startVus",
  "startRate",
  "maxVus",
  "maxRate",
  "arrivals",
  "maxDuration",
  "startAfter",
  "warmup",
  "gracefulStop",
  "maxUnanswered",
  "limits",
  "think",
  "pacing",
  "priority",
  "metrics",
  "thresholds",
  "tags",
  "timeout",
  "connectTimeout",
  "firstByteTimeout",
  "keepAlive",
  "connections",
  "sharedConnectionsMax",
  "redirects",
  "cookies",
  "insecure",
  "traceparent",
  "report",
]);

/** Checks what the compiler would: no misspelt option, no two load models at once. */
export function checkOptions(options: object, where: string): void {
  for (const name of Object.keys(options)) {
    if (OPTION_NAMES.has(name)) continue;
    throw new DefinitionError(
      `${where}: there is no option "${name}"${didYouMean(name, OPTION_NAMES)}`,
    );
  }
  checkModel(options, where);
}

/** Settings of calls; omitted ones keep their default. */
export function settingsOf(options: CommonOptions, where: string): CallSettings {
  const time = (value: Duration | undefined, name: string, fallback: number): number =>
    value === undefined ? fallback : required(value, name, where);
  return {
    ...DEFAULT_CALL_SETTINGS,
    timeoutMs: time(options.timeout, "timeout", DEFAULT_CALL_SETTINGS.timeoutMs),
    connectTimeoutMs: time(
      options.connectTimeout,
      "connectTimeout",
      DEFAULT_CALL_SETTINGS.connectTimeoutMs,
    ),
    firstByteTimeoutMs: time(
      options.firstByteTimeout,
      "firstByteTimeout",
      DEFAULT_CALL_SETTINGS.firstByteTimeoutMs,
    ),
    keepAlive: options.keepAlive ?? DEFAULT_CALL_SETTINGS.keepAlive,
    connections: oneOf(
      options.connections ?? DEFAULT_CALL_SETTINGS.connections,
      ["user", "shared"],
      "connections",
      where,
    ),
    sharedConnectionsMax: whole(
      options.sharedConnectionsMax ?? DEFAULT_CALL_SETTINGS.sharedConnectionsMax,
      "sharedConnectionsMax",
      where,
      VUS_MAX,
    ),
    redirectsMax: atLeastZero(
      options.redirects ?? DEFAULT_CALL_SETTINGS.redirectsMax,
      "redirects",
      where,
    ),
    cookies: oneOf(
      options.cookies ?? DEFAULT_CALL_SETTINGS.cookies,
      ["user", "iteration", "off"],
      "cookies",
      where,
    ),
    insecure: options.insecure ?? DEFAULT_CALL_SETTINGS.insecure,
    tracedShare: share(
      options.traceparent ?? DEFAULT_CALL_SETTINGS.tracedShare,
      "traceparent",
      where,
    ),
  };
}

export function reportsOf({ report = [] }: CommonOptions, where: string): readonly string[] {
  const texts = Array.isArray(report) && report.every((one) => typeof one === "string");
  if (!texts)
    throw new DefinitionError(`${where}: report is a list: report: ["ndjson=points.ndjson"]`);
  return report;
}

export interface Limits {
  readonly setupMs: number;
  readonly teardownMs: number;
  readonly userSetupMs: number;
  readonly userTeardownMs: number;
}

const DEFAULT_LIMIT_MS = 60_000;
const LIMIT_NAMES = ["setup", "teardown", "userSetup", "userTeardown"] as const;

export function limitsOf({ limits = {} }: CommonOptions, where: string): Limits {
  const stray = Object.keys(limits).find((name) => !LIMIT_NAMES.some((known) => known === name));
  if (stray !== undefined)
    throw new DefinitionError(
      `${where}: there is no limit "${stray}"${didYouMean(stray, LIMIT_NAMES)}`,
    );
  const limit = (name: (typeof LIMIT_NAMES)[number]): number =>
    required(limits[name] ?? DEFAULT_LIMIT_MS, `limits.${name}`, where);
  return {
    setupMs: limit("setup"),
    teardownMs: limit("teardown"),
    userSetupMs: limit("userSetup"),
    userTeardownMs: limit("userTeardown"),
  };
}

export interface PaceOptions {
  readonly thinkMinMs: number;
  readonly thinkMaxMs: number;
  readonly pacingMs: number;
}

export function paceOf(options: CommonOptions, where: string): PaceOptions {
  const { think } = options;
  const range = typeof think === "object" ? think : { min: think ?? 0, max: think ?? 0 };
  const thinkMinMs = milliseconds(range.min, "think", where);
  const thinkMaxMs = milliseconds(range.max, "think", where);
  if (thinkMaxMs < thinkMinMs)
    throw new DefinitionError(`${where}: think.max is less than think.min`);
  return { thinkMinMs, thinkMaxMs, pacingMs: milliseconds(options.pacing ?? 0, "pacing", where) };
}
