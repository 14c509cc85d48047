/**
 * Applications: the meaning of a group's entries. The node replicates; an application folds committed entries into a
 * state that is the same on every replica, and saves and loads that state as bytes. A kind of group is a name prefix
 * and a factory for its application:
 *
 *     shard/17          keys, part of the node        run/ID   dc/NAME    kinds registered by other modules
 *     use1-17…-n1-00001 a job, part of the node; no kind may be registered without a prefix
 *
 * The disk and wire formats know no kinds: records and messages carry the group's name and the bytes of its operations.
 * A kind keeps its prefix and the meaning of its bytes for ever, or changes the version inside them. A node whose log
 * has a group of an unknown kind does not start, and does not answer others for such a group.
 * (docs/decisions/0053-kinds-of-groups.md)
 */

import { assert } from "../../base/assert.ts";
import type { GroupId } from "../group/messages.ts";
import { parseJobId } from "../job/job-id.ts";
import { SHARD_PREFIX, shardIndex } from "./topology.ts";

/** Result of folding in an operation. */
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
  /** View of the primary that accepted it: the fence for everything that follows from it. (VSR-32) */
  readonly view: number;
  readonly eventId: string;
  readonly data: Uint8Array;
}

/** The state of one group. Pure: the same operations give the same state and the same bytes everywhere. */
export interface Application {
  /** Returns why an operation must not be proposed, as a message for its sender, or null. */
  problemOf(data: Uint8Array): string | null;
  /** Each operation once and in order. Total: an illegal one is rejected with its reason. */
  apply(operation: Operation): { readonly outcome: string; readonly reason: string | null };
  /** At most `snapshotBytesMax` of its kind. */
  snapshot(): Uint8Array;
  /** Replaces the state; false if the bytes cannot be read, which changes nothing. */
  restore(bytes: Uint8Array): boolean;
}

export interface GroupKind {
  /** Names of its groups begin so: lower-case letters and a slash. */
  readonly prefix: string;
  /** Size of one operation; at most `OPERATION_BYTES_MAX`. */
  readonly operationBytesMax: number;
  /** Size of a whole state; at most `SNAPSHOT_BYTES_MAX`. */
  readonly snapshotBytesMax: number;
  /** Creates a group's initial state; null if the name after the prefix is invalid. */
  found(name: string): Application | null;
  /**
   * Whether a group that others call new may be founded here now; default: always. A kind whose groups can be forgotten
   * rejects one that may have existed: this node no longer knows what it promised there.
   */
  mayBegin?(name: string, peek: GroupPeek): boolean;
}

/** The first group of this node whose name has this prefix: its state, and the log entries beyond that. */
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

  /** Creates the initial state of a group of a registered kind. */
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
