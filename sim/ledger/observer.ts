/**
 * Expected content of one node's disk, kept beside it: every record written with its number, how many were reported
 * durable, and the groups' images folded from exactly these. Compared at every recovery.
 *
 *   W1  acknowledged records come back byte for byte
 *   W2  nothing comes back that was not written, nothing is missing in between
 *   W3  a damaged log is rejected, a healthy one never is
 *   W5  nothing is acknowledged after a failed sync
 *   W6  a group's image comes back with the promises and entries that were durable
 *   W7  a group that does not come back is in the archive
 *   W8  a checkpoint in place covers only records that are durable
 *   E1  a replica without a log grants nothing (VSR-27)
 *   I3  a primary that gave up a view no longer leads it
 *   I6  an ack of n means 0..n are durable; a granted view is durable (VSR-3, VSR-4)
 */

import type { NodeId } from "../../src/core/base/ids.ts";
import type { GroupId, LogEntry, VsrMessage } from "../../src/core/ledger/group/messages.ts";
import { ImageFold } from "../../src/core/ledger/group/state.ts";
import type { GroupImage } from "../../src/core/ledger/group/types.ts";
import { decodeGroupRecord } from "../../src/core/ledger/node/records.ts";
import type { Violations } from "../membership/checkers/violations.ts";
import type { LogObserver, Opened } from "./storage.ts";

interface Written {
  readonly type: number;
  readonly payload: Uint8Array;
}

export class NodeObserver implements LogObserver {
  readonly #name: string;
  readonly #violations: Violations;
  /** By LSN: what lies in the log. */
  readonly #placed = new Map<number, Written>();
  /** By ticket - 1: what this process appended. */
  #appended: Written[] = [];
  #durableTicket = 0;
  #durableLsn = 0;
  #failed = false;
  #folds = new Map<GroupId, ImageFold>();
  /** Images of a lost disk: acks of it may still be in flight, and count. */
  #gone = new Map<GroupId, ImageFold>();
  /** View reported as given up, by peer and group. */
  readonly #resigned = new Map<string, number>();
  /** Groups that were durable here and have left memory. */
  readonly #archived = new Set<GroupId>();
  /** Files that a bit was flipped in. */
  readonly rotten = new Set<string>();

  constructor(name: string, violations: Violations) {
    this.#name = name;
    this.#violations = violations;
  }

  appended(_ticket: number, type: number, payload: Uint8Array): void {
    this.#appended.push({ type, payload });
  }

  placed(firstTicket: number, count: number, firstLsn: number): void {
    for (let i = 0; i < count; i++) {
      const written = this.#appended[firstTicket - 1 + i];
      if (written !== undefined) this.#placed.set(firstLsn + i, written);
    }
  }

