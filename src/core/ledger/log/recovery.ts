/**
 * Recovery: from the bytes of a directory's segments to the valid entries and the position where writing continues.
 * (WAL-12, WAL-13)
 *
 *     segment 1          segment 2                      segment 3 (prepared)
 *     ├ H r r r B r B 0 ┤├ H r r B r r ✗ ? ? ? 0 0 0 0 ┤├ 0 0 0 0 0 0 0 ┤
 *                                      └ the first position that does not check, expected LSN k
 *
 * Everything before ✗ counts. The meaning of ✗ depends on what lies behind it: a segment with a header begins only
 * after the one before it was synced, and a BATCH records what was durable before it was written. If either proves that
 * k had been durable, the damage is corruption and recovery aborts. Otherwise the rest is a batch whose sync never
 * finished, in which any subset of pages may have survived: it is cut.
 *
 * The segments are given one after the other, in order of their ids, whole (one is in memory at a time) or as far as
 * they have been read. Nothing is changed here: `finish` returns what to repair.
 */

import { assert } from "../../base/assert.ts";
import { type Crc32, crc32 } from "../../base/crc32.ts";
import { decodeBatchMark, provenLsn } from "./control.ts";
import type { WalConfig } from "./limits.ts";
import {
  fieldProblem,
  RECORD_HEADER_BYTES,
  type RecordProblem,
  readRecord,
  viewOf,
  type WalRecord,
} from "./record.ts";
import { isControlType, isKnownType, RECORD_TYPES } from "./record-types.ts";
import { WAL_RULES, type WalRules } from "./rules.ts";
import {
  ANY_IDENTITY,
  decodeSegmentHeader,
  firstNonZero,
  isHeaderBegun,
  isZero,
  SEGMENT_HEADER_BYTES,
  SEGMENT_VERSION,
  segmentName,
} from "./segment.ts";

type DamageReason = RecordProblem | "lsn-gap" | "page-lost" | "header-lost" | "batch-misplaced";

/** The first position that does not check. */
export interface Damage {
  readonly segmentId: number;
  readonly offset: number;
  /** The LSN that should have begun there. */
  readonly lsn: number;
  readonly reason: DamageReason;
}

export type RecoveryRefusal =
  | { readonly code: "WAL_CORRUPT"; readonly damage: Damage; readonly proof: string }
  | { readonly code: "WAL_VERSION"; readonly segmentId: number; readonly version: number }
  | { readonly code: "WAL_FOREIGN"; readonly segmentId: number; readonly what: string }
  | { readonly code: "WAL_IDENTITY"; readonly segmentId: number; readonly found: string }
  | {
      readonly code: "WAL_UNKNOWN_TYPE";
      readonly segmentId: number;
      readonly offset: number;
      readonly type: number;
    };

/** Where the writer goes on. */
export interface WriterPosition {
  /** The segment to write to and the offset of the next byte; null: none yet, begin with `nextSegmentId`. */
  readonly active: { readonly segmentId: number; readonly offset: number } | null;
  readonly nextSegmentId: number;
  readonly nextLsn: number;
}

interface SegmentSummary {
  readonly segmentId: number;
  readonly firstLsn: number;
  /** `firstLsn - 1` when it holds nothing. */
  readonly lastLsn: number;
  /** The offset after the last record. */
  readonly endOffset: number;
}

export interface Recovered {
  readonly ok: true;
  readonly entries: number;
  readonly records: number;
  readonly firstLsn: number;
  readonly maxLsn: number;
  readonly maxHlc: { readonly wall: number; readonly logical: number };
  readonly segments: readonly SegmentSummary[];
  /** The damaged tail that was cut off, and where; null if the log ends cleanly. */
  readonly tornTail: Damage | null;
  /** To be done, in this order, and synced, before anything is written. */
  readonly repairs: readonly Repair[];
  readonly position: WriterPosition;
}

type Repair =
  /** Everything from this offset on becomes zero. */
  | { readonly kind: "cut"; readonly segmentId: number; readonly offset: number }
  /** Made and never used, or used in a batch that did not happen. */
  | { readonly kind: "remove"; readonly segmentId: number };

export type RecoveryOutcome = Recovered | { readonly ok: false; readonly refusal: RecoveryRefusal };

