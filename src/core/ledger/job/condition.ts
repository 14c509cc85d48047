/**
 * On what an event depends. Between what its writer saw of the job and the place where the event is
 * committed others may have been faster, or the writer may have been deposed as owner: then the event
 * must change nothing. The condition is part of the event, so every replica judges it alike, at the
 * event's own place. (VSR-32)
 */

export interface Condition {
  /** Nothing may have changed the job after this place; null: whatever has happened. */
  readonly ifSeq: number | null;
  /** The event must be accepted by the primary of this view, whose fence it is; null: by any. */
  readonly ifFence: number | null;
}

/** Why a condition does not hold: the job has moved on, or it has another owner. */
export type ConditionFailure = "SEQ_MOVED" | "FENCE_MOVED";

/** An event with its condition, and the fence of the primary that took it. */
interface Conditional {
  readonly condition?: Condition;
  readonly fenceToken: number;
}

/** Judged at the event's place, before it is folded in; `changedSeq` is the last that changed the job. */
export function failureAt(
  changedSeq: number,
  { condition, fenceToken }: Conditional,
  seq: number,
): ConditionFailure | null {
  if (condition === undefined) return null;
  const { ifSeq, ifFence } = condition;
  if (ifFence !== null && ifFence !== fenceToken) return "FENCE_MOVED";
  // No client can have seen an index that does not exist yet.
  if (ifSeq !== null && (changedSeq > ifSeq || ifSeq >= seq)) return "SEQ_MOVED";
  return null;
}

/**
 * Condition failures that the primary of this view may report before writing anything: those that no later index can
 * change. A fence above its own may belong to its successor, and an index above its own to a later entry.
 */
export function failureForever(
  changedSeq: number,
  { ifSeq, ifFence }: Condition,
  view: number,
): ConditionFailure | null {
  if (ifFence !== null && ifFence < view) return "FENCE_MOVED";
  return ifSeq !== null && changedSeq > ifSeq ? "SEQ_MOVED" : null;
}
