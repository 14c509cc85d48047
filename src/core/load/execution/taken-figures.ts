/** Figures of cores on their way into the results, and what is acknowledged of them. */

import type { CoreEvent, MergedFigures } from "../job/core-messages.ts";
import type { PhasesListener } from "./phase-types.ts";
import type { RunningWorkflows, Told } from "./running.ts";

/** Of one core. */
export function takeFrame(
  listener: PhasesListener,
  core: number,
  name: string,
  { bytes, execution, health, part }: Extract<CoreEvent, { kind: "frame" }>,
): Told {
  const frame = listener.frame(part ?? name, core, bytes, health);
  return { core, command: { kind: "acknowledge", execution, part, frame } };
}

/** Of several cores; the acknowledgement goes to whoever merges, by any of them. */
export function takeFigures(
  listener: PhasesListener,
  running: RunningWorkflows,
  from: string,
  figures: MergedFigures,
): readonly Told[] {
  const { cores, execution, part } = figures;
  // Those that are lost have nothing of it any more, and their worker tells what they made with the others.
  for (const { core } of cores) {
    const name = running.endedOf(core, execution) ?? running.nameOf(core, execution);
    if (name === undefined) continue;
    const frame = listener.figures(part ?? name, from, figures);
    return [{ core, command: { kind: "acknowledge", execution, part, frame } }];
  }
  return [];
}
