/** CPU time of a process per received frame, and how many senders it supports at half a core. */

import { cpuSecondsOf } from "../http/processes.ts";
import { quantile, type Seen } from "./row.ts";
import { pause } from "./stage.ts";

const SLICE_MS = 4_000;
/** Share of a core. */
const SHARE_MAX = 0.5;

export interface FramesLimit {
  /** Rate of each sender. */
  readonly framesPerSecond: number;
  readonly must: number;
}

interface FrameCosts {
  readonly name: string;
  readonly pid: number;
  /** Number of senders. */
  readonly tellers: number;
  /** Frames received so far. */
  readonly counted: () => number;
  readonly rounds: number;
  readonly say: (text: string) => void;
}

/** Seconds per frame, for each round. */
export async function costsOfFrames(measured: FrameCosts): Promise<readonly number[]> {
  const { counted, name, pid, rounds, say, tellers } = measured;
  const costs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const [cpu, before, began] = [cpuSecondsOf(pid), counted(), performance.now()];
    await pause(SLICE_MS);
    const taken = counted() - before;
    if (taken === 0) throw new Error(`${name}: no frame was taken`);
    const seconds = (performance.now() - began) / 1_000;
    const used = cpuSecondsOf(pid) - cpu;
    costs.push(used / taken);
    const [rate, share] = [taken / seconds / tellers, (100 * used) / seconds];
    say(
      `${name}: ${tellers} tell ${rate.toFixed(1)} frames/s each, ${share.toFixed(0)} % of a core, ` +
        `${((1e6 * used) / taken).toFixed(0)} us per frame`,
    );
  }
  return costs;
}

/** Uses the median of all rounds. */
export function seenOfFrames(costs: readonly number[], limit: FramesLimit, load: string): Seen {
  const cost = quantile(costs, 0.5);
  const carried = Math.floor(SHARE_MAX / (limit.framesPerSecond * cost));
  const text = `${carried} (${Math.round(1e6 * cost)} us of CPU for a frame, ${load})`;
  return { text, holds: carried >= limit.must };
}
