/**
 * Blobs on a quorum of the members of a group: what one of them holds is copied to the others, and what one of
 * them lacks is fetched from those that have it.
 *
 *     replicate ─▶ here ──▶ copied to every member that can be reached ─▶ a quorum has it: ready
 *                └ not here ─▶ fetched from one member after the other ─▶ here, or absent
 *     fetch ─▶ here: found │ nobody that can be reached has it: absent
 *
 * A copy is a row of parts, one at a time: read where the blob is, put where it is not, until the receiver says
 * that it has all. Both ends may be this node or another, so sending and fetching are the same thing. The
 * receiver says from where to go on: a copy that broke off is not begun anew.
 *
 * Whoever confirms a blob keeps it for `UNUSED_MS_MIN` at least; what is believed of others is younger than
 * that, so that a job which is committed on that belief has its files.
 */

import type { Millis } from "../../base/brand.ts";
import { Deadlines } from "../../base/deadlines.ts";
import type { NodeId } from "../../base/ids.ts";
import type { BlobHash } from "../messages.ts";

/** A blob that was put or read is not dropped for so long, whether anything names it or not. */
export const UNUSED_MS_MIN = 600_000;
/** What another member has confirmed is believed for so long. */
const BELIEVED_MS = UNUSED_MS_MIN / 2;
/** Copies to or from one member at a time: each has one part in memory and on the link. */
const COPIES_PER_MEMBER_MAX = 4;
/** A part that was not read or put by then is asked for again, of another member where there is one. */
const PART_MS_MAX = 5_000;
/** A member that failed is tried again after this. */
const RETRY_MS = 1_000;
/** What nobody has asked for any more is not copied further; what no disk here takes is offered for as long. */
const WANTED_MS_MAX = 30_000;
/** Blobs whose copies are on their way or wait; what is asked for beyond is absent for now. */
const WANTED_MAX = 16_384;
/** Blobs that others are known to hold. */
const BELIEFS_MAX = 65_536;

export type ReplicaEffect =
  /** At this member, which may be this node: `part` answers. */
  | {
      readonly kind: "read";
      readonly request: number;
      readonly at: NodeId;
      readonly hash: BlobHash;
      readonly offset: number;
    }
  /** At this member, which may be this node: `put` answers. */
  | {
      readonly kind: "put";
      readonly request: number;
      readonly at: NodeId;
      readonly hash: BlobHash;
      readonly offset: number;
      readonly total: number;
      readonly bytes: Uint8Array;
    }
  /** It is here, as `fetch` asked. */
  | { readonly kind: "found"; readonly hash: BlobHash }
  /** A quorum has it; of a blob that is only lent here, that may be fewer members: those that have room. */
  | { readonly kind: "ready"; readonly hash: BlobHash }
  /** It is not here, and no member that can be reached has it. */
  | { readonly kind: "absent"; readonly hash: BlobHash };

interface ReplicasOptions {
  readonly self: NodeId;
  /** All members, this node included. */
  readonly members: readonly NodeId[];
}

interface Wanted {
  /** Here is not enough. */
  quorum: boolean;
  /** Given up when nobody has asked again by then. */
  until: number;
  /** A quorum has it, and that was said; the copies to the others go on. */
  ready: boolean;
  /** Members that do not have it, or did not take it, and until when they are left alone. */
  readonly failed: Map<NodeId, number>;
}

interface Copy {
  readonly hash: BlobHash;
  readonly from: NodeId;
  readonly to: NodeId;
  offset: number;
  total: number;
  /** The request under way; null while it waits for its turn. */
  request: number | null;
}

