/** The searches for a breakpoint in one run, by workflow. */

import type { WorkflowManifest } from "../job/manifest.ts";
import type { Probe } from "../plan/breakpoint.ts";
import { BreakpointRun, type SearchCommand } from "./breakpoint.ts";
import type { MetricSource } from "./threshold-judge.ts";
import type { WorkflowAggregate } from "./workflow-aggregate.ts";
import type { WorkflowData } from "./workflow-data.ts";

export interface WorkflowSearch {
  readonly workflow: string;
  readonly command: SearchCommand;
}

/** A judged probe, and the load to generate next; absent when the search ended with it. */
export interface Searched {
  readonly workflow: string;
  readonly probe: Probe;
  readonly load?: number;
}

export class Searches {
  readonly #searches = new Map<string, BreakpointRun>();

  constructor(manifests: readonly WorkflowManifest[]) {
    for (const manifest of manifests) {
      const { load, name } = manifest;
      if (load.kind === "search") this.#searches.set(name, new BreakpointRun(manifest, load));
    }
  }

  get all(): readonly BreakpointRun[] {
    return [...this.#searches.values()];
  }

  /** Answers of the searches, for the first line of every result; undefined without a search. */
  get headline(): string | undefined {
    const texts = [...this.#searches].map(([name, search]) => {
      const { text } = search.summary();
      return this.#searches.size > 1 ? `breakpoint of "${name}": ${text}` : `breakpoint: ${text}`;
    });
    return texts.length === 0 ? undefined : texts.join("; ");
  }

  get(name: string): BreakpointRun | undefined {
    return this.#searches.get(name);
  }

  tick(
    { arrivals, name }: WorkflowData,
    workflow: WorkflowAggregate | undefined,
    source: MetricSource,
  ): readonly WorkflowSearch[] {
    const search = this.#searches.get(name);
    if (search === undefined || workflow?.status !== "running") return [];
    const { activeUsers, target } = workflow;
    const commands = search.tick(source, { missed: arrivals?.missed ?? 0, activeUsers, target });
    return commands.map((command) => ({ workflow: name, command }));
  }

  /** Records a probe judged here or by a previous leader. Returns a message where it is new. */
  searched(
    workflow: WorkflowAggregate | undefined,
    { load, probe }: Searched,
    nowMs: number,
  ): string | null {
    const search = this.#searches.get(workflow?.manifest.name ?? "");
    if (search === undefined || workflow === undefined) return null;
    search.adopt(probe, load ?? null);
    workflow.loadChanged(search.factor, nowMs);
    return search.announce(probe);
  }
}
