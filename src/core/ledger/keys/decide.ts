/**
 * Decides about a keyed submission, from a shard's applied state and the proposals of this primary that are not yet
 * applied. Pure: nothing changes here. (IDEM-21, IDEM-23)
 */

import { assertNever } from "../../base/assert.ts";
import { encodeUtf8 } from "../../base/bytes.ts";
import type { NodeId } from "../../base/ids.ts";
import type { IdempotencyKey } from "./key.ts";
import type { ShardOutcome, ShardState } from "./shard.ts";
import type { ShardEntry } from "./shard-entry.ts";

export interface Submission {
  readonly key: IdempotencyKey;
  readonly fingerprint: Uint8Array;
  /** Validation, capacity, placement and the new job's id. Called once at most, and only for an absent key. */
  readonly admit: () => Admission;
}

export type Admission =
  | {
      readonly kind: "accept";
      readonly jobId: string;
      readonly replicaSet: readonly NodeId[];
      readonly created: Uint8Array;
      readonly ack: Uint8Array;
    }
  /** Deterministic: invalid, not allowed. The same for every retry. */
  | { readonly kind: "refuse"; readonly result: Uint8Array }
  /** For now: no capacity, no quorum, an open circuit. Never stored. (IDEM-8) */
  | { readonly kind: "defer"; readonly why: string };

export type SubmissionAnswer =
  | {
      readonly kind: "accepted";
      readonly jobId: string;
      readonly ack: Uint8Array;
      readonly duplicate: boolean;
    }
  | { readonly kind: "rejected"; readonly result: Uint8Array; readonly duplicate: boolean }
  | { readonly kind: "keyReused" }
  /** Nothing is known to be decided; the same key must be sent again. */
  | { readonly kind: "retry"; readonly why: string };

type Decision =
  | { readonly kind: "answer"; readonly answer: SubmissionAnswer }
  /** Propose, and answer when the entry is applied. */
  | { readonly kind: "propose"; readonly entry: ShardEntry }
  /** The key is in flight: answer with that one. */
  | { readonly kind: "wait" };

/** Proposals in flight at a primary, beside the applied state. */
interface InFlight {
  has(key: IdempotencyKey): boolean;
  /** Keys proposed and not applied. */
  readonly size: number;
  /** Bytes of their JobCreated events. */
  readonly createdBytes: number;
}

interface ShardLimits {
  readonly entriesMax: number;
  /** Size limit of JobCreated events kept for jobs that are not founded yet. */
  readonly createdBytesMax: number;
}

/** At the primary. `time` is the shard's own, and written into the entry. */
export function decideSubmission(
  state: ShardState,
  inFlight: InFlight,
  submission: Submission,
  time: number,
  limits: ShardLimits,
): Decision {
  const known = state.outcomeOf(submission.key, submission.fingerprint);
  if (known !== null) return answer(answerOf(known, submission, state));
  if (inFlight.has(submission.key)) return { kind: "wait" };
  // IDEM-19: entries within their TTL are never evicted; new keys wait outside.
  if (state.size + inFlight.size >= limits.entriesMax) return retry("the shard is full");
  const admission = submission.admit();
  const { key, fingerprint } = submission;
  switch (admission.kind) {
    case "accept": {
      const held = state.createdBytes + inFlight.createdBytes + admission.created.length;
      if (held > limits.createdBytesMax) return retry("too many jobs are being founded");
      const { jobId, replicaSet, created, ack } = admission;
      const entry = { key, fingerprint, jobId, replicaSet, created, ack, at: time } as const;
      return { kind: "propose", entry: { kind: "reserved", ...entry } };
    }
    case "refuse": {
      if (!state.rules.refusalsStored) {
        return answer({ kind: "rejected", result: admission.result, duplicate: false });
      }
      const entry = { key, fingerprint, result: admission.result, at: time } as const;
      return { kind: "propose", entry: { kind: "rejected", ...entry } };
    }
    case "defer": {
      if (state.rules.transientNeverStored) return retry(admission.why);
      const entry = { key, fingerprint, result: encodeUtf8(admission.why), at: time } as const;
      return { kind: "propose", entry: { kind: "rejected", ...entry } };
    }
    default:
      return assertNever(admission);
  }
}

/** Returns the answer that a known key gives to another submission of it. */
export function answerOf(
  outcome: ShardOutcome,
  submission: Submission,
  state: ShardState,
): SubmissionAnswer {
  if (outcome.kind === "keyReused") return { kind: "keyReused" };
  if (outcome.kind === "rejected") {
    return { kind: "rejected", result: outcome.result, duplicate: !outcome.first };
  }
  if (outcome.kind !== "duplicate") return { kind: "retry", why: "the shard is full" };
  if (!state.rules.canonicalJob) {
    const own = submission.admit();
    if (own.kind === "accept") return accepted(own, true);
  }
  return accepted(outcome, true);
}

export function accepted(
  job: { readonly jobId: string; readonly ack: Uint8Array },
  duplicate: boolean,
): SubmissionAnswer {
  return { kind: "accepted", jobId: job.jobId, ack: job.ack, duplicate };
}

function answer(value: SubmissionAnswer): Decision {
  return { kind: "answer", answer: value };
}

function retry(why: string): Decision {
  return answer({ kind: "retry", why });
}
