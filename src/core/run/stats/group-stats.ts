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

  /** Microseconds; `active` leaves declared pauses out. */
  record(failed: boolean, durationUs: number, activeUs: number): void {
    if (failed) this.#failed++;
    else this.#ok++;
    this.#duration.record(durationUs);
    this.#active.record(activeUs);
  }

  writeChanges(writer: ByteWriter): void {
    writer.varint(this.#ok);
    writer.varint(this.#failed);
    this.#duration.writeChanges(writer);
    this.#active.writeChanges(writer);
  }
}

export class GroupTotals {
  ok = 0;
  failed = 0;
  /** Microseconds. */
  readonly duration = new Histogram();
  readonly active = new Histogram();

  /** False, and nothing changed, when the bytes are not a frame of a group. */
  applyChanges(reader: ByteReader): boolean {
    const [ok, failed] = [reader.varint(), reader.varint()];
    const [duration, active] = [readCellChanges(reader), readCellChanges(reader)];
    if (reader.failed || duration === undefined || active === undefined) return false;
    this.ok = Math.max(this.ok, ok);
    this.failed = Math.max(this.failed, failed);
    applyCellChanges(this.duration, duration, null);
    applyCellChanges(this.active, active, null);
    return true;
  }

  mergeInto(other: GroupTotals): void {
    other.ok += this.ok;
    other.failed += this.failed;
    other.duration.merge(this.duration);
    other.active.merge(this.active);
  }
}
