/**
 * Restores a node's groups from its checkpoint and its log: first the checkpoint's images, then every later record, in
 * order. (CKPT-6, CKPT-7)
 *
 *     slice 1        slice 2        slice 3        the rest of the log
 *     ──┼──────────────┼──────────────┼───────────────────────────►
 *       └ the log is read from here; a record is skipped if its group's slice already has it
 *
 * A checkpoint is taken in slices so that no turn of the node is long. Each slice has some groups as they were at one
 * instant: the fold of all their records handed out before. Between slices the node keeps running. The writer of the
 * slices notes the record at which each was taken. (CKPT-1)
 */

import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { NODE_ID_BYTES_MAX, type NodeId } from "../../base/ids.ts";
import { readImage, writeImage } from "../group/codec.ts";
import { GROUP_ID_BYTES_MAX, type GroupId } from "../group/messages.ts";
import { ImageFold } from "../group/state.ts";
import type { GroupImage } from "../group/types.ts";
import { RECORD_TYPES } from "../log/record-types.ts";
import { decodeIdentity, IDENTITY_BYTES_MAX } from "./identities.ts";
import type { LedgerNode } from "./node.ts";
import { decodeGroupRecord } from "./records.ts";

const CHECKPOINT_VERSION = 2;
const CHECKPOINT_GROUPS_MAX = 16_777_216;

/** A turn of a few milliseconds: images are some kilobytes, and take some 30 to 50 µs each. */
const SLICE_GROUPS_MAX = 128;
const SLICE_BYTES_MAX = 262_144;
/** Ids only. */
const SLICE_ARCHIVED_MAX = 4_096;

/**
 * The node's state, one slice per call of `next`, each as of that call. Groups that appear after the first slice was
 * taken need not be in any: all their records come later.
 */
export function* snapshotSlices(
  node: LedgerNode,
  groupsMax = SLICE_GROUPS_MAX,
): Generator<Uint8Array, void> {
  const slice = new Slice(groupsMax);
  const gone: GroupId[] = [];
  for (const id of [...node.groups.keys()]) {
    const group = node.groups.get(id);
    if (group === undefined) gone.push(id);
    else slice.group(id, group.replica.image());
    if (slice.isFull) yield slice.take();
  }
  // After the groups: one that left memory before its slice was taken must be listed here, or its remaining records
  // would be mistaken for all of them.
  for (const id of gone) if (!node.archived.has(id)) slice.archived(id);
  let left = node.archived.size;
  for (const id of node.archived) {
    if (left-- === 0) break;
    slice.archived(id);
    if (slice.isFull) yield slice.take();
  }
  for (const [peer, identity] of node.identities) slice.identity(peer, identity);
  yield slice.take();
}

class Slice {
  readonly #groupsMax: number;
  readonly #groups = new Section();
  readonly #archived = new Section();
  readonly #identities = new Section();

  constructor(groupsMax: number) {
    this.#groupsMax = groupsMax;
  }

  get isFull(): boolean {
    const { count, bytes } = this.#groups;
    if (count >= this.#groupsMax || bytes >= SLICE_BYTES_MAX) return true;
    return this.#archived.count >= SLICE_ARCHIVED_MAX;
  }

  group(id: GroupId, image: GroupImage): void {
    const out = this.#groups.next();
    out.text(id);
    writeImage(out, image);
  }

  archived(id: string): void {
    this.#archived.next().text(id);
  }

  identity(peer: NodeId, identity: string): void {
    const out = this.#identities.next();
    out.text(peer);
    out.text(identity);
  }

  take(): Uint8Array {
    const out = new ByteWriter(this.#groups.bytes + this.#archived.bytes + 1_024);
    out.uint8(CHECKPOINT_VERSION);
    for (const section of [this.#groups, this.#archived, this.#identities]) section.moveTo(out);
    return out.take();
  }
}

/** A counted list. */
class Section {
  readonly #out = new ByteWriter(1_024);
  count = 0;

  get bytes(): number {
    return this.#out.length;
  }

  next(): ByteWriter {
    this.count++;
    return this.#out;
  }

  moveTo(out: ByteWriter): void {
    out.varint(this.count);
    out.raw(this.#out.take());
    this.count = 0;
    this.#out.clear();
  }
}

interface RecoveredGroup {
  readonly fold: ImageFold;
  /** The image includes all records up to this LSN. */
  readonly lsn: number;
}

export class LedgerRecovery {
  readonly #groups = new Map<GroupId, RecoveredGroup>();
  readonly archived = new Set<string>();
  readonly identities = new Map<NodeId, string>();
  /** First unreadable item; recovery must not continue then. */
  problem: string | null = null;
  /** Records that no slice had. */
  applied = 0;

  /** Before any record: a slice of a checkpoint, which has all records up to `lsn`. */
  restore(lsn: number, slice: Uint8Array): void {
    const from = new ByteReader(slice);
    if (from.uint8() !== CHECKPOINT_VERSION) from.fail("a checkpoint of another version");
    const count = from.varint();
    if (count > CHECKPOINT_GROUPS_MAX) from.fail("too many groups in a checkpoint");
    for (let i = 0; i < count && !from.failed; i++) {
      const id = from.text(GROUP_ID_BYTES_MAX) as GroupId;
      this.#groups.set(id, { fold: new ImageFold(readImage(from)), lsn });
    }
    const archived = from.varint();
    for (let i = 0; i < archived && !from.failed; i++) {
      this.archived.add(from.text(GROUP_ID_BYTES_MAX));
    }
    const peers = from.varint();
    for (let i = 0; i < peers && !from.failed; i++) {
      this.identities.set(from.text(NODE_ID_BYTES_MAX) as NodeId, from.text(IDENTITY_BYTES_MAX));
    }
    if (from.remaining > 0) from.fail("bytes after the end of a checkpoint");
    this.problem ??= from.problem;
  }

  apply(lsn: number, type: number, payload: Uint8Array): void {
    if (type === RECORD_TYPES.PEER_IDENTITY) {
      this.#applyIdentity(payload);
      return;
    }
    const decoded = decodeGroupRecord(type, payload);
    if (decoded === null) return;
    if (typeof decoded === "string") {
      this.problem ??= decoded;
      return;
    }
    const { group, record } = decoded;
    const known = this.#groups.get(group);
    if (known !== undefined && lsn <= known.lsn) return;
    this.applied++;
    const fold = known?.fold ?? new ImageFold();
    if (known === undefined) this.#groups.set(group, { fold, lsn: 0 });
    fold.apply(record);
  }

  #applyIdentity(payload: Uint8Array): void {
    const decoded = decodeIdentity(payload);
    if (typeof decoded === "string") this.problem ??= decoded;
    else {
      this.applied++;
      this.identities.set(decoded.peer, decoded.identity);
    }
  }

  images(): Map<GroupId, GroupImage> {
    const images = new Map<GroupId, GroupImage>();
    for (const [id, { fold }] of this.#groups) {
      if (!this.archived.has(id)) images.set(id, fold.image);
    }
    return images;
  }
}