export interface RecoveryOptions {
  readonly config: WalConfig;
  /** `ANY_IDENTITY` takes every log. */
  readonly identity: string;
  readonly rules?: WalRules;
  readonly checksum?: Crc32;
  /** Called for every entry in order, the log's own records left out. The payload is a view: copy what stays. */
  readonly onEntry?: (record: WalRecord, place: RecordPlace) => void;
  /** Called for every record, also the log's own. */
  readonly onRecord?: (record: WalRecord, place: RecordPlace) => void;
}

export interface RecordPlace {
  readonly segmentId: number;
  readonly offset: number;
}

type ScanProgress =
  /** As many records as asked for; go on. */
  | "more"
  /** The bytes read so far end inside a record. */
  | "starved"
  /** This segment is finished: give the next, or `finish`. */
  | "done";

export class Recovery {
  readonly #options: RecoveryOptions;
  readonly #rules: WalRules;
  readonly #checksum: Crc32;
  readonly #segments: SegmentSummary[] = [];
  #refusal: RecoveryRefusal | null = null;
  #damage: Damage | null = null;
  /** Segments behind the end, to be removed. */
  #unused: number[] = [];
  #bytes: Uint8Array = new Uint8Array(0);
  #view = viewOf(this.#bytes);
  #size = 0;
  #segmentId = 0;
  #offset = 0;
  #headerSeen = false;
  /** Whether the header announces records. */
  #hasRecords = false;
  #firstLsn = 0;
  #expected = 0;
  #entries = 0;
  #records = 0;
  #wall = 0;
  #logical = 0;

  constructor(options: RecoveryOptions) {
    this.#options = options;
    this.#rules = options.rules ?? WAL_RULES;
    this.#checksum = options.checksum ?? crc32;
  }

