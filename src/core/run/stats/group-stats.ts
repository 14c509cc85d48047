/**
 * How long groups of calls took: the whole of an iteration, and the groups its author named. Held
 * like the numbers of steps (`step-stats.ts`): frames of absolute values of what changed.
 */

import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { applyCellChanges, CellRecorder, readCellChanges } from "./cell-recorder.ts";
import { Histogram } from "./histogram.ts";

/** The group that is the whole iteration. */
export const WHOLE_ITERATION = "";

export class GroupRecorder {
  #ok = 0;
  #failed = 0;
  readonly #duration = new CellRecorder();
  readonly #active = new CellRecorder();
  /** Of those that failed: durations of the others are all without these. */
  readonly #failedDuration = new CellRecorder();
  readonly #failedActive = new CellRecorder();

  /** Microseconds; `active` leaves declared pauses out. An iteration fails by not completing. */
  record(failed: boolean, durationUs: number, activeUs: number): void {
    if (failed) this.#failed++;
    else this.#ok++;
    this.#duration.record(durationUs);
    this.#active.record(activeUs);
    if (!failed) return;
    this.#failedDuration.record(durationUs);
    this.#failedActive.record(activeUs);
  }

  writeChanges(writer: ByteWriter): void {
    writer.varint(this.#ok);
    writer.varint(this.#failed);
    this.#duration.writeChanges(writer);
    this.#active.writeChanges(writer);
    this.#failedDuration.writeChanges(writer);
    this.#failedActive.writeChanges(writer);
  }
}

export class GroupTotals {
  ok = 0;
  failed = 0;
  /** Microseconds. */
  readonly duration = new Histogram();
  readonly active = new Histogram();
  readonly failedDuration = new Histogram();
  readonly failedActive = new Histogram();

  /** Of those that did not fail; extremes are known to the width of a cell once something failed. */
  get okDuration(): Histogram {
    return without(this.duration, this.failedDuration);
  }

  get okActive(): Histogram {
    return without(this.active, this.failedActive);
  }

  /** False, and nothing changed, when the bytes are not a frame of a group. */
  applyChanges(reader: ByteReader): boolean {
    const [ok, failed] = [reader.varint(), reader.varint()];
    const read = Array.from({ length: 4 }, () => readCellChanges(reader));
    if (reader.failed) return false;
    const [duration, active, failedDuration, failedActive] = read;
    if (duration === undefined || active === undefined) return false;
    if (failedDuration === undefined || failedActive === undefined) return false;
    this.ok = Math.max(this.ok, ok);
    this.failed = Math.max(this.failed, failed);
    applyCellChanges(this.duration, duration, null);
    applyCellChanges(this.active, active, null);
    applyCellChanges(this.failedDuration, failedDuration, null);
    applyCellChanges(this.failedActive, failedActive, null);
    return true;
  }

  mergeInto(other: GroupTotals): void {
    other.ok += this.ok;
    other.failed += this.failed;
    other.duration.merge(this.duration);
    other.active.merge(this.active);
    other.failedDuration.merge(this.failedDuration);
    other.failedActive.merge(this.failedActive);
  }
}

function without(all: Histogram, failed: Histogram): Histogram {
  return failed.count === 0 ? all : all.without(failed);
}
