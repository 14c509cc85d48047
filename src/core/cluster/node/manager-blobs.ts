/**
 * The blobs of a manager: on its own disk, and copied between the managers over the connections that they keep
 * to each other.
 *
 *   Manager ── keep, read, replicate ──▶ Replicas ─┬─▶ parts read and put here: the driver
 *           ◀── ready, absent, bytes ──            └─▶ parts read and put elsewhere: peers
 */

import type { StreamEnvelope } from "../../../wire/registry.ts";
import { assertNever } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import type { NodeId } from "../../base/ids.ts";
import { type ReplicaEffect, Replicas } from "../artifacts/replicas.ts";
import type { ManagerEffect, ManagerInput } from "../manager/types.ts";
import { BLOB_CHUNK_BYTES_MAX, type BlobHash } from "../messages.ts";

/** Results in memory that the disk here does not take; each is bounded as any blob. */
const UNKEPT_MAX = 8;

/** Between two tries to store them. */
const KEEP_AGAIN_MS = 10_000;

/** What a manager asks for. */
type BlobAsked = Extract<
  ManagerEffect,
  { kind: "keepBlob" | "readBlob" | "replicateBlobs" | "pinBlobs" }
>;

/** What the disk of this node is asked for; `request` names what the answer belongs to. */
type LocalPart =
  | {
      readonly kind: "blobGet";
      readonly request: number;
      readonly hash: BlobHash;
      readonly offset: number;
    }
  | {
      readonly kind: "blobPut";
      readonly request: number;
      readonly hash: BlobHash;
      readonly offset: number;
      readonly total: number;
      readonly bytes: Uint8Array;
    };

interface BlobPorts {
  /** Answered with `onLocalPart` or `onLocalPut`. */
  local(part: LocalPart): void;
  peer(peer: NodeId, message: StreamEnvelope): void;
  hear(input: ManagerInput): void;
  perform(effect: Exclude<BlobAsked, { kind: "replicateBlobs" }>): void;
}

export class ManagerBlobs {
  readonly #self: NodeId;
  readonly #replicas: Replicas;
  readonly #ports: BlobPorts;
  /** Asked for by the manager, and not here yet. */
  readonly #reading = new Set<BlobHash>();
  /** Made here and on their way to the disk. */
  readonly #made = new Map<BlobHash, Uint8Array>();
  /** Made here, and the disk does not take them: the others get them from memory. The oldest go first. */
  readonly #unkept = new Map<BlobHash, { readonly bytes: Uint8Array; readonly problem: string }>();
  #now = 0 as Millis;
  #retryAt = 0;
  /** Why the disk took nothing when it was last asked to; null: it did. */
  diskProblem: string | null = null;

  constructor(self: NodeId, members: readonly NodeId[], ports: BlobPorts) {
    this.#self = self;
    this.#ports = ports;
    this.#replicas = new Replicas({ self, members });
  }