  /** `bytes` may be longer than the file; `scan` says how much of it has been read. */
  beginSegment(segmentId: number, bytes: Uint8Array, size: number): void {
    assert(segmentId > this.#segmentId, "segments come in order of their ids");
    assert(size <= bytes.length, "a segment fits its buffer");
    this.#segmentId = segmentId;
    this.#bytes = bytes;
    this.#view = viewOf(bytes);
    this.#size = size;
    this.#offset = 0;
    this.#headerSeen = false;
  }

  scan(read: number, recordsMax = Number.POSITIVE_INFINITY): ScanProgress {
    assert(read <= this.#size, "no more is read than there is");
    if (this.#refusal !== null) return "done";
    if (!this.#headerSeen) {
      if (read < Math.min(this.#size, SEGMENT_HEADER_BYTES)) return "starved";
      this.#headerSeen = true;
      this.#hasRecords = this.#begin();
    }
    if (!this.#hasRecords || this.#damage !== null) return this.#behind(read);
    for (let count = 0; count < recordsMax; count++) {
      const progress = this.#record(read);
      if (progress !== "record") return progress;
    }
    return "more";
  }

  get refused(): boolean {
    return this.#refusal !== null;
  }

  finish(): RecoveryOutcome {
    const refusal = this.#refusal;
    if (refusal !== null) return { ok: false, refusal };
    const last = this.#segments.at(-1);
    const damage = this.#damage;
    const repairs: Repair[] = [];
    if (damage !== null && last !== undefined && damage.segmentId === last.segmentId) {
      repairs.push({ kind: "cut", segmentId: damage.segmentId, offset: damage.offset });
    }
    for (const segmentId of this.#unused) repairs.push({ kind: "remove", segmentId });
    return {
      ok: true,
      entries: this.#entries,
      records: this.#records,
      firstLsn: this.#firstLsn,
      maxLsn: Math.max(0, this.#expected - 1),
      maxHlc: { wall: this.#wall, logical: this.#logical },
      segments: this.#segments,
      tornTail: damage,
      repairs,
      position: {
        active: last === undefined ? null : { segmentId: last.segmentId, offset: last.endOffset },
        nextSegmentId: (last?.segmentId ?? this.#unused[0] ?? 1) + (last === undefined ? 0 : 1),
        nextLsn: Math.max(1, this.#expected),
      },
    };
  }

  /** Looks at a segment's header. False: no records are to be read here. */
  #begin(): boolean {
    const verdict = decodeSegmentHeader(
      this.#bytes.subarray(0, Math.min(this.#size, SEGMENT_HEADER_BYTES)),
    );
    const segmentId = this.#segmentId;
    if (verdict.kind === "unused" || this.#isHeaderBegun()) {
      // The first of these is where the log ends; if it hides something, `#behind` will tell.
      this.#unused.push(segmentId);
      return false;
    }
    if (verdict.kind === "foreign" || verdict.kind === "version") {
      this.#refusal =
        verdict.kind === "version"
          ? { code: "WAL_VERSION", segmentId, version: verdict.version }
          : { code: "WAL_FOREIGN", segmentId, what: "it does not begin like a segment" };
      return false;
    }
    if (verdict.kind === "damaged") {
      this.#refuseDamage(
        this.#damageAt(0, "header-lost"),
        "a crash leaves a header whole or absent",
      );
      return false;
    }
    const { header } = verdict;
    const { identity } = this.#options;
    if (header.segmentId !== segmentId) {
      const what = `its header says segment ${header.segmentId}: it was renamed or copied`;
      this.#refusal = { code: "WAL_FOREIGN", segmentId, what };
      return false;
    }
    if (![identity, header.identity].includes(ANY_IDENTITY) && header.identity !== identity) {
      this.#refusal = { code: "WAL_IDENTITY", segmentId, found: header.identity };
      return false;
    }
    return this.#continues(header.firstLsn);
  }

  #isHeaderBegun(): boolean {
    const bytes = this.#bytes.subarray(0, Math.min(this.#size, SEGMENT_HEADER_BYTES));
    if (decodeSegmentHeader(bytes).kind === "header") return false;
    return isHeaderBegun(bytes, {
      segmentId: this.#segmentId,
      identity: this.#options.identity,
      firstLsn: Math.max(1, this.#expected),
    });
  }

  /** A header proves that everything before it had been synced. (WAL-6) */
  #continues(firstLsn: number): boolean {
    const before = this.#segments.at(-1);
    const proof = `${segmentName(this.#segmentId)} began at LSN ${firstLsn}`;
    const gap = before !== undefined && firstLsn !== before.lastLsn + 1;
    const hole =
      this.#unused.length > 0 || (before !== undefined && before.segmentId + 1 !== this.#segmentId);
    if (this.#damage !== null || gap || hole) {
      const end = {
        segmentId: before?.segmentId ?? this.#segmentId,
        offset: before?.endOffset ?? 0,
      };
      this.#refuseDamage(this.#damage ?? { ...end, lsn: this.#expected, reason: "lsn-gap" }, proof);
      if (this.#rules.truncateOnlyTornTail || this.#damage === null) return false;
      this.#unused.push(this.#segmentId);
      return false;
    }
    if (before === undefined) this.#firstLsn = firstLsn;
    this.#expected = firstLsn;
    this.#offset = SEGMENT_HEADER_BYTES;
    this.#summarise(firstLsn);
    return true;
  }

  #summarise(firstLsn: number): void {
    this.#segments.push({
      segmentId: this.#segmentId,
      firstLsn,
      lastLsn: this.#expected - 1,
      endOffset: this.#offset,
    });
  }

  /** Keeps the summary of the segment under way up to date, and ends the segment. */
  #settle(): void {
    const summary = this.#segments.pop();
    assert(summary !== undefined, "a segment under way has a summary");
    this.#summarise(summary.firstLsn);
  }

  #record(read: number): "record" | ScanProgress {
    const at = this.#offset;
    const left = this.#size - at;
    if (left >= RECORD_HEADER_BYTES && read - at < RECORD_HEADER_BYTES) return "starved";
    if (left < RECORD_HEADER_BYTES || this.#isEmptyAt(at)) return this.#endOfData(read);
    const length = this.#view.getUint32(at + 4, true);
    const after = at + RECORD_HEADER_BYTES + length;
    if (length > this.#options.config.payloadBytesMax) return this.#spoil("payload-too-long", read);
    if (after > this.#size) return this.#spoil("payload-truncated", read);
    if (after > read) return "starved";
    const sound = this.#view.getUint32(at, true) === this.#checksum(this.#bytes, at + 4, after);
    if (!sound && this.#rules.verifyCrc) return this.#spoil("crc-mismatch", read);
    const record = readRecord(this.#view, this.#bytes, at, after);
    if (record.lsn !== this.#expected && this.#rules.lsnContiguous)
      return this.#spoil("lsn-gap", read);
    const problem = fieldProblem(this.#view, at, record);
    if (problem !== null) return this.#spoil(problem, read);
    return this.#accept(record, after, read);
  }

  /** One word decides nearly always: the checksum of a record is hardly ever zero. */
  #isEmptyAt(at: number): boolean {
    return (
      this.#view.getUint32(at, true) === 0 && isZero(this.#bytes, at, at + RECORD_HEADER_BYTES)
    );
  }

  #accept(record: WalRecord, after: number, read: number): "record" | ScanProgress {
    const place = { segmentId: this.#segmentId, offset: this.#offset };
    const { type, lsn } = record;
    if (!isKnownType(type) && this.#rules.unknownTypeRefused) {
      this.#refusal = { code: "WAL_UNKNOWN_TYPE", ...place, type };
      return "done";
    }
    if (type === RECORD_TYPES.BATCH) {
      const mark = decodeBatchMark(record.payload);
      const placed = mark?.segmentId === place.segmentId && mark.offset === place.offset;
      if (!placed) return this.#spoil("batch-misplaced", read);
    }
    this.#options.onRecord?.(record, place);
    if (!isControlType(type)) {
      this.#entries++;
      this.#options.onEntry?.(record, place);
    }
    if (
      record.wall > this.#wall ||
      (record.wall === this.#wall && record.logical > this.#logical)
    ) {
      this.#wall = record.wall;
      this.#logical = record.logical;
    }
    this.#records++;
    this.#expected = lsn + 1;
    this.#offset = after;
    return "record";
  }

  /** An empty area. It must be empty to the end, or something is missing here. */
  #endOfData(read: number): ScanProgress {
    if (read < this.#size) return "starved";
    const at = this.#offset;
    const residue = firstNonZero(this.#bytes, at, this.#size);
    if (residue === this.#size) {
      this.#settle();
      return "done";
    }
    const inHeader = residue < at + RECORD_HEADER_BYTES;
    return this.#spoil(inHeader ? "header-truncated" : "page-lost", read);
  }

  #spoil(reason: DamageReason, read: number): ScanProgress {
    if (this.#damage === null) {
      this.#settle();
      this.#damage = this.#damageAt(this.#offset, reason);
    }
    return this.#behind(read);
  }

  /** Behind the end of the log: nothing counts here any more, but it may hold proofs. */
  #behind(read: number): ScanProgress {
    if (this.#refusal !== null) return "done";
    if (read < this.#size) return "starved";
    const own = this.#damage?.segmentId === this.#segmentId;
    const start = own ? (this.#damage?.offset ?? 0) + 1 : 0;
    const proven = provenLsn(
      this.#bytes,
      { segmentId: this.#segmentId, start, end: this.#size },
      this.#checksum,
    );
    const before = this.#segments.at(-1);
    // An unused segment with bytes in it: a batch that began it and lost its header.
    if (this.#damage === null && firstNonZero(this.#bytes, 0, this.#size) !== this.#size) {
      this.#damage = this.#damageAt(0, "header-lost");
    }
    const lost = this.#damage?.lsn ?? this.#expected;
    if (proven >= lost && proven > 0) {
      const end = { segmentId: before?.segmentId ?? 0, offset: before?.endOffset ?? 0 };
      this.#refuseDamage(
        this.#damage ?? { ...end, lsn: lost, reason: "lsn-gap" },
        `a later BATCH record says LSN ${proven} was durable`,
      );
    }
    return "done";
  }

  #damageAt(offset: number, reason: DamageReason): Damage {
    return { segmentId: this.#segmentId, offset, lsn: Math.max(1, this.#expected), reason };
  }

  #refuseDamage(damage: Damage, proof: string): void {
    if (!this.#rules.truncateOnlyTornTail) return;
    this.#refusal ??= { code: "WAL_CORRUPT", damage, proof };
  }
}

export function refusalText(refusal: RecoveryRefusal, identity: string): string {
  const name = segmentName("damage" in refusal ? refusal.damage.segmentId : refusal.segmentId);
  switch (refusal.code) {
    case "WAL_CORRUPT": {
      const { offset, reason, lsn } = refusal.damage;
      return `${name} is corrupt at offset ${offset} (${reason}, LSN ${lsn}): ${refusal.proof}`;
    }
    case "WAL_VERSION":
      return (
        `${name} has format version ${refusal.version}; ` +
        `this program reads version ${SEGMENT_VERSION}`
      );
    case "WAL_FOREIGN":
      return `${name} is not a segment of this log: ${refusal.what}`;
    case "WAL_IDENTITY":
      return (
        `${name} belongs to another cluster or node: ` +
        `its identity is ${refusal.found}, ours is ${identity}`
      );
    case "WAL_UNKNOWN_TYPE":
      return (
        `${name} holds a record of unknown type ${refusal.type} at offset ${refusal.offset}: ` +
        "another version wrote it"
      );
  }
}
