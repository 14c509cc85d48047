/**
 * Sessions: where a read may be served so that a client sees what it was promised. (SESS-1 to SESS-4)
 *
 *     EVENTUAL            local, whatever it holds
 *     SESSION             local if it holds what this session wrote and read of the job, else the authority
 *     BOUNDED_STALENESS   local if the primary was heard within X ms, else the authority
 *     STRONG              the primary, confirmed by a quorum; never from local state alone (VSR-24)
 *
 * A session remembers, per job, the place its own write was committed at and the time it last read. Both
 * maps are bounded; once something had to be forgotten, jobs that are not remembered go to the
 * authority: slower, and never wrong.
 */

import { compareStamps, type HlcStamp } from "../../base/hlc.ts";
import type { SessionConfig } from "./config.ts";
import type { JobId } from "./job-id.ts";

export type ReadLevel = "EVENTUAL" | "SESSION" | "BOUNDED_STALENESS" | "STRONG";

export const READ_LEVELS: readonly ReadLevel[] = [
  "EVENTUAL",
  "SESSION",
  "BOUNDED_STALENESS",
  "STRONG",
];

/** What kind of read this is decides its level unless the caller does. (SESS-4) */
export const DEFAULT_READ_LEVELS = {
  operation: "SESSION",
  dashboard: "EVENTUAL",
  statusVerification: "STRONG",
} as const satisfies Readonly<Record<string, ReadLevel>>;

/** What the asked replica holds of the job. */
export interface ReplicaView {
  readonly isPrimary: boolean;
  /** -1: nothing of this job. */
  readonly appliedSeq: number;
  readonly appliedHlc: HlcStamp | null;
  /** How long ago the primary was last heard, on the replica's own monotonic clock; null: never. */
  readonly primaryHeardMsAgo: number | null;
}

export type ReadDecision =
  | { readonly serve: "local" }
  /** The primary confirms its view with a quorum round, then answers. */
  | { readonly serve: "quorumRead" }
  | { readonly serve: "forward"; readonly why: string };

/** Where a read stood. The place orders states of one job, also where two of them have one time. */
interface Seen {
  readonly seq: number;
  readonly hlc: HlcStamp;
}

const LOCAL: ReadDecision = { serve: "local" };

export class Session {
  readonly #config: SessionConfig;
  readonly #written = new Map<JobId, number>();
  readonly #read = new Map<JobId, Seen>();
  #hasForgotten = false;

  constructor(config: SessionConfig) {
    this.#config = config;
  }

  get sizes(): { readonly written: number; readonly read: number } {
    return { written: this.#written.size, read: this.#read.size };
  }

  /** A write of this session was committed at `seq`. */
  wrote(jobId: JobId, seq: number): void {
    const known = this.#written.get(jobId) ?? -1;
    this.#remember(this.#written, jobId, Math.max(known, seq));
  }

  /** A read was answered from a replica at this place and time, wherever that was. */
  observed(jobId: JobId, appliedSeq: number, hlc: HlcStamp | null): void {
    const last = this.#read.get(jobId);
    if (hlc !== null) {
      const isOlder = last !== undefined && compareStamps(hlc, last.hlc) < 0;
      const newest = isOlder ? last.hlc : hlc;
      this.#remember(this.#read, jobId, {
        seq: Math.max(appliedSeq, last?.seq ?? -1),
        hlc: newest,
      });
    }
    // SESS-2: what was read covers what was written; from here on the read's time guards it.
    if (appliedSeq >= (this.#written.get(jobId) ?? Number.POSITIVE_INFINITY)) {
      this.#written.delete(jobId);
    }
  }

  decide(
    jobId: JobId,
    level: ReadLevel,
    replica: ReplicaView,
    stalenessMs: number = this.#config.stalenessMs,
  ): ReadDecision {
    switch (level) {
      case "EVENTUAL":
        return LOCAL;
      case "SESSION":
        return this.#decideSession(jobId, replica);
      case "BOUNDED_STALENESS":
        return decideBounded(replica, stalenessMs);
      case "STRONG":
        return replica.isPrimary
          ? { serve: "quorumRead" }
          : { serve: "forward", why: "only the primary answers strong reads" };
    }
  }

  #decideSession(jobId: JobId, replica: ReplicaView): ReadDecision {
    const written = this.#written.get(jobId);
    const read = this.#read.get(jobId);
    if (this.#hasForgotten && written === undefined && read === undefined) {
      return { serve: "forward", why: "the session no longer knows what it saw of this job" };
    }
    if (written !== undefined && replica.appliedSeq < written) {
      return { serve: "forward", why: "the session's own write is not applied here yet" };
    }
    if (read !== undefined && isBehind(replica, read)) {
      return { serve: "forward", why: "the session has read newer than this replica" };
    }
    return LOCAL;
  }

  /** The newest is last; the oldest goes when there are too many. */
  #remember<Value>(map: Map<JobId, Value>, jobId: JobId, value: Value): void {
    map.delete(jobId);
    map.set(jobId, value);
    if (map.size <= this.#config.jobsMax) return;
    for (const oldest of map.keys()) {
      map.delete(oldest);
      this.#hasForgotten = true;
      return;
    }
  }
}

function isBehind({ appliedHlc, appliedSeq }: ReplicaView, { hlc, seq }: Seen): boolean {
  return appliedSeq < seq || appliedHlc === null || compareStamps(appliedHlc, hlc) < 0;
}

function decideBounded(replica: ReplicaView, stalenessMs: number): ReadDecision {
  // The primary itself is as stale as the last quorum it heard: to itself it must prove nothing less.
  const heard = replica.primaryHeardMsAgo;
  if (heard !== null && heard <= stalenessMs) return LOCAL;
  const since = heard === null ? "was never heard" : `was heard ${heard} ms ago`;
  return { serve: "forward", why: `the primary ${since}, allowed are ${stalenessMs} ms` };
}
