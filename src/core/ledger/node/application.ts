/**
 * What the entries of a group mean. The node replicates; an application folds what was committed into a
 * state, the same on every replica, and gives and takes that state as bytes. A kind of group is a prefix
 * of names and a way to make the application of one:
 *
 *     shard/17          keys, part of the node        run/ID   dc/NAME    kinds that others register
 *     use1-17…-n1-00001 a job, part of the node; no kind may be registered without a prefix
 *
 * What stands on disk and on the wire knows no kinds: records and messages carry the group's name and the
 * bytes of its operations. A kind keeps its prefix and the meaning of its bytes for ever, or changes the
 * version inside them. A node that finds a group of a kind it does not have in its log does not start, and
 * does not answer others for such a group. (docs/decisions/0053-kinds-of-groups.md)
 */

import { assert } from "../../base/assert.ts";
import type { GroupId } from "../group/messages.ts";
import { parseJobId } from "../job/job-id.ts";
import { SHARD_PREFIX, shardIndex } from "./topology.ts";

/** What an operation did when it was folded in. */
export interface Outcome {
  readonly kind: string;
  readonly reason: string | null;
  /** The place where it was committed first; of a forgotten one, a place after it. */
  readonly seq: number;
  readonly duplicate: boolean;
}

/** An operation at its place. */
export interface Operation {
  readonly seq: number;
  /** Of the primary that took it: the fence of what follows from it. (VSR-32) */
  readonly view: number;
  readonly eventId: string;
  readonly data: Uint8Array;
}

/** The state of one group. Pure: the same operations give the same state and the same bytes everywhere. */
export interface Application {
  /** Why an operation must not be proposed, in words for its sender; null when it may be. */
  problemOf(data: Uint8Array): string | null;
  /** Each operation once and in order. Total: an illegal one is rejected with its reason. */
  apply(operation: Operation): { readonly outcome: string; readonly reason: string | null };
  /** At most `snapshotBytesMax` of its kind. */
  snapshot(): Uint8Array;
  /** Forgets what it had; false when the bytes cannot be read, which changes nothing. */
  restore(bytes: Uint8Array): boolean;
}

export interface GroupKind {
  /** Names of its groups begin so: lower-case letters and a slash. */
  readonly prefix: string;
  /** Of one operation; at most `OPERATION_BYTES_MAX`. */
  readonly operationBytesMax: number;
  /** Of a whole state; at most `SNAPSHOT_BYTES_MAX`. */
  readonly snapshotBytesMax: number;
  /** What a group begins with; null when what follows the prefix names none. */
  found(name: string): Application | null;
  /**
   * Whether a group that others call new may begin here, now; always unless said. A kind whose groups are forgotten
   * says no to one that may have been: whoever has forgotten it does not know what it promised there.
   */
  mayBegin?(name: string, peek: GroupPeek): boolean;
}

/** A group of this node, the first whose name begins so: its state, and what its log holds beyond that. */
export type GroupPeek = (prefix: string) => PeekedGroup | null;

interface PeekedGroup {
  readonly application: Application;
  /** Operations that are not folded in; they may never be. */
  readonly tail: readonly Uint8Array[];
}

export const OPERATION_BYTES_MAX = 1_048_576;
export const SNAPSHOT_BYTES_MAX = 2_097_152;
const PREFIX = /^[a-z]{1,16}\/$/;
const TAKEN: readonly string[] = [SHARD_PREFIX, "job/"];

/** All kinds of groups that a node can hold. */
export class GroupKinds {
  readonly #registered: readonly GroupKind[];

  constructor(registered: readonly GroupKind[]) {
    for (const { prefix, operationBytesMax, snapshotBytesMax } of registered) {
      assert(PREFIX.test(prefix), `a kind's prefix is letters and a slash: ${prefix}`);
      assert(!TAKEN.includes(prefix), `${prefix} is taken`);
      const same = registered.filter((one) => one.prefix === prefix);
      assert(same.length === 1, `${prefix} is registered once`);
      assert(operationBytesMax <= OPERATION_BYTES_MAX, `operations of ${prefix} are bounded`);
      assert(snapshotBytesMax <= SNAPSHOT_BYTES_MAX, `snapshots of ${prefix} are bounded`);
    }
    this.#registered = registered;
  }

  /** The registered kind of a group; null for jobs, shards and names of no kind. */
  of(group: GroupId): GroupKind | null {
    return this.#registered.find(({ prefix }) => group.startsWith(prefix)) ?? null;
  }

  /** What a group of a registered kind begins with. */
  found(group: GroupId): Application | null {
    const kind = this.of(group);
    return kind === null ? null : kind.found(group.slice(kind.prefix.length));
  }

  /** Whether this node can hold such a group. */
  knows(group: GroupId): boolean {
    if (shardIndex(group) !== null || parseJobId(group) !== null) return true;
    return this.found(group) !== null;
  }
}