export class Replicas {
  readonly #self: NodeId;
  readonly #others: readonly NodeId[];
  readonly #quorum: number;
  readonly #here = new Set<BlobHash>();
  /** Readable here, and on no disk here: copied to the others, and not counted. */
  readonly #lent = new Set<BlobHash>();
  readonly #up = new Set<NodeId>();
  /** Until when it is believed that a member has a blob. */
  readonly #beliefs = new Map<BlobHash, Map<NodeId, number>>();
  readonly #wanted = new Map<BlobHash, Wanted>();
  /** By the other member of each. */
  readonly #copies = new Map<NodeId, Map<BlobHash, Copy>>();
  readonly #requests = new Map<number, Copy>();
  readonly #deadlines = new Deadlines<number>();
  readonly #retries = new Deadlines<BlobHash>();
  #requestCount = 0;
  #effects: ReplicaEffect[] = [];
  #now = 0 as Millis;

  constructor({ members, self }: ReplicasOptions) {
    this.#self = self;
    this.#others = members.filter((member) => member !== self);
    this.#quorum = Math.floor(members.length / 2) + 1;
    for (const member of this.#others) this.#copies.set(member, new Map());
  }

  has(hash: BlobHash): boolean {
    return this.#here.has(hash);
  }

  /** Copies that are under way or wait. */
  get size(): number {
    return this.#wanted.size;
  }

  /** Complete here and durable. */
  onHeld(hashes: readonly BlobHash[], now: Millis): readonly ReplicaEffect[] {
    this.#now = now;
    for (const hash of hashes) {
      this.#here.add(hash);
      this.#advance(hash);
    }
    return this.#take();
  }

  /** Dropped here to make room. */
  onGone(hashes: readonly BlobHash[]): void {
    for (const hash of hashes) this.#here.delete(hash);
  }

  onMember(member: NodeId, up: boolean, now: Millis): readonly ReplicaEffect[] {
    this.#now = now;
    const copies = this.#copies.get(member);
    if (copies === undefined || up === this.#up.has(member)) return [];
    if (up) this.#up.add(member);
    else {
      this.#up.delete(member);
      // Its disk may be another when it comes back.
      for (const beliefs of this.#beliefs.values()) beliefs.delete(member);
      const broken = [...copies.values()];
      copies.clear();
      for (const { request } of broken) if (request !== null) this.#answered(request);
    }
    for (const [hash, { failed }] of this.#wanted) {
      failed.delete(member);
      this.#advance(hash);
    }
    return this.#take();
  }

  /** Has these on a quorum; `lasting`: until it is so, and not only while somebody asks. */
  replicate(hashes: readonly BlobHash[], lasting: boolean, now: Millis): readonly ReplicaEffect[] {
    this.#now = now;
    for (const hash of hashes) this.#want(hash, true, lasting);
    return this.#take();
  }

  /** The disk here does not take it, and its bytes are at hand: "ready" when the others have it, else "absent". */
  lend(hash: BlobHash, now: Millis): readonly ReplicaEffect[] {
    this.#now = now;
    this.#lent.add(hash);
    this.#want(hash, true, false);
    return this.#take();
  }

  /** Its bytes are not at hand any more. */
  unlend(hash: BlobHash): void {
    this.#lent.delete(hash);
  }

  /** Has it here. */
  fetch(hash: BlobHash, now: Millis): readonly ReplicaEffect[] {
    this.#now = now;
    this.#want(hash, false, false);
    return this.#take();
  }

  /** Of `read`. */
  onPart(
    request: number,
    part: { readonly total: number; readonly bytes: Uint8Array },
    now: Millis,
  ): readonly ReplicaEffect[] {
    this.#now = now;
    const copy = this.#answered(request);
    if (copy === null) return [];
    if (copy.offset + part.bytes.length > part.total) this.#fail(copy);
    else {
      const { hash, offset, to } = copy;
      copy.total = part.total;
      this.#ask(copy, { kind: "put", at: to, hash, offset, ...part });
    }
    return this.#take();
  }

  /** Of `put`: up to where the receiver has it. */
  onPut(request: number, held: number, now: Millis): readonly ReplicaEffect[] {
    this.#now = now;
    const copy = this.#answered(request);
    if (copy === null) return [];
    // A receiver that does not come further is left alone for a while.
    if (held < copy.total && held <= copy.offset) this.#fail(copy);
    else if (held < copy.total) {
      copy.offset = held;
      this.#read(copy);
    } else {
      this.#end(copy);
      if (copy.to === this.#self) this.#here.add(copy.hash);
      else this.#believe(copy.hash, copy.to);
      this.#advance(copy.hash);
    }
    return this.#take();
  }

  /** Of `read`: it is not there; of `put`: it is not taken. */
  onRefused(request: number, now: Millis): readonly ReplicaEffect[] {
    this.#now = now;
    const copy = this.#answered(request);
    if (copy !== null) this.#fail(copy);
    return this.#take();
  }

  tick(now: Millis): readonly ReplicaEffect[] {
    this.#now = now;
    for (const request of this.#deadlines.takeDue(now)) {
      const copy = this.#answered(request);
      if (copy !== null) this.#fail(copy);
    }
    for (const hash of this.#retries.takeDue(now)) this.#advance(hash);
    return this.#take();
  }

  nextDeadline(): number | null {
    const never = Number.POSITIVE_INFINITY;
    const at = Math.min(this.#deadlines.next() ?? never, this.#retries.next() ?? never);
    return at === never ? null : at;
  }

  #take(): readonly ReplicaEffect[] {
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  #want(hash: BlobHash, quorum: boolean, lasting: boolean): void {
    const until = lasting ? Number.POSITIVE_INFINITY : this.#now + WANTED_MS_MAX;
    const known = this.#wanted.get(hash);
    if (known !== undefined) {
      known.until = Math.max(known.until, until);
      known.quorum ||= quorum;
      known.ready &&= !quorum;
    } else if (this.#wanted.size >= WANTED_MAX && !lasting) {
      this.#effects.push({ kind: "absent", hash });
      return;
    } else this.#wanted.set(hash, { quorum, until, ready: false, failed: new Map() });
    this.#advance(hash);
  }

  /** Begins what can be begun for a blob, and says what has come about. */
  #advance(hash: BlobHash): void {
    const wanted = this.#wanted.get(hash);
    if (wanted === undefined) return;
    const isLent = this.#lent.has(hash) && !this.#here.has(hash);
    if (wanted.until <= this.#now && !this.#isCopied(hash) && this.#isOver(hash, wanted)) {
      this.#forget(hash);
      return;
    }
    if (!this.#here.has(hash) && !isLent) {
      this.#fetch(hash, wanted);
      return;
    }
    if (!wanted.quorum) {
      this.#effects.push({ kind: "found", hash });
      this.#forget(hash);
      return;
    }
    const missing = this.#others.filter((member) => !this.#believes(hash, member));
    const holders = (isLent ? 0 : 1) + this.#others.length - missing.length;
    if (!wanted.ready && holders >= this.#quorum) {
      wanted.ready = true;
      wanted.until = Math.min(wanted.until, this.#now + WANTED_MS_MAX);
      this.#effects.push({ kind: "ready", hash });
    }
    if (missing.length === 0) {
      this.#forget(hash);
      return;
    }
    for (const member of missing)
      if (this.#up.has(member) && !this.#isFailed(wanted, member))
        this.#begin({ hash, from: this.#self, to: member });
    if (!this.#isCopied(hash)) this.#retries.set(hash, this.#now + RETRY_MS);
  }

  /**
   * Nothing more is done for what nobody has asked for of late. What is only lent here is over when every other member
   * was asked: those that cannot be reached may have room.
   */
  #isOver(hash: BlobHash, wanted: Wanted): boolean {
    if (wanted.ready || !this.#lent.has(hash) || this.#here.has(hash)) return true;
    const isKept = this.#others.some((member) => this.#believes(hash, member));
    const isAsked = this.#others.every(
      (member) => this.#up.has(member) && wanted.failed.has(member),
    );
    if (!isKept && !isAsked) return false;
    this.#effects.push({ kind: isKept ? "ready" : "absent", hash });
    return true;
  }

  /** From one member after the other. */
  #fetch(hash: BlobHash, wanted: Wanted): void {
    if (this.#isCopied(hash)) return;
    const from = this.#others.find(
      (member) => this.#up.has(member) && !this.#isFailed(wanted, member),
    );
    if (from !== undefined) {
      this.#begin({ hash, from, to: this.#self });
      return;
    }
    this.#effects.push({ kind: "absent", hash });
    this.#forget(hash);
  }

  #begin(route: Pick<Copy, "hash" | "from" | "to">): void {
    const copies = this.#copies.get(this.#otherOf(route));
    if (copies === undefined || copies.has(route.hash)) return;
    copies.set(route.hash, { ...route, offset: 0, total: 0, request: null });
    this.#fill(copies);
  }

  /** As many as may be are under way. */
  #fill(copies: ReadonlyMap<BlobHash, Copy>): void {
    let free = COPIES_PER_MEMBER_MAX;
    for (const copy of copies.values()) {
      if (free-- === 0) return;
      if (copy.request === null) this.#read(copy);
    }
  }

  #read(copy: Copy): void {
    const { from: at, hash, offset } = copy;
    this.#ask(copy, { kind: "read", at, hash, offset });
  }

  #ask(
    copy: Copy,
    effect:
      | Omit<Extract<ReplicaEffect, { kind: "read" }>, "request">
      | Omit<Extract<ReplicaEffect, { kind: "put" }>, "request">,
  ): void {
    const request = ++this.#requestCount;
    copy.request = request;
    this.#requests.set(request, copy);
    this.#deadlines.set(request, this.#now + PART_MS_MAX);
    this.#effects.push({ ...effect, request });
  }

  /** Null when nobody waits for it any more. */
  #answered(request: number): Copy | null {
    const copy = this.#requests.get(request) ?? null;
    this.#requests.delete(request);
    this.#deadlines.delete(request);
    return copy;
  }

