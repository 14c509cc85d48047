/**
 * Retains the last frames of finished shares for the next leader: a failed leader takes what was acknowledged to it
 * along, and the core may be busy with something else by then.
 *
 * The last frame of a load covers everything from its start; calls of a tear-down follow it as a delta.
 */

import type { WorkerEvent } from "../messages.ts";

type CoreRow = Extract<WorkerEvent, { kind: "core" }>;

/** Limit per job. The oldest share is dropped first; the report then says that its metrics are missing. */
const KEPT_BYTES_MAX = 8 * 1_048_576;

export class KeptFrames {
  /** Last frame of each core and part of a running load. */
  readonly #last = new Map<string, CoreRow>();
  /** By core and execution, in the order in which they finished. */
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
    // Repeated for a new leader: the frames are retained already.
    if (frames.length > 0)
      this.#keep(
        share,
        frames.map(([, frame]) => frame),
      );
  }

  /** A core runs one execution at a time. */
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
