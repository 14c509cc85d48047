/**
 * Own metrics of a sender whose calls travel merged with those of others: its load and the lag of its event loop.
 * Encoded as a normal frame without steps and counts.
 */

import type { Frame } from "./frames.ts";
import { FrameWriter } from "./frames.ts";
import { Tally } from "./tally.ts";
import { NO_CHANGES } from "./tracked-histogram.ts";
import { RUN_HISTOGRAMS, RUN_SHAPE, type StatsShape, WorkflowStats } from "./workflow-stats.ts";

export const OWN_SHAPE: StatsShape = { errorKinds: 0, corrected: false };
/** The lag of a core is sent separately; other histograms are merged. */
const OWN_HISTOGRAMS = (["loopLag", "ownLag"] as const).map((one) => RUN_HISTOGRAMS.indexOf(one));

export class OwnFigures {
  readonly #stats = new WorkflowStats(OWN_SHAPE);
  readonly #writer = new FrameWriter(this.#stats);
  /** Totals received from its frames. */
  readonly #received = new Tally(RUN_SHAPE);

  /** Applies a received frame. */
  take({ horizonMs, load, moment, run }: Frame): void {
    const stats = this.#stats;
    const histograms = run.histograms.map((one, at) =>
      OWN_HISTOGRAMS.includes(at) ? one : NO_CHANGES,
    );
    this.#received.raise({ counts: [], keyed: [], histograms }, stats.run, stats.nextFrame);
    for (const window of load) if (window.startMs >= stats.horizonMs) stats.load.add(window);
    stats.moment = moment;
    stats.horizonMs = Math.max(stats.horizonMs, horizonMs);
  }

  /** The number of the next frame. */
  get nextFrame(): number {
    return this.#stats.nextFrame;
  }

  /** Records the frame that the receiver retains; 0 for none. */
  acknowledged(frame: number): void {
    this.#writer.acknowledged(frame);
  }

  write(): Uint8Array {
    return this.#writer.write();
  }
}
