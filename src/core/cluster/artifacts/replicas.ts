/**
 * Replicates blobs to a quorum of the members of a group: copies local blobs to the others, and fetches missing
 * ones from members that have them.
 *
 *     replicate ─▶ here ──▶ copied to every reachable member ─▶ a quorum has it: ready
 *                └ not here ─▶ fetched from one member after another ─▶ here, or absent
 *     fetch ─▶ here: found │ no reachable member has it: absent
 *
 * A copy is a sequence of chunks, one at a time: read at the source, put at the target, until the target reports
 * that it is complete. Either end may be this node, so sending and fetching are the same. The
 * target returns the next offset, so an interrupted copy resumes.
 *
 * A member that acknowledges a blob keeps it for at least `UNUSED_MS_MIN`. Acknowledgements expire sooner than
 * that, so that a job committed on their basis has its files.
 */

import type { Millis } from "../../base/brand.ts";
import { Deadlines } from "../../base/deadlines.ts";
import type { NodeId } from "../../base/ids.ts";
import type { BlobHash } from "../messages.ts";

/** Minimum retention of a blob after it was put or read, even if nothing references it. */
export const UNUSED_MS_MIN = 600_000;
/** Validity of another member's acknowledgement. */
const ACKNOWLEDGED_MS = UNUSED_MS_MIN / 2;
/** Concurrent copies to or from one member. Each has one chunk in memory and on the link. */
const COPIES_PER_MEMBER_MAX = 4;
/** Timeout of reading or putting one chunk. The copy is then retried, from another member if possible. */
const PART_MS_MAX = 5_000;
/** Delay before a failed member is retried. */
const RETRY_MS = 1_000;
/**
 * Copying stops this long after the last request for a blob. A blob that the local disk rejected is offered for as
 * long.
 */
const WANTED_MS_MAX = 30_000;
/** Maximum number of blobs being copied or waiting; further requests are answered with absent. */
const WANTED_MAX = 16_384;
/** Maximum number of blobs with remembered acknowledgements. */
const ACKNOWLEDGED_MAX = 65_536;

export type ReplicaEffect =
  /** Reads a chunk at this member, which may be this node. Answered by `onPart`. */
  | {
      readonly kind: "read";
      readonly request: number;
      readonly at: NodeId;
      readonly hash: BlobHash;
      readonly offset: number;
    }
  /** Writes a chunk at this member, which may be this node. Answered by `onPut`. */
  | {
      readonly kind: "put";
      readonly request: number;
      readonly at: NodeId;
      readonly hash: BlobHash;
      readonly offset: number;
      readonly total: number;
      readonly bytes: Uint8Array;
    }
  /** The blob requested by `fetch` is here. */
  | { readonly kind: "found"; readonly hash: BlobHash }
  /** A quorum has it. A blob that is only lent may be on fewer members: those with space. */
  | { readonly kind: "ready"; readonly hash: BlobHash }
  /** The blob is not here, and no reachable member has it. */
  | { readonly kind: "absent"; readonly hash: BlobHash };

interface ReplicasOptions {
  readonly self: NodeId;
  /** All members, including this node. */
  readonly members: readonly NodeId[];
}

interface Wanted {
  /** Requires a quorum instead of a local copy only. */
  quorum: boolean;
  /** Abandoned if not requested again by then. */
  until: number;
  /** A quorum has it and `ready` was emitted; copies to the others continue. */
  ready: boolean;
  /** Members that lack or rejected it, and when they may be retried. */
  readonly failed: Map<NodeId, number>;
}

interface Copy {
  readonly hash: BlobHash;
  readonly from: NodeId;
  readonly to: NodeId;
  offset: number;
  total: number;
  /** Request in progress; null while queued. */
  request: number | null;
}

export class Replicas {
  readonly #self: NodeId;
  readonly #others: readonly NodeId[];
  readonly #quorum: number;
  readonly #here = new Set<BlobHash>();
  /** Readable here but not on the local disk: copied to others, not counted toward the quorum. */
  readonly #lent = new Set<BlobHash>();
  readonly #up = new Set<NodeId>();
  /** Members that acknowledged a blob, and when that expires. */
  readonly #acknowledged = new Map<BlobHash, Map<NodeId, number>>();
  readonly #wanted = new Map<BlobHash, Wanted>();
  /** Copies by the other member involved. */
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

