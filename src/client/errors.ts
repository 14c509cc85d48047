/** Errors of a cluster's client. */

import type { RefusalReason } from "../core/cluster/messages.ts";

/** Options that a cluster rejects, with the reason. */
export class ClusterError extends Error {
  override readonly name = "ClusterError";
  /** Null: no answer. */
  readonly reason: RefusalReason | null;

  constructor(message: string, reason: RefusalReason | null) {
    super(message);
    this.reason = reason;
  }

  /** Whether a retry may succeed: no answer, or no leader was found. */
  get isPassing(): boolean {
    return this.reason === null || this.reason === "retry" || this.reason === "notLeader";
  }
}
