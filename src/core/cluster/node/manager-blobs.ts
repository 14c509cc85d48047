/**
 * Blobs of a manager: on its own disk, and copied between managers over the links they keep to each other.
 *
 *   Manager ── keep, read, replicate ──▶ Replicas ─┬─▶ local chunks: the driver
 *           ◀── ready, absent, bytes ──            └─▶ remote chunks: peers
 */

import type { StreamEnvelope } from "../../../wire/registry.ts";
import { assertNever } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import type { NodeId } from "../../base/ids.ts";
import { type ReplicaEffect, Replicas } from "../artifacts/replicas.ts";
import type { ManagerEffect, ManagerInput } from "../manager/types.ts";
import { BLOB_CHUNK_BYTES_MAX, type BlobHash } from "../messages.ts";

/** Results kept in memory because the local disk rejects them; each has the size limit of a blob. */
const UNSTORED_MAX = 8;

/** Interval of retrying to store them. */
const KEEP_AGAIN_MS = 10_000;

/** Blob effects of a manager. */
type BlobAsked = Extract<
  ManagerEffect,
  { kind: "keepBlob" | "readBlob" | "replicateBlobs" | "pinBlobs" }
>;

/** Request to the local disk. `request` identifies the copy that the answer belongs to. */
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
  input(input: ManagerInput): void;
  perform(effect: Exclude<BlobAsked, { kind: "replicateBlobs" }>): void;
}

export class ManagerBlobs {
  readonly #self: NodeId;
  readonly #replicas: Replicas;
  readonly #ports: BlobPorts;
  /** Requested by the manager, and not here yet. */
  readonly #reading = new Set<BlobHash>();
  /** Created here and being written to disk. */
  readonly #made = new Map<BlobHash, Uint8Array>();
  /** Created here and rejected by the disk: the others get them from memory. The oldest are dropped first. */
  readonly #unstored = new Map<
    BlobHash,
    { readonly bytes: Uint8Array; readonly problem: string }
  >();
  #now = 0 as Millis;
  #retryAt = 0;
  /** Reason why the disk rejected the last write; null if it did not. */
  diskProblem: string | null = null;

  constructor(self: NodeId, members: readonly NodeId[], ports: BlobPorts) {
    this.#self = self;
    this.#ports = ports;
    this.#replicas = new Replicas({ self, members });
  }

  nextDeadline(): number | null {
    const at = this.#replicas.nextDeadline();
    if (this.#unstored.size === 0) return at;
    return Math.min(at ?? Number.POSITIVE_INFINITY, this.#retryAt);
  }

  tick(now: Millis): void {
    this.#now = now;
    if (this.#unstored.size > 0 && now >= this.#retryAt) this.#keepAgain();
    this.#follow(this.#replicas.tick(now));
  }

  ask(effect: BlobAsked, now: Millis): void {
    this.#now = now;
    switch (effect.kind) {
      case "keepBlob":
        // Copied once durable here, until a quorum has it, even if callers stop asking.
        this.#ports.perform(effect);
        this.#made.set(effect.hash, effect.bytes);
        return;
      case "readBlob":
        if (this.#unstored.has(effect.hash)) {
          const bytes = this.#unstored.get(effect.hash)?.bytes ?? null;
          this.#ports.input({ kind: "blobRead", hash: effect.hash, bytes });
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

  /** Records blobs that are complete here. */
  onHeld(hashes: readonly BlobHash[], now: Millis): void {
    this.#follow(this.#replicas.onHeld(hashes, now));
    this.#now = now;
    for (const hash of hashes) this.#drop(hash);
    const own = hashes.filter((hash) => this.#made.delete(hash));
    if (own.length > 0) this.diskProblem = null;
    this.#follow(this.#replicas.replicate(own, true, now));
  }

  /** The disk rejected a blob: the other managers get it from memory, and the end of its job waits for them. */
  onNotKept(hash: BlobHash, problem: string, now: Millis): void {
    this.#now = now;
    this.diskProblem = problem;
    const bytes = this.#made.get(hash);
    this.#made.delete(hash);
    if (bytes === undefined) {
      this.#ports.input({ kind: "blobNotKept", hash, problem });
      return;
    }
    if (this.#unstored.size === 0) this.#retryAt = now + KEEP_AGAIN_MS;
    const isKnown = this.#unstored.has(hash);
    this.#unstored.set(hash, { bytes, problem });
    if (isKnown) return;
    for (const oldest of [...this.#unstored.keys()].slice(0, -UNSTORED_MAX)) this.#drop(oldest);
    this.#follow(this.#replicas.lend(hash, now));
  }

  /** Retries storing the blobs, because space may be free by now. */
  #keepAgain(): void {
    this.#retryAt = this.#now + KEEP_AGAIN_MS;
    for (const [hash, { bytes }] of this.#unstored) {
      this.#made.set(hash, bytes);
      this.#ports.perform({ kind: "keepBlob", hash, bytes });
    }
  }

  #drop(hash: BlobHash): void {
    if (this.#unstored.delete(hash)) this.#replicas.unlend(hash);
  }

  /** Chunk of a blob that is only in memory; null if it is not. */
  unstoredPart(
    hash: BlobHash,
    offset: number,
  ): { readonly total: number; readonly bytes: Uint8Array } | null {
    const bytes = this.#unstored.get(hash)?.bytes;
    if (bytes === undefined) return null;
    const part = bytes.subarray(offset, offset + BLOB_CHUNK_BYTES_MAX);
    return { total: bytes.length, bytes: part };
  }

  onGone(hashes: readonly BlobHash[]): void {
    this.#replicas.onGone(hashes);
  }

  /** Fetches a blob that a caller requested and that is not here, for later requests. */
  onMissed(hash: BlobHash, now: Millis): void {
    this.#replicas.onGone([hash]);
    this.#follow(this.#replicas.fetch(hash, now));
  }

  onPeer(peer: NodeId, up: boolean, now: Millis): void {
    this.#now = now;
    this.#follow(this.#replicas.onMember(peer, up, now));
  }

  /** Answer to `local`; null if the blob is not here. */
  onLocalPart(
    request: number,
    part: { readonly total: number; readonly bytes: Uint8Array } | null,
    now: Millis,
  ): void {
    if (part === null) this.#follow(this.#replicas.onRefused(request, now));
    else this.#follow(this.#replicas.onPart(request, part, now));
  }

  /** Answer to `local`: bytes stored so far; null if rejected. */
  onLocalPut(request: number, stored: number | null, now: Millis): void {
    if (stored === null) this.#follow(this.#replicas.onRefused(request, now));
    else this.#follow(this.#replicas.onPut(request, stored, now));
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

  /** No manager has space for the blob. */
  #giveUp(hash: BlobHash): void {
    const problem = this.#unstored.get(hash)?.problem;
    if (problem === undefined) return;
    this.#drop(hash);
    this.#ports.input({ kind: "blobNotKept", hash, problem });
  }

  #follow(effects: readonly ReplicaEffect[]): void {
    for (const effect of effects) {
      const { hash } = effect;
      switch (effect.kind) {
        case "read": {
          const { at, offset, request } = effect;
          const lent = at === this.#self ? this.unstoredPart(hash, offset) : null;
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
          this.#ports.input({ kind: "blobsReady", hashes: [hash] });
          break;
        case "absent":
          if (this.#reading.delete(hash))
            this.#ports.input({ kind: "blobRead", hash, bytes: null });
          this.#ports.input({ kind: "blobsAbsent", hashes: [hash] });
          this.#giveUp(hash);
          break;
        default:
          assertNever(effect);
      }
    }
  }
}
