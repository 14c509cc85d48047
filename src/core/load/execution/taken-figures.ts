/** Passes metrics of cores into the results, and acknowledges them. */

import type { CoreEvent, MergedFigures } from "../job/core-messages.ts";
import type { PhasesListener } from "./phase-types.ts";
import type { CoreOrder, RunningWorkflows } from "./running.ts";

/** Metrics of one core. */
export function takeFrame(
  listener: PhasesListener,
  core: number,
  name: string,
  { bytes, execution, health, part }: Extract<CoreEvent, { kind: "frame" }>,
): CoreOrder {
  const frame = listener.frame(part ?? name, core, bytes, health);
  return { core, command: { kind: "acknowledge", execution, part, frame } };
}

/** Metrics of several cores; the acknowledgement goes to their worker through any of them. */
export function takeFigures(
  listener: PhasesListener,
  running: RunningWorkflows,
  from: string,
  figures: MergedFigures,
): readonly CoreOrder[] {
  const { cores, execution, part } = figures;
  // Lost cores have nothing left to acknowledge; their worker reports their load with the others.
  for (const { core } of cores) {
    const name = running.endedOf(core, execution) ?? running.nameOf(core, execution);
    if (name === undefined) continue;
    const frame = listener.figures(part ?? name, from, figures);
    return [{ core, command: { kind: "acknowledge", execution, part, frame } }];
  }
  return [];
}
