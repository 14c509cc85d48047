/**
 * A job that is behind gets its missing suffix: the events from the group's primary are folded on, and
 * the chain must then be the one the other side showed. Doing it again, or only a part of it before a
 * crash, changes nothing: places already folded are passed over. (AE-3, AE-5)
 */

import type { JobEvent } from "./events.ts";
import { advanceSeq, applyEvent, type JobState } from "./fold.ts";
import { type JobSummary, sameHash } from "./merkle.ts";

/** One committed place of a job's log; null where it holds no job event. */
export interface CommittedEntry {
  readonly seq: number;
  readonly event: JobEvent | null;
}

export type MergeResult =
  | { readonly kind: "merged"; readonly state: JobState }
  /** The events do not reach the wanted place without a hole; nothing was taken over. */
  | { readonly kind: "incomplete"; readonly missingSeq: number }
  /** Two different committed histories: a broken promise. Stop the group, raise an alarm. (LEDG-6) */
  | { readonly kind: "diverged" };

export function mergeSuffix(
  state: JobState,
  entries: Iterable<CommittedEntry>,
  wanted: JobSummary,
): MergeResult {
  let merged = state;
  for (const { event, seq } of entries) {
    if (seq <= merged.appliedSeq || seq > wanted.commitSeq) continue;
    const missingSeq = merged.appliedSeq + 1;
    if (seq !== missingSeq) return { kind: "incomplete", missingSeq };
    merged = event === null ? advanceSeq(merged, seq) : applyEvent(merged, event, seq).state;
  }
  if (merged.appliedSeq < wanted.commitSeq) {
    return { kind: "incomplete", missingSeq: merged.appliedSeq + 1 };
  }
  // Further than wanted already: nothing to compare the chain with.
  const isExact = merged.appliedSeq === wanted.commitSeq;
  if (isExact && !sameHash(merged.chain, wanted.chain)) return { kind: "diverged" };
  return { kind: "merged", state: merged };
}