  /** Blobs being copied or waiting. */
  get size(): number {
    return this.#wanted.size;
  }

  /** Records blobs that are complete and durable here. */
  onHeld(hashes: readonly BlobHash[], now: Millis): readonly ReplicaEffect[] {
    this.#now = now;
    for (const hash of hashes) {
      this.#here.add(hash);
      this.#advance(hash);
    }
    return this.#take();
  }

  /** Records blobs that were dropped here to free space. */
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
      // The member may return with a different disk.
      for (const members of this.#acknowledged.values()) members.delete(member);
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

  /** Replicates these to a quorum. `lasting`: until done, not only while callers keep asking. */
  replicate(hashes: readonly BlobHash[], lasting: boolean, now: Millis): readonly ReplicaEffect[] {
    this.#now = now;
    for (const hash of hashes) this.#want(hash, true, lasting);
    return this.#take();
  }

  /**
   * Replicates a blob that the local disk rejected and whose bytes are in memory. Emits "ready" when the others have
   * it, else "absent".
   */
  lend(hash: BlobHash, now: Millis): readonly ReplicaEffect[] {
    this.#now = now;
    this.#lent.add(hash);
    this.#want(hash, true, false);
    return this.#take();
  }

  /** The bytes of a lent blob are no longer available. */
  unlend(hash: BlobHash): void {
    this.#lent.delete(hash);
  }

  /** Fetches a blob to this node. */
  fetch(hash: BlobHash, now: Millis): readonly ReplicaEffect[] {
    this.#now = now;
    this.#want(hash, false, false);
    return this.#take();
  }

  /** Answer to `read`. */
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

  /** Answer to `put`: number of bytes the receiver has. */
  onPut(request: number, stored: number, now: Millis): readonly ReplicaEffect[] {
    this.#now = now;
    const copy = this.#answered(request);
    if (copy === null) return [];
    // A receiver that makes no progress is skipped for a while.
    if (stored < copy.total && stored <= copy.offset) this.#fail(copy);
    else if (stored < copy.total) {
      copy.offset = stored;
      this.#read(copy);
    } else {
      this.#end(copy);
      if (copy.to === this.#self) this.#here.add(copy.hash);
      else this.#acknowledge(copy.hash, copy.to);
      this.#advance(copy.hash);
    }
    return this.#take();
  }

  /** Refusal: the source of a `read` lacks the blob, or the target of a `put` rejects it. */
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

  /** Starts all possible copies of a blob, and emits its outcome. */
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
    const missing = this.#others.filter((member) => !this.#hasAcknowledged(hash, member));
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
   * Whether to stop work on a blob that was not requested recently. A lent blob also waits until every other member was
   * asked, because unreachable ones may have space.
   */
  #isOver(hash: BlobHash, wanted: Wanted): boolean {
    if (wanted.ready || !this.#lent.has(hash) || this.#here.has(hash)) return true;
    const isKept = this.#others.some((member) => this.#hasAcknowledged(hash, member));
    const hasAskedAll = this.#others.every(
      (member) => this.#up.has(member) && wanted.failed.has(member),
    );
    if (!isKept && !hasAskedAll) return false;
    this.#effects.push({ kind: isKept ? "ready" : "absent", hash });
    return true;
  }

  /** Fetches from one member after another. */
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

  /** Starts copies up to the limit. */
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

  /** Completes a request; null if it is no longer pending. */
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
    // A fetch asks each member once. A member that rejects a put may accept it later.
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

  #hasAcknowledged(hash: BlobHash, member: NodeId): boolean {
    return (this.#acknowledged.get(hash)?.get(member) ?? 0) > this.#now;
  }

  #acknowledge(hash: BlobHash, member: NodeId): void {
    const members = this.#acknowledged.get(hash) ?? new Map<NodeId, number>();
    this.#acknowledged.delete(hash);
    this.#acknowledged.set(hash, members.set(member, this.#now + ACKNOWLEDGED_MS));
    const [oldest] = this.#acknowledged.keys();
    if (this.#acknowledged.size > ACKNOWLEDGED_MAX && oldest !== undefined)
      this.#acknowledged.delete(oldest);
  }

  #forget(hash: BlobHash): void {
    this.#wanted.delete(hash);
    this.#retries.delete(hash);
  }
}
