/** Options of a run beside its workflows: names and meanings are those of the flags of `hyperscale run`. */

import { type Duration, parseDuration } from "../core/base/duration.ts";
import { didYouMean } from "../core/base/nearest.ts";
import { parseShare, type Share } from "../core/base/share.ts";
import type { LoadOverrides } from "../core/load/job/load-overrides.ts";
import { parseThreshold } from "../core/load/results/thresholds.ts";
import type { Reporter } from "../reporters/reporter.ts";
import { RunError } from "./errors.ts";

export interface RunOptions {
  /** Virtual users: a closed model, or another number of users for iterations. */
  readonly vus?: number | undefined;
  readonly duration?: Duration | undefined;
  /** Iterations begun per second: an open model. */
  readonly rate?: number | undefined;
  /** With a rate: maximum of concurrent users. */
  readonly maxVus?: number | undefined;
  /** Without a rate: maximum of iterations begun per second. */
  readonly maxRate?: number | undefined;
  /** Total iterations, shared by the users. */
  readonly iterations?: number | undefined;
  readonly warmup?: Duration | undefined;
  readonly gracefulStop?: Duration | undefined;
  /** Share of unanswered calls, and of unresolved iterations, that does not fail the run; 1% by default. */
  readonly maxUnanswered?: Share | undefined;
  /** Timeout of each call. */
  readonly callTimeout?: Duration | undefined;
  /** Timeout of the whole run, whatever its progress; on a cluster from its acceptance. */
  readonly timeout?: Duration | undefined;
  /** Accepts any TLS certificate. */
  readonly insecure?: boolean | undefined;
  /** Sends a W3C traceparent header: in all iterations, or in this share of them. */
  readonly traceparent?: boolean | number | undefined;
  /** Runs only these flows, mixes or workflows of a file, by name. */
  readonly only?: readonly string[] | undefined;
  /** Random seed of the run. */
  readonly seed?: string | undefined;
  /** Environment variables for the file. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** CPU cores to plan for; the physical cores of the machine by default. */
  readonly cores?: number | undefined;
  /** Thresholds of the whole run, besides those of the workflows. */
  readonly thresholds?: readonly string[] | undefined;
  /** Ends as soon as any threshold fails; a duration: but not before this much measured time. */
  readonly abortOnFail?: boolean | Duration | undefined;
  /** Title of this run in its results. */
  readonly title?: string | undefined;
  /** Tags of the results. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
  /** Destinations of results: "influxdb=http://…" as for the flag, or a reporter of your own. */
  readonly report?: readonly (string | Reporter)[] | undefined;
  /** Only with a URL. */
  readonly method?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | undefined;
  /** Opens a debugger port in each executor core; disables time limits. */
  readonly inspect?: boolean | undefined;
  /** Aborting it ends the run gracefully, with results. */
  readonly signal?: AbortSignal | undefined;
  /** How the run was started, for its results. */
  readonly command?: string | undefined;
}

const CORES_MAX = 1_024;

const OPTION_NAMES = Object.keys({
  vus: true,
  duration: true,
  rate: true,
  maxVus: true,
  maxRate: true,
  iterations: true,
  warmup: true,
  gracefulStop: true,
  maxUnanswered: true,
  callTimeout: true,
  timeout: true,
  insecure: true,
  traceparent: true,
  only: true,
  seed: true,
  env: true,
  cores: true,
  thresholds: true,
  abortOnFail: true,
  title: true,
  tags: true,
  report: true,
  method: true,
  headers: true,
  body: true,
  inspect: true,
  signal: true,
  command: true,
} satisfies Record<keyof RunOptions, true>);