  #fail(copy: Copy): void {
    this.#end(copy);
    const { hash } = copy;
    const wanted = this.#wanted.get(hash);
    if (wanted === undefined) return;
    // Of those that may have it, each is asked once; one that takes nothing may do so later.
    const isFetch = copy.to === this.#self;
    const until = isFetch ? Number.POSITIVE_INFINITY : this.#now + RETRY_MS;
    wanted.failed.set(this.#otherOf(copy), until);
    this.#advance(hash);
  }

  #end(copy: Copy): void {
    const copies = this.#copies.get(this.#otherOf(copy));
    copies?.delete(copy.hash);
    if (copy.request !== null) this.#answered(copy.request);
    if (copies !== undefined) this.#fill(copies);
  }

  #otherOf({ from, to }: Pick<Copy, "from" | "to">): NodeId {
    return from === this.#self ? to : from;
  }

  #isFailed({ failed }: Wanted, member: NodeId): boolean {
    return (failed.get(member) ?? Number.NEGATIVE_INFINITY) > this.#now;
  }

  #isCopied(hash: BlobHash): boolean {
    return this.#others.some((member) => this.#copies.get(member)?.has(hash) === true);
  }

  #believes(hash: BlobHash, member: NodeId): boolean {
    return (this.#beliefs.get(hash)?.get(member) ?? 0) > this.#now;
  }

  #believe(hash: BlobHash, member: NodeId): void {
    const beliefs = this.#beliefs.get(hash) ?? new Map<NodeId, number>();
    this.#beliefs.delete(hash);
    this.#beliefs.set(hash, beliefs.set(member, this.#now + BELIEVED_MS));
    const [oldest] = this.#beliefs.keys();
    if (this.#beliefs.size > BELIEFS_MAX && oldest !== undefined) this.#beliefs.delete(oldest);
  }

  #forget(hash: BlobHash): void {
    this.#wanted.delete(hash);
    this.#retries.delete(hash);
  }
}
