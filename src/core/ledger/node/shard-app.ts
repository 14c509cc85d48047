/** An idempotency shard's group: its entries reserve keys, its state knows which job each key is. */

import type { GroupSnapshot, LogEntry } from "../group/messages.ts";
import type { IdempotencyConfig } from "../keys/config.ts";
import type { Moment } from "../keys/moment.ts";
import type { IdempotencyRules } from "../keys/rules.ts";
import { type ShardOutcome, ShardState } from "../keys/shard.ts";
import { decodeShardEntry, type ShardEntry } from "../keys/shard-entry.ts";
import { decodeShardState, encodeShardState } from "../keys/shard-snapshot.ts";
import { ShardWaiters } from "../keys/shard-waiters.ts";
import type { Reply } from "./reply.ts";

interface AppliedShardEntry {
  readonly entry: ShardEntry;
  readonly outcome: ShardOutcome;
}

export class ShardApp {
  readonly kind = "shard";
  readonly index: number;
  state: ShardState;
  waiters: ShardWaiters<Reply>;
  /** Proposals of this node that the group has neither accepted nor rejected, by event; at most one full queue. */
  readonly proposed = new Map<string, ShardEntry>();
  #appliedSeq = -1;
  #since: Moment = { now: 0, time: 0 };
  readonly #config: IdempotencyConfig;
  readonly #rules: IdempotencyRules;

  constructor(index: number, config: IdempotencyConfig, rules: IdempotencyRules) {
    this.index = index;
    this.#config = config;
    this.#rules = rules;
    this.state = new ShardState(rules);
    this.waiters = new ShardWaiters(this.state, config);
  }

  /** This node leads the shard from now on, and its clock carries the shard's time on. */
  tookOver(now: number): void {
    this.#since = { now, time: this.state.clock };
  }

  /** The shard's own time: see `Moment`. */
  timeAt(now: number): number {
    const { now: from, time } = this.#since;
    return Math.max(this.state.clock, Math.floor(time + now - from));
  }

  apply(entry: LogEntry): AppliedShardEntry | null {
    this.#appliedSeq = entry.seq;
    if (entry.kind !== "op") return null;
    const decoded = decodeShardEntry(entry.data);
    if (decoded === null) return null;
    return { entry: decoded, outcome: this.state.apply(decoded, entry.seq) };
  }

  restore(snapshot: GroupSnapshot): boolean {
    const state = decodeShardState(snapshot.bytes, this.#rules);
    // Entries without an operation advance the log but not the shard.
    if (state === null || state.appliedSeq > snapshot.seq) return false;
    this.state = state;
    this.waiters = new ShardWaiters(state, this.#config);
    this.#appliedSeq = snapshot.seq;
    return true;
  }

  snapshot(): Uint8Array {
    return encodeShardState(this.state);
  }

  get appliedSeq(): number {
    return this.#appliedSeq;
  }
}