/** Rejects meaningless options before anything starts. */
export function overridesOf(options: RunOptions): LoadOverrides {
  checkShape(options);
  if (options.rate !== undefined && options.vus !== undefined)
    throw new RunError("rate and vus exclude each other; with a rate, maxVus bounds the users", 2);
  if (options.iterations !== undefined && options.rate !== undefined)
    throw new RunError("iterations and rate exclude each other", 2);
  if (options.cores !== undefined) whole("cores", options.cores, CORES_MAX);
  for (const name of ["vus", "maxVus", "iterations"] as const)
    if (options[name] !== undefined) whole(name, options[name], Number.MAX_SAFE_INTEGER);
  for (const name of ["rate", "maxRate"] as const) {
    const value = options[name];
    if (value !== undefined && !(Number.isFinite(value) && value > 0))
      throw new RunError(`${name} is ${value}; it must be a number above 0`, 2);
  }
  const given = {
    vus: options.vus,
    durationMs: milliseconds("duration", options.duration),
    rate: options.rate,
    maxVus: options.maxVus,
    maxRate: options.maxRate,
    iterations: options.iterations,
    warmupMs: milliseconds("warmup", options.warmup, 0),
    gracefulStopMs: milliseconds("gracefulStop", options.gracefulStop, 0),
    unansweredMax: unansweredMax(options),
    timeoutMs: milliseconds("callTimeout", options.callTimeout),
    insecure: options.insecure,
    tracedShare: tracedShare(options),
    only: options.only,
    seed: options.seed,
    env: options.env,
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** Checks what the compiler would: programs may be JavaScript. */
function checkShape(options: RunOptions): void {
  const report: unknown = options.report;
  if (report !== undefined && !Array.isArray(report))
    throw new RunError("report must be a list of texts and reporters", 2);
  const stray = Object.keys(options).find((name) => !OPTION_NAMES.includes(name));
  if (stray !== undefined)
    throw new RunError(`run: there is no option "${stray}"${didYouMean(stray, OPTION_NAMES)}`, 2);
  for (const name of ["only", "thresholds"] as const) {
    const list: unknown = options[name];
    const texts = Array.isArray(list) && list.every((one) => typeof one === "string");
    if (list !== undefined && !texts) throw new RunError(`${name} must be a list of texts`, 2);
  }
}

function unansweredMax({ maxUnanswered }: RunOptions): number | undefined {
  if (maxUnanswered === undefined) return undefined;
  const share = parseShare(maxUnanswered);
  if (share !== null) return share;
  throw new RunError(
    `maxUnanswered is "${maxUnanswered}"; it must be a share such as "5%" or 0.05`,
    2,
  );
}

function tracedShare({ traceparent }: RunOptions): number | undefined {
  if (typeof traceparent === "boolean") return traceparent ? 1 : 0;
  if (traceparent === undefined || (traceparent >= 0 && traceparent <= 1)) return traceparent;
  throw new RunError(`traceparent is ${traceparent}; it must be a share from 0 to 1, or true`, 2);
}

/** When failing thresholds begin to end the run; null when they do not. */
export function abortAfterMs({ abortOnFail }: RunOptions): number | null {
  if (abortOnFail === undefined || abortOnFail === false) return null;
  return abortOnFail === true ? 0 : (milliseconds("abortOnFail", abortOnFail, 0) ?? 0);
}

export function runTimeoutMs({ timeout }: RunOptions): number | null {
  return milliseconds("timeout", timeout) ?? null;
}

export function checkThresholds(expressions: readonly string[]): void {
  for (const text of expressions) {
    const parsed = parseThreshold(text);
    if (!parsed.ok) throw new RunError(`threshold "${text}": ${parsed.problem}`, 2);
  }
}

/** A URL has a scheme; everything else names a file. */
export function isUrl(target: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(target);
}

export function checkFileOptions({ body, headers, method }: RunOptions): void {
  if (body !== undefined || headers !== undefined || method !== undefined)
    throw new RunError("method, headers and body only go with a URL, not with a file", 2);
}

function milliseconds(
  name: string,
  value: Duration | undefined,
  least = Number.MIN_VALUE,
): number | undefined {
  if (value === undefined) return undefined;
  const parsed = parseDuration(value);
  if (!parsed.ok) throw new RunError(`${name}: ${parsed.problem}`, 2);
  if (parsed.ms < least) throw new RunError(`${name} must be more than zero`, 2);
  return parsed.ms;
}

function whole(name: string, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return;
  throw new RunError(`${name} is ${value}; it must be a whole number of at least 1`, 2);
}
