/** Description of a job in the gates' ledger: the client's submission, and where it is to run. */

import { encodePlain } from "../../base/plain-value.ts";
import { planDurationMs } from "../../load/plan/load.ts";
import {
  decodeShape,
  isBoolean,
  isBytes,
  isFiniteNumber,
  isText,
  isWhole,
  listOf,
  record,
} from "../manager/shapes.ts";
import { decodeSubmission, encodeSubmission, identityOf } from "../manager/submission.ts";
import type { Routing, Submission } from "../messages.ts";

export interface JobSpec {
  readonly submission: Submission;
  readonly routing: Routing;
}

/** Placeholder of a redacted value. */
const REDACTED = "***";

const isRouting = record({
  datacenters: listOf(isText),
  count: isWhole,
  prefer: listOf(isText),
  strict: isBoolean,
  weights: listOf(record({ datacenter: isText, weight: isFiniteNumber })),
  each: isBoolean,
});
const isSpec = record({ submission: isBytes, routing: isRouting });

export function encodeSpec({ routing, submission }: JobSpec): Uint8Array {
  return encodePlain({ submission: encodeSubmission(submission), routing });
}

/** Null if not written by a gate of this version. */
export function decodeSpec(bytes: Uint8Array): JobSpec | null {
  const spec = decodeShape<{ readonly submission: Uint8Array; readonly routing: Routing }>(
    bytes,
    isSpec,
  );
  const submission = spec === null ? null : decodeSubmission(spec.submission);
  return spec === null || submission === null ? null : { submission, routing: spec.routing };
}

/** Number of datacenters of a job. */
export function countOf({ count, datacenters }: Routing): number {
  return datacenters.length > 0 ? datacenters.length : count;
}

/** Identity of a job under one key, including its routing. */
export function identityOfSpec(bytes: Uint8Array): Uint8Array {
  const spec = decodeSpec(bytes);
  if (spec === null) return bytes;
  return encodePlain({ job: identityOf(spec.submission), routing: spec.routing });
}

/** Longest duration of all workflows in sequence. */
export function planMsOf({ submission }: JobSpec): number {
  return submission.manifests.reduce((sum, { gracefulStopMs, load, startAfterMs, warmupMs }) => {
    const ms = "durationMsMax" in load ? load.durationMsMax : (planDurationMs(load) ?? 0);
    return sum + startAfterMs + warmupMs + ms + gracefulStopMs;
  }, 0);
}

/** Redacts the values of variables (`-e`), so that the description can be shown to anyone. */
export function redactSpec(bytes: Uint8Array): Uint8Array {
  const spec = decodeSpec(bytes);
  const env = spec?.submission.overrides.env;
  if (spec === null || env === undefined) return bytes;
  const { submission } = spec;
  const hidden = Object.fromEntries(Object.keys(env).map((name) => [name, REDACTED]));
  const overrides = { ...submission.overrides, env: hidden };
  return encodeSpec({ ...spec, submission: { ...submission, overrides } });
}
