/**
 * A Merkle tree over the jobs of a replica, to find where two replicas differ without comparing everything. (AE-1..3)
 *
 *                 1                    the root
 *             2       3                node n has the children 2n and 2n + 1
 *           …           …
 *     1024  …  …  …  …  … 2047         1,024 leaves: buckets of the hash of the job id
 *
 * A job is assigned to a leaf by the hash of its id, because ids share prefixes. A leaf hashes, in the order of ids,
 * (job, commit index, chain of committed events). Hashes are computed on request, and only along the paths that
 * changed.
 */

import { assert } from "../../base/assert.ts";
import { ByteWriter, encodeUtf8 } from "../../base/bytes.ts";
import { sha256 } from "../../base/sha256.ts";
import type { JobId } from "./job-id.ts";

export const MERKLE_LEAVES = 1_024;
const LEAF_BITS = 10;
export const MERKLE_ROOT = 1;
const HASH_BYTES = 32;

/** Per-job data compared between nodes: the commit index and the hash of everything up to it. */
export interface JobSummary {
  readonly jobId: JobId;
  readonly commitSeq: number;
  readonly chain: Uint8Array;
}

/** The node of the leaf that holds a job. */
export function leafOf(jobId: JobId): number {
  const hash = sha256(encodeUtf8(jobId));
  const bits = ((hash[0] ?? 0) << 8) | (hash[1] ?? 0);
  return MERKLE_LEAVES + (bits >>> (16 - LEAF_BITS));
}

export function isLeaf(node: number): boolean {
  return node >= MERKLE_LEAVES && node < 2 * MERKLE_LEAVES;
}

export function isNode(node: number): boolean {
  return Number.isInteger(node) && node >= MERKLE_ROOT && node < 2 * MERKLE_LEAVES;
}

export function childrenOf(node: number): readonly [number, number] {
  assert(isNode(node) && !isLeaf(node), "leaves have no children");
  return [2 * node, 2 * node + 1];
}

export class MerkleTree {
  readonly #leaves = new Map<number, Map<JobId, JobSummary>>();
  /** The leaf of each job: hashing an id costs more than looking it up. */
  readonly #places = new Map<JobId, number>();
  /** Known hashes by node; a change removes those on the path to the root. */
  readonly #hashes = new Map<number, Uint8Array>();
  /** Jobs at or below a node, to pass over what is empty. */
  readonly #counts = new Map<number, number>();

  get jobs(): number {
    return this.#places.size;
  }

  set(summary: JobSummary): void {
    const { jobId } = summary;
    const known = this.#places.get(jobId);
    const leaf = known ?? leafOf(jobId);
    if (known === undefined) this.#count(leaf, 1);
    this.#places.set(jobId, leaf);
    const jobs = this.#leaves.get(leaf) ?? new Map<JobId, JobSummary>();
    this.#leaves.set(leaf, jobs.set(jobId, summary));
    this.#forget(leaf);
  }

  delete(jobId: JobId): void {
    const leaf = this.#places.get(jobId);
    if (leaf === undefined) return;
    this.#places.delete(jobId);
    this.#count(leaf, -1);
    const jobs = this.#leaves.get(leaf);
    jobs?.delete(jobId);
    if (jobs?.size === 0) this.#leaves.delete(leaf);
    this.#forget(leaf);
  }

  get(jobId: JobId): JobSummary | undefined {
    return this.#leaves.get(this.#places.get(jobId) ?? 0)?.get(jobId);
  }

  get root(): Uint8Array {
    return this.hash(MERKLE_ROOT);
  }

  hash(node: number): Uint8Array {
    assert(isNode(node), "a node of the tree has a number from 1 to 2047");
    const known = this.#hashes.get(node);
    if (known !== undefined) return known;
    if ((this.#counts.get(node) ?? 0) === 0) return emptyHash(node);
    const hash = isLeaf(node) ? this.#leafHash(node) : this.#innerHash(node);
    this.#hashes.set(node, hash);
    return hash;
  }

  /** In the order of ids. */
  jobsOfLeaf(leaf: number): readonly JobSummary[] {
    const jobs = [...(this.#leaves.get(leaf)?.values() ?? [])];
    return jobs.sort((a, b) => (a.jobId < b.jobId ? -1 : 1));
  }

  #leafHash(leaf: number): Uint8Array {
    const writer = new ByteWriter(64);
    for (const { chain, commitSeq, jobId } of this.jobsOfLeaf(leaf)) {
      writer.text(jobId);
      writer.varint(commitSeq + 1);
      writer.raw(chain);
    }
    return sha256(writer.take());
  }

  #innerHash(node: number): Uint8Array {
    const [left, right] = childrenOf(node);
    return hashPair(this.hash(left), this.hash(right));
  }

  #count(leaf: number, change: number): void {
    for (let node = leaf; node >= MERKLE_ROOT; node >>>= 1) {
      this.#counts.set(node, (this.#counts.get(node) ?? 0) + change);
    }
  }

  #forget(leaf: number): void {
    for (let node = leaf; node >= MERKLE_ROOT; node >>>= 1) this.#hashes.delete(node);
  }
}

function hashPair(left: Uint8Array, right: Uint8Array): Uint8Array {
  const both = new Uint8Array(2 * HASH_BYTES);
  both.set(left);
  both.set(right, HASH_BYTES);
  return sha256(both);
}

/** Hashes of subtrees without jobs, by their height. */
const empties: Uint8Array[] = [sha256(new Uint8Array(0))];

function emptyHash(node: number): Uint8Array {
  const height = Math.clz32(node) - Math.clz32(MERKLE_LEAVES);
  for (let at = empties.length; at <= height; at++) {
    const below = empties[at - 1] as Uint8Array;
    empties.push(hashPair(below, below));
  }
  return empties[height] as Uint8Array;
}

export function sameHash(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}
