/** Changes of the decision about each node, with their times. (AD-19.30) */

import type { HealthLabel } from "../views.ts";
import type { HealthDecision } from "./health.ts";

/** Changes kept per node. */
const CHANGES_MAX = 16;
/** Nodes with a history; the node with the oldest last change is forgotten first. */
const NODES_MAX = 256;

interface Change {
  readonly at: number;
  readonly decision: HealthDecision;
  readonly label: HealthLabel;
}

export interface DecisionChange {
  /** Milliseconds since the decision. */
  readonly agoMs: number;
  readonly decision: HealthDecision;
  readonly label: HealthLabel;
}

export class DecisionHistory {
  readonly #changes = new Map<string, Change[]>();

  note(name: string, decision: HealthDecision, label: HealthLabel, now: number): void {
    const changes = this.#changes.get(name) ?? [];
    if (changes.at(-1)?.decision === decision) return;
    changes.push({ at: now, decision, label });
    if (changes.length > CHANGES_MAX) changes.shift();
    this.#changes.delete(name);
    this.#changes.set(name, changes);
    for (const oldest of this.#changes.keys()) {
      if (this.#changes.size <= NODES_MAX) return;
      this.#changes.delete(oldest);
    }
  }

  /** Changes of a node, the latest last. */
  of(name: string, now: number): readonly DecisionChange[] {
    const changes = this.#changes.get(name) ?? [];
    return changes.map(({ at, decision, label }) => ({ agoMs: now - at, decision, label }));
  }
}
