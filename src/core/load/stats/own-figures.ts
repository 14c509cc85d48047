/**
 * What a sender tells of itself alone when its calls travel merged with those of others: the load it made and how
 * late its event loop ran. It is a frame like any other, with neither steps nor counts.
 */

import type { Frame } from "./frames.ts";
import { FrameWriter } from "./frames.ts";
import { Tally } from "./tally.ts";
import { NO_CHANGES } from "./tracked-histogram.ts";
import { RUN_HISTOGRAMS, RUN_SHAPE, type StatsShape, WorkflowStats } from "./workflow-stats.ts";

export const OWN_SHAPE: StatsShape = { errorKinds: 0, corrected: false };
/** The lag of a core is its own affair; other histograms are merged. */
const OWN_HISTOGRAMS = (["loopLag", "ownLag"] as const).map((one) => RUN_HISTOGRAMS.indexOf(one));

export class OwnFigures {
  readonly #stats = new WorkflowStats(OWN_SHAPE);
  readonly #writer = new FrameWriter(this.#stats);
  /** As the frames have told it. */
  readonly #told = new Tally(RUN_SHAPE);

  /** A frame of it that was taken in. */
  take({ horizonMs, load, moment, run }: Frame): void {
    const stats = this.#stats;
    const histograms = run.histograms.map((one, at) =>
      OWN_HISTOGRAMS.includes(at) ? one : NO_CHANGES,
    );
    this.#told.raise({ counts: [], keyed: [], histograms }, stats.run, stats.nextFrame);
    for (const window of load) if (window.startMs >= stats.horizonMs) stats.load.add(window);
    stats.moment = moment;
    stats.horizonMs = Math.max(stats.horizonMs, horizonMs);
  }

  /** The number that the next frame will have. */
  get nextFrame(): number {
    return this.#stats.nextFrame;
  }

  /** The receiver says which frame it holds; 0 for none. */
  acknowledged(frame: number): void {
    this.#writer.acknowledged(frame);
  }

  write(): Uint8Array {
    return this.#writer.write();
  }
}
