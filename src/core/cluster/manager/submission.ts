/**
 * Encoding and validation of submissions, down to the last field that a manager reads. A client sends one as JSON and
 * may be of another version or malicious: a valid submission can be ordered, placed, driven and summarised, so that no
 * committed job crashes the managers that lead it.
 */

import { encodePlain, plainProblem } from "../../base/plain-value.ts";
import { validateManifests, withParts } from "../../load/job/manifest.ts";
import { PRIORITIES } from "../../load/job/partition.ts";
import { planVusMax } from "../../load/plan/load.ts";
import { formatCounted } from "../../load/results/format.ts";
import { parseThreshold } from "../../load/results/thresholds.ts";
import { JOB_FILES_MAX, type Routing, type Submission } from "../messages.ts";
import type { JobNeeds } from "./datacenter-state.ts";
import {
  decodeShape,
  isBoolean,
  isFiniteNumber,
  isText,
  isWhole,
  listOf,
  mapOf,
  oneOf,
  optional,
  orNull,
  record,
  type Shape,
  variant,
} from "./shapes.ts";
import { tenantProblem } from "./tenants.ts";

const isPositive: Shape = (value) => isFiniteNumber(value) && Number(value) > 0;

const stages = listOf(
  record({ durationMs: isFiniteNumber, from: isFiniteNumber, to: isFiniteNumber }),
);
const throttle = { rateMax: optional(isFiniteNumber) };
const iterations = record({
  vus: isWhole,
  iterations: isWhole,
  durationMsMax: isFiniteNumber,
  ...throttle,
});

const load = variant({
  vus: record({ stages, ...throttle }),
  rate: record({ stages, vusMax: isWhole, poisson: optional(isBoolean) }),
  search: record({
    ...{ vusMax: isWhole, durationMsMax: isFiniteNumber, of: oneOf("vus", "rate") },
    ...{
      from: isFiniteNumber,
      to: isFiniteNumber,
      settleMs: isFiniteNumber,
      drainMs: isFiniteNumber,
      holdMs: isFiniteNumber,
      precision: isFiniteNumber,
    },
  }),
  shared: iterations,
  perUser: iterations,
  once: record({ durationMsMax: isFiniteNumber }),
});

const step = record({
  ...{ name: isText, kind: oneOf("step", "action"), protocol: isText },
  ...{ after: listOf(isText), layer: isWhole, tags: mapOf(isText) },
});

const manifestFields = {
  ...{
    name: isText,
    load,
    startAfterMs: isFiniteNumber,
    warmupMs: isFiniteNumber,
    gracefulStopMs: isFiniteNumber,
    unansweredMax: optional(isFiniteNumber),
  },
  ...{ setupMsMax: isFiniteNumber, teardownMsMax: isFiniteNumber, priority: oneOf(...PRIORITIES) },
  ...{ dependsOn: listOf(isText), isTest: isBoolean, corrected: isBoolean },
  mix: orNull(record({ name: isText, share: isFiniteNumber })),
  flow: orNull(record({ patterns: listOf(isText), series: listOf(isText) })),
  steps: listOf(step),
  checks: listOf(isText),
  metrics: listOf(record({ name: isText, kind: oneOf("counter", "gauge", "rate", "trend") })),
  provides: listOf(record({ key: isText, to: listOf(isText) })),
  uses: listOf(record({ name: isText, from: listOf(isText), keys: listOf(isText) })),
  thresholds: listOf(
    record({ expression: isText, abortOnFail: isBoolean, afterMs: isFiniteNumber }),
  ),
  connectionsMax: isFiniteNumber,
  targets: listOf(record({ to: orNull(isText), perUser: isFiniteNumber, perCore: isFiniteNumber })),
  part: optional(
    record({
      ...{ index: isWhole, count: isWhole, weights: listOf(isPositive) },
      ...{ firstUser: isWhole, users: isWhole, firstIteration: isWhole },
      iterations: optional(listOf(isWhole)),
    }),
  ),
  joint: optional(oneOf("first", "other")),
};

const manifest: Shape = record({
  ...manifestFields,
  // A flow of a mix has no flows of its own.
  parts: listOf(record({ ...manifestFields, parts: listOf(() => false) })),
});

