/**
 * How a run is steered: by hand, and by searches and ends that were agreed to. What begins later begins so,
 * and what a core may have missed can be said again: everything here is absolute.
 */

import type { CoreCommand } from "../job/core-messages.ts";
import type { WorkflowManifest } from "../job/manifest.ts";

/** A workflow that makes load. */
interface Steered {
  readonly manifest: WorkflowManifest;
  readonly execution: number;
  /** The load that a search is at; null while it is at its first. */
  readonly level: number | null;
  /** Its cores were told to end their load. */
  readonly ending: boolean;
}

export class Steering {
  paused = false;
  /** Of the plan. */
  scale = 1;

  /** What a core that makes load has to hear beside its start. */
  commands({ ending, execution, level, manifest }: Steered): readonly CoreCommand[] {
    const commands: CoreCommand[] = [];
    if (manifest.load.kind !== "search" && this.scale !== 1)
      commands.push({ kind: "scale", execution, factor: this.scale });
    if (level !== null) commands.push({ kind: "level", execution, load: level });
    if (this.paused) commands.push({ kind: "pause", execution });
    if (ending) commands.push({ kind: "stop", execution });
    return commands;
  }
}
