/**
 * Which gate leads a job, as each gate sees it: the ring names the first owner, a lease confirms that
 * it is active, a fence token orders owners. Gates tell each other of claims and renewals, and each
 * measures expiry from its own receipt. (LEASE-1 to LEASE-6, FENCE-1 to FENCE-4)
 *
 *     claimed --first renewal--> active --no renewal for 30 s, or owner dead--> expired --claim, fence + 1--> claimed
 *
 * The lease is not the safety: a receiver refuses lower fence tokens whatever anyone believes.
 */

import { assert } from "../../base/assert.ts";
import type { NodeId } from "../../base/ids.ts";

export const JOB_LEASE_MS = 30_000;
/** Renewed every third, so that two may be lost. */
export const JOB_LEASE_RENEW_MS = JOB_LEASE_MS / 3;
/** The holder stops this much before the others would take over: clocks drift, messages take time. */
export const JOB_LEASE_MARGIN_MS = 2_000;
export const JOB_LEASES_MAX = 100_000;

export interface JobLeaseSync {
  readonly job: string;
  readonly owner: NodeId;
  readonly backup: NodeId | null;
  readonly fence: number;
}

export type FenceAnswer = "accepted" | "adopted" | "stale" | "unknown";

interface Held {
  owner: NodeId;
  backup: NodeId | null;
  fence: number;
  /** Own clock: when the claim or renewal was sent (by us) or received (from others). */
  renewedAt: number;
  state: "claimed" | "active";
}

export interface JobLeaseSurroundings {
  /** Gates in ring order for a job, owner first. */
  readonly ringOrder: (job: string) => readonly NodeId[];
  readonly isAlive: (gate: NodeId) => boolean;
  /** AD-13: without a quorum of gates in sight nobody claims. */
  readonly hasQuorum: () => boolean;
}

export class JobLeases {
  readonly #self: NodeId;
  readonly #around: JobLeaseSurroundings;
  readonly #held = new Map<string, Held>();

  constructor(self: NodeId, around: JobLeaseSurroundings) {
    this.#self = self;
    this.#around = around;
  }

  get size(): number {
    return this.#held.size;
  }

  /** First submission at the ring's owner. Null: not ours to claim, or no quorum, or full. */
  claim(job: string, now: number): JobLeaseSync | null {
    if (!this.#around.hasQuorum() || this.#held.size >= JOB_LEASES_MAX) return null;
    const known = this.#held.get(job);
    if (known !== undefined) return this.#takeOver(job, known, now);
    if (this.#firstAlive(job) !== this.#self) return null;
    return this.#hold(job, 1, now);
  }

  #takeOver(job: string, known: Held, now: number): JobLeaseSync | null {
    if (known.owner === this.#self) return null;
    const lost = this.#isExpired(known, now) || !this.#around.isAlive(known.owner);
    if (!lost || this.#successor(job, known) !== this.#self) return null;
    return this.#hold(job, known.fence + 1, now);
  }

  #hold(job: string, fence: number, now: number): JobLeaseSync {
    const owner = this.#self;
    const backup = this.#around.ringOrder(job).find((gate) => gate !== owner) ?? null;
    this.#held.set(job, { owner, backup, fence, renewedAt: now, state: "claimed" });
    return { job, owner, backup, fence };
  }

  /** The named backup, or the next live gate in ring order when that is gone too. */
  #successor(job: string, known: Held): NodeId | null {
    if (known.backup !== null && this.#around.isAlive(known.backup)) return known.backup;
    const order = this.#around.ringOrder(job);
    return order.find((gate) => gate !== known.owner && this.#around.isAlive(gate)) ?? null;
  }

  #firstAlive(job: string): NodeId | null {
    return this.#around.ringOrder(job).find((gate) => this.#around.isAlive(gate)) ?? null;
  }

  /** Only the owner renews, and only while it still holds. (LEASE-2) */
  renew(job: string, now: number): JobLeaseSync | null {
    const held = this.#held.get(job);
    if (held === undefined || !this.mayAct(job, now)) return null;
    assert(held.owner === this.#self, "only the owner renews");
    held.renewedAt = now;
    held.state = "active";
    return { job, owner: held.owner, backup: held.backup, fence: held.fence };
  }

  /** The owner's own belief ends before anyone else's. (L4) */
  mayAct(job: string, now: number): boolean {
    const held = this.#held.get(job);
    if (held === undefined || held.owner !== this.#self) return false;
    return now < held.renewedAt + JOB_LEASE_MS - JOB_LEASE_MARGIN_MS;
  }

  /** A claim or renewal of another gate. */
  onSync(sync: JobLeaseSync, now: number): FenceAnswer {
    const held = this.#held.get(sync.job);
    if (held !== undefined && sync.fence < held.fence) return "stale";
    // L1: one holder per fence. Of two claims with one token, the smaller id stands everywhere.
    if (held !== undefined && sync.fence === held.fence && sync.owner > held.owner) return "stale";
    const adopted = held === undefined || held.owner !== sync.owner || held.fence < sync.fence;
    const { owner, backup, fence } = sync;
    const state = adopted ? "claimed" : "active";
    this.#held.set(sync.job, { owner, backup, fence, renewedAt: now, state });
    return adopted ? "adopted" : "accepted";
  }

  /** A job message's token against what we know. (FENCE table) */
  checkFence(job: string, fence: number): FenceAnswer {
    const held = this.#held.get(job);
    if (held === undefined) return "unknown";
    if (fence < held.fence) return "stale";
    return fence === held.fence ? "accepted" : "adopted";
  }

  /** Leases of finished jobs are released. (LEASE-6) */
  release(job: string): void {
    this.#held.delete(job);
  }

  ownerOf(job: string): { readonly owner: NodeId; readonly fence: number } | null {
    const held = this.#held.get(job);
    return held === undefined ? null : { owner: held.owner, fence: held.fence };
  }

  #isExpired(held: Held, now: number): boolean {
    return now >= held.renewedAt + JOB_LEASE_MS;
  }
}