const isSubmission: Shape = record({
  ...{ name: isText, title: orNull(isText), tags: mapOf(isText), command: isText, version: isText },
  manifests: listOf(manifest),
  entry: isText,
  files: listOf(record({ path: isText, hash: isText, bytes: isWhole })),
  overrides: record({}),
  thresholds: listOf(isText),
  ...{
    abortAfterMs: orNull(isFiniteNumber),
    timeoutMs: orNull(isFiniteNumber),
    cores: orNull(isWhole),
    held: isBoolean,
  },
  tenant: optional(orNull(isText)),
});

export function encodeSubmission(submission: Submission): Uint8Array {
  return encodePlain(submission);
}

export function decodeSubmission(bytes: Uint8Array): Submission | null {
  return decodeShape<Submission>(bytes, isSubmission);
}

/**
 * Identity of a job: its files, plan and requested resources. Excludes how it was requested: the command line, the path
 * as typed, the client's version, the order of flags.
 */
export function identityOf(submission: Submission): unknown {
  const { command: _command, name: _name, tenant, version: _version, ...job } = submission;
  // Jobs without a tenant keep the identity they had before tenants existed.
  const of = tenant === null || tenant === undefined ? {} : { tenant };
  return sortedFields({ ...job, ...of, thresholds: [...job.thresholds].sort() });
}

/** Sorts the fields, so that their order does not matter. */
function sortedFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedFields);
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([name, one]) => [name, sortedFields(one)]));
}

export function needsOf({ cores, manifests, tenant = null, timeoutMs }: Submission): JobNeeds {
  const users = manifests.map(({ isTest, load: plan }) => (isTest ? planVusMax(plan) : 1));
  const usefulCores = users.reduce((sum, count) => sum + Math.ceil(count), 0);
  return { cores, usefulCores, timeoutMs, tenant };
}

/** Why a submission is rejected, for its sender. */
export function submissionProblem(submission: Submission): string | null {
  if (plainProblem(submission) !== null || !isSubmission(submission))
    return "the submission lacks something or is of another version";
  const { entry, files, manifests, tenant = null } = submission;
  const unnamed = tenantProblem(tenant);
  if (unnamed !== null) return unnamed;
  if (manifests.length === 0) return "the job has no workflow";
  if (files.length > JOB_FILES_MAX)
    return `the job has ${files.length} files; at most ${JOB_FILES_MAX} are allowed`;
  if (!files.some(({ path }) => path === entry)) return `the files of the job lack ${entry}`;
  const [problem] = validateManifests(manifests);
  return problem?.severity === "error" ? problem.message : thresholdProblem(submission);
}

function thresholdProblem({ manifests, thresholds }: Submission): string | null {
  const own = withParts(manifests).flatMap((one) => one.thresholds);
  for (const text of [...thresholds, ...own.map(({ expression }) => expression)]) {
    const parsed = parseThreshold(text);
    if (!parsed.ok) return `threshold "${text}": ${parsed.problem}`;
  }
  return null;
}

/** Why a job can never be routed as requested; null when it can. */
export function routingProblem(
  { count, datacenters, prefer, strict, weights }: Routing,
  known: readonly string[],
): string | null {
  const named = [...datacenters, ...prefer, ...weights.map(({ datacenter }) => datacenter)];
  const there = `there are ${known.join(", ")}`;
  const unknown = named.find((name) => !known.includes(name));
  if (unknown !== undefined) return `there is no datacenter "${unknown}": ${there}`;
  if (new Set(datacenters).size < datacenters.length) return "a datacenter is named twice";
  if (count < 1 || count > known.length)
    return `it is to run in ${formatCounted(count, "datacenter")}: ${there}`;
  if (strict && prefer.length < count) return "strict: more datacenters than are preferred";
  if (weights.some(({ weight }) => weight <= 0)) return "a part of the plan is more than nothing";
  const unused = weights.find(({ datacenter }) => !datacenters.includes(datacenter));
  if (unused !== undefined) return `"${unused.datacenter}" has a part and is not among those named`;
  const left = datacenters.find((name) => !weights.some(({ datacenter }) => datacenter === name));
  return weights.length > 0 && left !== undefined ? `"${left}" has no part of the plan` : null;
}
