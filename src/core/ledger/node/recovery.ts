/**
 * A node's groups from its checkpoint and its log: the checkpoint's images first, then every record
 * after it, in order. (CKPT-6, CKPT-7)
 *
 * A checkpoint holds each group's image as it was at one instant, so it equals the fold of all records
 * handed out before; the driver writes down at which record that was.
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

/** The state of all groups now; covers the first `node.appends` records of this process. (CKPT-1) */
export function encodeCheckpoint(node: LedgerNode): Uint8Array {
  const out = new ByteWriter(65_536);
  out.uint8(CHECKPOINT_VERSION);
  out.varint(node.groups.size);
  for (const [id, group] of node.groups) {
    out.text(id);
    writeImage(out, group.replica.image());
  }
  out.varint(node.archived.size);
  for (const id of node.archived) out.text(id);
  out.varint(node.identities.size);
  for (const [peer, identity] of node.identities) {
    out.text(peer);
    out.text(identity);
  }
  return out.take();
}

export class LedgerRecovery {
  readonly #folds = new Map<GroupId, ImageFold>();
  readonly archived = new Set<string>();
  readonly identities = new Map<NodeId, string>();
  /** What could not be read; recovery must not go on then. */
  problem: string | null = null;

  /** Before any record; null: there is no checkpoint. */
  restore(checkpoint: Uint8Array | null): void {
    if (checkpoint === null) return;
    const from = new ByteReader(checkpoint);
    if (from.uint8() !== CHECKPOINT_VERSION) from.fail("a checkpoint of another version");
    const count = from.varint();
    if (count > CHECKPOINT_GROUPS_MAX) from.fail("too many groups in a checkpoint");
    for (let i = 0; i < count && !from.failed; i++) {
      const id = from.text(GROUP_ID_BYTES_MAX) as GroupId;
      this.#folds.set(id, new ImageFold(readImage(from)));
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
    this.problem = from.problem;
  }

  apply(type: number, payload: Uint8Array): void {
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
    let fold = this.#folds.get(group);
    if (fold === undefined) {
      fold = new ImageFold();
      this.#folds.set(group, fold);
    }
    fold.apply(record);
  }

  #applyIdentity(payload: Uint8Array): void {
    const decoded = decodeIdentity(payload);
    if (typeof decoded === "string") this.problem ??= decoded;
    else this.identities.set(decoded.peer, decoded.identity);
  }

  images(): Map<GroupId, GroupImage> {
    const images = new Map<GroupId, GroupImage>();
    for (const [id, fold] of this.#folds) {
      if (!this.archived.has(id)) images.set(id, fold.image);
    }
    return images;
  }
}
