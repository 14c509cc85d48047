/**
 * The last figures of shares that have ended, for whoever leads the job next: a leader that is gone takes what
 * was confirmed to it along, and the core may do something else by now.
 *
 * The last frame of a load tells all from its start; what a tear-down called comes after it, written against it.
 */

import type { WorkerEvent } from "../messages.ts";

type CoreRow = Extract<WorkerEvent, { kind: "core" }>;

/** Of one job; the oldest share goes first, and its figures are then said to be missing. */
const KEPT_BYTES_MAX = 8 * 1_048_576;

export class KeptFrames {
  /** The last of each core and part of a load that is under way. */
  readonly #last = new Map<string, CoreRow>();
  /** By core and execution, in the order in which they ended. */
  readonly #ended = new Map<string, CoreRow[]>();
  #bytes = 0;

  get all(): readonly WorkerEvent[] {
    return [...this.#ended.values()].flat();
  }

  onEvent(row: CoreRow): void {
    const { core, event } = row;
    if (event.kind === "frame") {
      const share = `${core} ${event.execution}`;
      const ended = this.#ended.get(share);
      if (ended === undefined) this.#last.set(`${share} ${event.part ?? ""}`, row);
      else this.#keep(share, [...ended, row]);
    } else if (event.kind === "finished") this.#onFinished(`${core} ${event.execution}`);
    else if (event.kind === "prepared") this.#forgetOthers(`${core} `);
  }

  #onFinished(share: string): void {
    const frames = [...this.#last].filter(([key]) => key.startsWith(`${share} `));
    for (const [key] of frames) this.#last.delete(key);
    // Said again to a new leader: they are kept already.
    if (frames.length > 0)
      this.#keep(
        share,
        frames.map(([, frame]) => frame),
      );
  }

  /** A core does one thing at a time. */
  #forgetOthers(core: string): void {
    for (const key of [...this.#last.keys()]) if (key.startsWith(core)) this.#last.delete(key);
  }

  #keep(share: string, frames: CoreRow[]): void {
    this.#bytes += bytesOf(frames) - bytesOf(this.#ended.get(share) ?? []);
    this.#ended.set(share, frames);
    for (const [oldest, held] of this.#ended) {
      if (this.#bytes <= KEPT_BYTES_MAX) return;
      this.#ended.delete(oldest);
      this.#bytes -= bytesOf(held);
    }
  }

  clear(): void {
    this.#last.clear();
    this.#ended.clear();
    this.#bytes = 0;
  }
}

function bytesOf(frames: readonly CoreRow[]): number {
  return frames.reduce(
    (sum, { event }) => sum + (event.kind === "frame" ? event.bytes.length : 0),
    0,
  );
}
