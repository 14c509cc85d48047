/**
 * How long a leader may act: until `leaseMs` after it *sent* the newest heartbeat that a quorum has
 * acked. Counting from the sending, on one clock, makes the answer safe whatever the acks' way took.
 */

import type { NodeId } from "../../base/ids.ts";
import type { ElectionConfig } from "./config.ts";
import type { ElectionRules } from "./rules.ts";

interface Beat {
  readonly sequence: number;
  readonly at: number;
  readonly ackedBy: NodeId[];
}

/** Heartbeats awaiting their quorum; older ones can no longer extend the lease. */
const BEATS_OPEN_MAX = 16;

export class LeaderLease {
  readonly #config: ElectionConfig;
  readonly #quorum: number;
  readonly #rules: ElectionRules;
  #beats: Beat[] = [];
  #sequence = 0;
  #until = Number.NEGATIVE_INFINITY;
  #begunAt = Number.NEGATIVE_INFINITY;

  constructor(config: ElectionConfig, quorum: number, rules: ElectionRules) {
    this.#config = config;
    this.#quorum = quorum;
    this.#rules = rules;
  }

  begin(now: number): void {
    this.end();
    this.#begunAt = now;
  }

  end(): void {
    this.#beats = [];
    this.#until = Number.NEGATIVE_INFINITY;
  }

  /** Sequences go on across terms, so that an ack of an earlier leadership never matches. */
  sent(now: number): number {
    this.#sequence++;
    this.#beats.push({ sequence: this.#sequence, at: now, ackedBy: [] });
    if (this.#beats.length > BEATS_OPEN_MAX) this.#beats.shift();
    return this.#sequence;
  }

  acked(from: NodeId, sequence: number, now: number): void {
    for (const beat of this.#beats) {
      // An ack of a later heartbeat vouches for the earlier ones too.
      if (beat.sequence > sequence) break;
      if (beat.ackedBy.includes(from) && this.#rules.votersDistinct) continue;
      beat.ackedBy.push(from);
      if (beat.ackedBy.length < this.#quorum) continue;
      const start = this.#rules.leaseFromSend ? beat.at : now;
      this.#until = Math.max(this.#until, start + this.#config.leaseMs);
    }
    this.#beats = this.#beats.filter(
      (beat) => beat.ackedBy.length < this.#quorum || !this.#rules.leaseFromSend,
    );
  }

  until(): number {
    return this.#until;
  }

  /** When a leader without renewal gives up: at the end of its lease, or of the grace to win a first one. */
  lossAt(): number {
    return Math.max(this.#until, this.#begunAt + this.#config.leaderTimeoutMs);
  }
}