  nextDeadline(): number | null {
    const at = this.#replicas.nextDeadline();
    if (this.#unkept.size === 0) return at;
    return Math.min(at ?? Number.POSITIVE_INFINITY, this.#retryAt);
  }

  tick(now: Millis): void {
    this.#now = now;
    if (this.#unkept.size > 0 && now >= this.#retryAt) this.#keepAgain();
    this.#follow(this.#replicas.tick(now));
  }

  ask(effect: BlobAsked, now: Millis): void {
    this.#now = now;
    switch (effect.kind) {
      case "keepBlob":
        // Copied when it is durable here; until a quorum has it, and not only while somebody asks.
        this.#ports.perform(effect);
        this.#made.set(effect.hash, effect.bytes);
        return;
      case "readBlob":
        if (this.#unkept.has(effect.hash)) {
          const bytes = this.#unkept.get(effect.hash)?.bytes ?? null;
          this.#ports.hear({ kind: "blobRead", hash: effect.hash, bytes });
        } else if (this.#replicas.has(effect.hash)) this.#ports.perform(effect);
        else {
          this.#reading.add(effect.hash);
          this.#follow(this.#replicas.fetch(effect.hash, now));
        }
        return;
      case "replicateBlobs":
        this.#follow(this.#replicas.replicate(effect.hashes, false, now));
        return;
      case "pinBlobs":
        this.#ports.perform(effect);
        return;
      default:
        assertNever(effect);
    }
  }

  /** Complete here. */
  onHeld(hashes: readonly BlobHash[], now: Millis): void {
    this.#follow(this.#replicas.onHeld(hashes, now));
    this.#now = now;
    for (const hash of hashes) this.#drop(hash);
    const own = hashes.filter((hash) => this.#made.delete(hash));
    if (own.length > 0) this.diskProblem = null;
    this.#follow(this.#replicas.replicate(own, true, now));
  }

  /** The disk does not take it: the other managers get it from memory, and the end of its job waits for them. */
  onNotKept(hash: BlobHash, problem: string, now: Millis): void {
    this.#now = now;
    this.diskProblem = problem;
    const bytes = this.#made.get(hash);
    this.#made.delete(hash);
    if (bytes === undefined) {
      this.#ports.hear({ kind: "blobNotKept", hash, problem });
      return;
    }
    if (this.#unkept.size === 0) this.#retryAt = now + KEEP_AGAIN_MS;
    const isKnown = this.#unkept.has(hash);
    this.#unkept.set(hash, { bytes, problem });
    if (isKnown) return;
    for (const oldest of [...this.#unkept.keys()].slice(0, -UNKEPT_MAX)) this.#drop(oldest);
    this.#follow(this.#replicas.lend(hash, now));
  }

  /** There may be room by now. */
  #keepAgain(): void {
    this.#retryAt = this.#now + KEEP_AGAIN_MS;
    for (const [hash, { bytes }] of this.#unkept) {
      this.#made.set(hash, bytes);
      this.#ports.perform({ kind: "keepBlob", hash, bytes });
    }
  }

  #drop(hash: BlobHash): void {
    if (this.#unkept.delete(hash)) this.#replicas.unlend(hash);
  }

  /** Of a blob that is only in memory; null: it is not. */
  unkeptPart(
    hash: BlobHash,
    offset: number,
  ): { readonly total: number; readonly bytes: Uint8Array } | null {
    const bytes = this.#unkept.get(hash)?.bytes;
    if (bytes === undefined) return null;
    const part = bytes.subarray(offset, offset + BLOB_CHUNK_BYTES_MAX);
    return { total: bytes.length, bytes: part };
  }

  onGone(hashes: readonly BlobHash[]): void {
    this.#replicas.onGone(hashes);
  }

  /** Somebody was told that it is not here: it is fetched for those who ask later. */
  onMissed(hash: BlobHash, now: Millis): void {
    this.#replicas.onGone([hash]);
    this.#follow(this.#replicas.fetch(hash, now));
  }

  onPeer(peer: NodeId, up: boolean, now: Millis): void {
    this.#now = now;
    this.#follow(this.#replicas.onMember(peer, up, now));
  }

  /** Of `local`; null when it is not here. */
  onLocalPart(
    request: number,
    part: { readonly total: number; readonly bytes: Uint8Array } | null,
    now: Millis,
  ): void {
    if (part === null) this.#follow(this.#replicas.onRefused(request, now));
    else this.#follow(this.#replicas.onPart(request, part, now));
  }

  /** Of `local`: up to where it is here; null when it is not taken. */
  onLocalPut(request: number, held: number | null, now: Millis): void {
    if (held === null) this.#follow(this.#replicas.onRefused(request, now));
    else this.#follow(this.#replicas.onPut(request, held, now));
  }

  onPeerAnswer(message: StreamEnvelope, now: Millis): void {
    this.#now = now;
    const { correlation } = message;
    switch (message.name) {
      case "blobChunk":
        this.#follow(this.#replicas.onPart(correlation, message.value, now));
        return;
      case "blobHeld":
        this.#follow(this.#replicas.onPut(correlation, message.value.bytes, now));
        return;
      case "denial":
        this.#follow(this.#replicas.onRefused(correlation, now));
        return;
      default:
    }
  }

  /** No manager has room for it. */
  #giveUp(hash: BlobHash): void {
    const problem = this.#unkept.get(hash)?.problem;
    if (problem === undefined) return;
    this.#drop(hash);
    this.#ports.hear({ kind: "blobNotKept", hash, problem });
  }

  #follow(effects: readonly ReplicaEffect[]): void {
    for (const effect of effects) {
      const { hash } = effect;
      switch (effect.kind) {
        case "read": {
          const { at, offset, request } = effect;
          const lent = at === this.#self ? this.unkeptPart(hash, offset) : null;
          if (lent !== null) this.#follow(this.#replicas.onPart(request, lent, this.#now));
          else if (at === this.#self) this.#ports.local({ kind: "blobGet", request, hash, offset });
          else
            this.#ports.peer(at, {
              name: "blobGet",
              correlation: request,
              value: { hash, offset },
            });
          break;
        }
        case "put": {
          const { at, bytes, offset, request, total } = effect;
          const value = { hash, offset, total, bytes };
          if (at === this.#self) this.#ports.local({ kind: "blobPut", request, ...value });
          else this.#ports.peer(at, { name: "blobPut", correlation: request, value });
          break;
        }
        case "found":
          if (this.#reading.delete(hash)) this.#ports.perform({ kind: "readBlob", hash });
          break;
        case "ready":
          if (this.#reading.delete(hash)) this.#ports.perform({ kind: "readBlob", hash });
          this.#ports.hear({ kind: "blobsReady", hashes: [hash] });
          break;
        case "absent":
          if (this.#reading.delete(hash)) this.#ports.hear({ kind: "blobRead", hash, bytes: null });
          this.#ports.hear({ kind: "blobsAbsent", hashes: [hash] });
          this.#giveUp(hash);
          break;
        default:
          assertNever(effect);
      }
    }
  }
}