  durable(ticket: number, lsn: number, onDisk: boolean): void {
    this.#violations.check(onDisk, "W1", () => {
      return `${this.#name} calls record ${lsn} durable, and the disk does not have it`;
    });
    this.#violations.check(!this.#failed, "W5", () => `${this.#name} acks after a failed sync`);
    for (let at = this.#durableTicket; at < ticket; at++) {
      const written = this.#appended[at];
      if (written !== undefined) this.#fold(written);
    }
    this.#durableTicket = ticket;
    this.#durableLsn = lsn;
  }

  failed(): void {
    this.#failed = true;
  }

  checkpointed(throughLsn: number): void {
    this.#violations.check(throughLsn <= this.#durableLsn, "W8", () => {
      return `${this.#name} has a checkpoint up to ${throughLsn}, durable is ${this.#durableLsn}`;
    });
  }

  #fold({ type, payload }: Written): void {
    const decoded = decodeGroupRecord(type, payload);
    if (decoded === null || typeof decoded === "string") return;
    const { group, record } = decoded;
    const fold = this.#folds.get(group);
    if (fold !== undefined) fold.apply(record);
    else {
      const fresh = new ImageFold();
      fresh.apply(record);
      this.#folds.set(group, fresh);
    }
  }

  /** A process begins with what the disk gave back. */
  recovered(opened: Opened, names: readonly string[]): void {
    const { outcome, checkpoint, records, archive } = opened;
    const { images } = opened.state;
    const { maxLsn, firstLsn } = outcome;
    const violations = this.#violations;
    const rotten = [...this.rotten].find((name) => names.includes(name));
    violations.check(
      rotten === undefined,
      "W3",
      () => `${this.#name} serves from rotten ${rotten}`,
    );
    const end = records.length === 0 ? (checkpoint?.throughLsn ?? 0) : maxLsn;
    violations.check(end >= this.#durableLsn, "W1", () => {
      return `${this.#name} acknowledged record ${this.#durableLsn} and recovers ${end}`;
    });
    let entries = 0;
    for (const { lsn, type, payload } of records) {
      entries++;
      const known = this.#placed.get(lsn);
      const same = known !== undefined && isSame(known, type, payload);
      // A write cut short by a crash or a full disk is in the log before its completion was reported.
      if (same || (lsn > this.#durableLsn && this.#wasAppended(type, payload))) continue;
      const id = lsn <= this.#durableLsn ? "W1" : "W2";
      violations.report(id, `${this.#name} recovers record ${lsn} with bytes nobody wrote there`);
    }
    let expected = 0;
    for (const lsn of this.#placed.keys()) {
      if (lsn < firstLsn || records.length === 0) this.#placed.delete(lsn);
      else if (lsn <= maxLsn) expected++;
      else this.#placed.delete(lsn);
    }
    violations.check(entries >= expected, "W2", () => `${this.#name} recovers a log with holes`);
    for (const { lsn, type, payload } of records) this.#placed.set(lsn, { type, payload });
    this.#compareImages(images, archive);
    this.#folds = new Map();
    for (const [id, image] of images) this.#folds.set(id, new ImageFold(image));
    this.#appended = [];
    this.#durableTicket = 0;
    // Whatever was found is synced before it is relied on.
    this.#durableLsn = outcome.maxLsn;
    this.#failed = false;
  }

  /** W6: a group comes back with at least its durable records; more may have reached the disk. */
  #compareImages(images: ReadonlyMap<GroupId, GroupImage>, archive: ReadonlySet<string>): void {
    for (const id of this.#folds.keys()) if (!images.has(id)) this.#archived.add(id);
    for (const id of this.#archived) {
      this.#violations.check(archive.has(id), "W7", () => {
        return `${this.#name} comes back without ${id}, and its archive does not have it`;
      });
    }
    for (const [id, fold] of this.#folds) {
      const was = fold.image;
      const back = images.get(id);
      if (back === undefined) continue;
      this.#violations.check(
        back.epoch >= was.epoch && back.commitMark >= was.commitMark,
        "W6",
        () => {
          return `${this.#name} recovers ${id} in epoch ${back.epoch}, ${was.epoch} was durable`;
        },
      );
      if (back.epoch !== was.epoch) continue;
      this.#violations.check(back.knownView >= was.knownView, "W6", () => {
        return `${this.#name} promised view ${was.knownView} of ${id} and recovers ${back.knownView}`;
      });
      const shorter = lastOf(back) < lastOf(was) && back.lastNormalView === was.lastNormalView;
      this.#violations.check(!shorter, "W6", () => {
        return `${this.#name} held ${id} up to ${lastOf(was)} and recovers ${lastOf(back)}`;
      });
    }
  }

  /** The disk is lost: nothing of it comes back. */
  lost(): void {
    this.#placed.clear();
    this.#gone = this.#folds;
    this.#folds = new Map();
    this.#archived.clear();
    this.#durableLsn = 0;
    this.rotten.clear();
  }

  refused(why: string): void {
    this.#violations.check(this.rotten.size > 0, "W3", () => `${this.#name} refuses: ${why}`);
  }

  #wasAppended(type: number, payload: Uint8Array): boolean {
    return this.#appended.some((written) => isSame(written, type, payload));
  }

  image(group: GroupId): GroupImage | null {
    return this.#folds.get(group)?.image ?? null;
  }

  /** Whether the disk has this entry at its index, or had it until it was lost. */
  holds(group: GroupId, entry: LogEntry): boolean {
    const images = [this.image(group), this.#gone.get(group)?.image ?? null];
    return images.some((image) => image !== null && isIn(image, entry));
  }

  /** I6: no message that rests on a record is sent before the record is durable. */
  onSend(to: NodeId, group: GroupId, message: VsrMessage): void {
    // One peer after the other gets what a turn brought, so the order counts for each.
    const key = `${to} ${group}`;
    if (message.kind === "resign") this.#resigned.set(key, message.view);
    if (message.kind === "prepare" || message.kind === "commit") {
      this.#violations.check(this.#resigned.get(key) !== message.view, "I3", () => {
        return `${this.#name} has given up view ${message.view} of ${group} and leads on`;
      });
    }
    if (message.kind === "prepareResponse" && message.acked >= 0) {
      // An answer that the view is over acks nothing.
      if (message.status === "staleView") return;
      const image = this.image(group);
      const promised = image?.epoch === message.epoch ? image.knownView : 0;
      this.#violations.check(promised <= message.view, "I6", () => {
        return `${this.#name} acks ${group} in view ${message.view} and has promised ${promised}`;
      });
      const last = image === null ? -1 : lastOf(image);
      const held = image?.lastNormalView === message.view ? last : -1;
      this.#violations.check(held >= message.acked, "I6", () => {
        return `${this.#name} acks ${message.acked} of ${group} in view ${message.view}, has ${held}`;
      });
    } else if (message.kind === "viewChangeResponse" && message.granted && !message.probe) {
      const image = this.image(group);
      // A grant that waited for the disk may leave after its epoch has ended; it counts in that epoch only.
      if (image !== null && image.epoch > message.epoch) return;
      const known = image?.knownView ?? 0;
      this.#violations.check(image?.learner !== true, "E1", () => {
        return `${this.#name} has no log of ${group} yet and grants view ${message.view}`;
      });
      this.#violations.check(known >= message.view, "I6", () => {
        return `${this.#name} grants view ${message.view} of ${group}, has ${known} on disk`;
      });
    }
  }
}

function isIn(image: GroupImage, entry: LogEntry): boolean {
  if (image.snapshot !== null && image.snapshot.seq >= entry.seq) return true;
  const first = image.entries[0]?.seq ?? 0;
  const own = image.entries[entry.seq - first];
  return own !== undefined && own.eventId === entry.eventId && own.view === entry.view;
}

function lastOf({ entries, snapshot }: GroupImage): number {
  return entries.at(-1)?.seq ?? snapshot?.seq ?? -1;
}

function isSame(written: Written, type: number, payload: Uint8Array): boolean {
  const { length } = payload;
  if (written.type !== type || written.payload.length !== length) return false;
  for (let i = 0; i < length; i++) if (written.payload[i] !== payload[i]) return false;
  return true;
}
