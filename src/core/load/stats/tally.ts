/**
 * Counters of one item (a step, a group, a check, a whole workflow): a row of counts, counts by key, and histograms.
 * All of them only grow, so a receiver may get any of them twice.
 */

import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { type CellChanges, readCellChanges, TrackedHistogram } from "./tracked-histogram.ts";

export interface TallyShape {
  readonly counts: number;
  readonly histograms: number;
  /** Maximum number of different keys; 0 when nothing is counted by key. */
  readonly keysMax: number;
  readonly keyMax: number;
}

export class Tally {
  readonly counts: Float64Array;
  readonly keyed = new Map<number, number>();
  readonly histograms: readonly TrackedHistogram[];
  /** The first frame that reports the last change. */
  changedIn = 0;

  constructor(shape: TallyShape) {
    this.counts = new Float64Array(shape.counts);
    this.histograms = Array.from({ length: shape.histograms }, () => new TrackedHistogram());
  }

  /** Writes all small values, and the cells of the histograms that changed after a frame. */
  write(writer: ByteWriter, since: number): void {
    for (const count of this.counts) writer.varint(count);
    writer.varint(this.keyed.size);
    for (const [key, count] of this.keyed) {
      writer.varint(key);
      writer.varint(count);
    }
    for (const histogram of this.histograms) histogram.write(writer, since);
  }

  /** Adds another tally, to be reported by this frame. */
  merge(other: Tally, frame: number): void {
    for (const [at, count] of other.counts.entries())
      this.counts[at] = (this.counts[at] ?? 0) + count;
    for (const [key, count] of other.keyed) this.keyed.set(key, (this.keyed.get(key) ?? 0) + count);
    for (const [at, { histogram }] of other.histograms.entries())
      this.histograms[at]?.merge(histogram, frame);
    this.changedIn = frame;
  }

  /** Raises the tally to the values of a frame, and the whole that it is a part of, if any, by the same differences. */
  raise(changes: TallyChanges, whole: Tally | null, frame: number): void {
    for (let at = 0; at < changes.counts.length; at++) {
      const count = changes.counts[at] ?? 0;
      // Most are zero, and retained values have left the caches since the last frame.
      if (count === 0) continue;
      const more = count - (this.counts[at] ?? 0);
      if (more <= 0) continue;
      this.counts[at] = count;
      if (whole !== null) whole.counts[at] = (whole.counts[at] ?? 0) + more;
    }
    for (const [key, count] of changes.keyed) {
      const more = count - (this.keyed.get(key) ?? 0);
      if (more <= 0) continue;
      this.keyed.set(key, count);
      whole?.keyed.set(key, (whole.keyed.get(key) ?? 0) + more);
    }
    for (let at = 0; at < changes.histograms.length; at++) {
      const cells = changes.histograms[at];
      if (cells === undefined || cells.stretch === null) continue;
      this.histograms[at]?.raise(cells, whole?.histograms[at] ?? null, frame);
    }
    if (whole !== null) whole.changedIn = frame;
  }
}

/** Changes of one tally in one frame, decoded and validated. */
export interface TallyChanges {
  readonly counts: readonly number[];
  readonly keyed: readonly (readonly [key: number, count: number])[];
  readonly histograms: readonly CellChanges[];
}

/** Undefined when the bytes are not of such a tally. */
export function readTally(reader: ByteReader, shape: TallyShape): TallyChanges | undefined {
  const counts = new Array<number>(shape.counts);
  for (let i = 0; i < shape.counts; i++) counts[i] = reader.varint();
  const keys = reader.varint();
  if (reader.failed || keys > shape.keysMax) return undefined;
  const keyed: (readonly [number, number])[] = [];
  for (let i = 0; i < keys; i++) keyed.push([reader.varint(), reader.varint()]);
  if (keyed.some(([key]) => key > shape.keyMax)) return undefined;
  const histograms: CellChanges[] = [];
  for (let i = 0; i < shape.histograms; i++) {
    const changes = readCellChanges(reader);
    if (changes === undefined) return undefined;
    histograms.push(changes);
  }
  return reader.failed ? undefined : { counts, keyed, histograms };
}
