/**
 * All known members, and the probe order. The order is a shuffled ring without ourselves: each live member comes up
 * once per round, newcomers enter at a random position, and the ring is reshuffled when it wraps. (SWIM 4.3)
 */

import { assert } from "../../base/assert.ts";
import type { Address, Incarnation, NodeId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { Coordinate } from "../vivaldi/coordinate.ts";
import type { MemberStatus, NodeRecord } from "./messages.ts";
import type { Suspicion } from "./suspicion.ts";

export interface Member {
  readonly id: NodeId;
  record: NodeRecord;
  status: MemberStatus;
  incarnation: Incarnation;
  changedAt: number;
  suspicion: Suspicion | null;
  /** Reached directly at least once; only such members are ever accused. (CONF-2) */
  confirmed: boolean;
  readonly learnedAt: number;
  /** Pings outside rounds since we learned of it. */
  greetings: number;
  /** Confirmation pings sent since the passive timeout ran out, and when the next is due. */
  confirmAttempts: number;
  confirmAt: number;
  warned: boolean;
  /** Last three round trips, newest last, and their smoothed mean. */
  rttSamples: number[];
  rttMs: number | null;
  coordinate: Coordinate | null;
  stateBoot: number;
  stateVersion: number;
}

export class MemberTable {
  readonly #self: NodeId;
  readonly #members = new Map<NodeId, Member>();
  readonly #byAddress = new Map<Address, NodeId>();
  readonly #order: Member[] = [];
  #next = 0;
  #liveCount = 0;
  #unconfirmedCount = 0;

  constructor(self: NodeId) {
    this.#self = self;
  }

  get size(): number {
    return this.#members.size;
  }

  /** Alive and suspect members that were reached at least once, ourselves included. (CONF-4) */
  get liveCount(): number {
    return this.#liveCount + 1;
  }

  get unconfirmedCount(): number {
    return this.#unconfirmedCount;
  }

  get(id: NodeId): Member | undefined {
    return this.#members.get(id);
  }

  atAddress(address: Address): Member | undefined {
    const id = this.#byAddress.get(address);
    return id === undefined ? undefined : this.#members.get(id);
  }

  all(): IterableIterator<Member> {
    return this.#members.values();
  }

  add(member: Member, random: Random): void {
    assert(member.id !== this.#self, "we are not in our own table");
    assert(!this.#members.has(member.id), "a member is added once");
    this.#members.set(member.id, member);
    this.#byAddress.set(member.record.address, member.id);
    if (counts(member)) this.#liveCount++;
    if (!member.confirmed) this.#unconfirmedCount++;
    const at = random.below(this.#order.length + 1);
    this.#order.splice(at, 0, member);
    if (at < this.#next) this.#next++;
  }

  remove(member: Member): void {
    this.#members.delete(member.id);
    if (this.#byAddress.get(member.record.address) === member.id) {
      this.#byAddress.delete(member.record.address);
    }
    if (counts(member)) this.#liveCount--;
    if (!member.confirmed) this.#unconfirmedCount--;
    const at = this.#order.indexOf(member);
    assert(at >= 0, "every member has a place in the probe order");
    this.#order.splice(at, 1);
    if (at < this.#next) this.#next--;
  }

  setStatus(member: Member, status: MemberStatus, now: number): void {
    const was = counts(member);
    member.status = status;
    member.changedAt = now;
    if (status !== "suspect") member.suspicion = null;
    const is = counts(member);
    if (was && !is) this.#liveCount--;
    if (!was && is) this.#liveCount++;
  }

  setRecord(member: Member, record: NodeRecord): void {
    if (member.record.address !== record.address) {
      if (this.#byAddress.get(member.record.address) === member.id) {
        this.#byAddress.delete(member.record.address);
      }
      this.#byAddress.set(record.address, member.id);
    }
    member.record = record;
  }

  confirm(member: Member): void {
    assert(!member.confirmed, "a member is confirmed once");
    member.confirmed = true;
    this.#unconfirmedCount--;
    if (isLive(member)) this.#liveCount++;
  }

  /** Next member to probe; null if a whole round finds none. */
  nextToProbe(random: Random): Member | null {
    for (let checked = 0; checked <= this.#order.length; checked++) {
      if (this.#next >= this.#order.length) {
        this.#next = 0;
        random.shuffle(this.#order);
      }
      const member = this.#order[this.#next++];
      // Strangers are greeted beside the rounds: a flood of names must not slow detection down.
      if (member !== undefined && isLive(member) && member.confirmed) return member;
    }
    return null;
  }

  /** Up to `count` distinct members that pass, at random. A few misses are cheaper than a full shuffle. */
  pick(count: number, random: Random, passes: (member: Member) => boolean): Member[] {
    const picked: Member[] = [];
    const total = this.#order.length;
    if (total === 0) return picked;
    const tries = total <= 3 * count ? 0 : 3 * count;
    for (let i = 0; i < tries && picked.length < count; i++) {
      const member = this.#order[random.below(total)] as Member;
      if (passes(member) && !picked.includes(member)) picked.push(member);
    }
    if (picked.length >= count) return picked;
    // Few pass: walk all of them once from a random place.
    const from = random.below(total);
    for (let i = 0; i < total && picked.length < count; i++) {
      const member = this.#order[(from + i) % total] as Member;
      if (passes(member) && !picked.includes(member)) picked.push(member);
    }
    return picked;
  }
}

export function isLive(member: { readonly status: MemberStatus }): boolean {
  return member.status === "alive" || member.status === "suspect";
}

function counts(member: Member): boolean {
  return member.confirmed && isLive(member);
}

export function sameRecord(a: NodeRecord, b: NodeRecord): boolean {
  if (a === b) return true;
  if (a.address !== b.address || a.role !== b.role || a.datacenter !== b.datacenter) return false;
  if (a.versionMajor !== b.versionMajor || a.versionMinor !== b.versionMinor) return false;
  if (a.meta.length !== b.meta.length) return false;
  return a.meta.every((byte, index) => byte === b.meta[index]);
}
