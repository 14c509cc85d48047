/** What a job of the gates' ledger says about itself: the submission of its client, and where it is to run. */

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

/** In the place of a value that is not shown. */
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

/** Null: written by something else than a gate of this version. */
export function decodeSpec(bytes: Uint8Array): JobSpec | null {
  const spec = decodeShape<{ readonly submission: Uint8Array; readonly routing: Routing }>(
    bytes,
    isSpec,
  );
  const submission = spec === null ? null : decodeSubmission(spec.submission);
  return spec === null || submission === null ? null : { submission, routing: spec.routing };
}

/** In how many datacenters a job runs. */
export function countOf({ count, datacenters }: Routing): number {
  return datacenters.length > 0 ? datacenters.length : count;
}

/** What makes it the same job under one key: where it is to run as well. */
export function identityOfSpec(bytes: Uint8Array): Uint8Array {
  const spec = decodeSpec(bytes);
  if (spec === null) return bytes;
  return encodePlain({ job: identityOf(spec.submission), routing: spec.routing });
}

/** All its workflows one after the other, at the longest. */
export function planMsOf({ submission }: JobSpec): number {
  return submission.manifests.reduce((sum, { gracefulStopMs, load, startAfterMs, warmupMs }) => {
    const ms = "durationMsMax" in load ? load.durationMsMax : (planDurationMs(load) ?? 0);
    return sum + startAfterMs + warmupMs + ms + gracefulStopMs;
  }, 0);
}

/** The same description with the values of its variables (`-e`) left out: what anybody may be shown. */
export function redactSpec(bytes: Uint8Array): Uint8Array {
  const spec = decodeSpec(bytes);
  const env = spec?.submission.overrides.env;
  if (spec === null || env === undefined) return bytes;
  const { submission } = spec;
  const hidden = Object.fromEntries(Object.keys(env).map((name) => [name, REDACTED]));
  const overrides = { ...submission.overrides, env: hidden };
  return encodeSpec({ ...spec, submission: { ...submission, overrides } });
}
