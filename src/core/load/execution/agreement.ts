/** Agrees to every step at once; for drivers whose decisions need not survive them. */

import type { WorkflowManifest } from "../job/manifest.ts";
import { NumberCounters } from "../job/shared-values.ts";
import { LeaseAllocator } from "./lease-allocator.ts";
import type { AgreedStep, PhaseStep } from "./phase-types.ts";

export class Agreement {
  readonly #leases: ReadonlyMap<string, LeaseAllocator>;
  readonly #numbers = new NumberCounters();
  #executions = 0;

  constructor(manifests: readonly WorkflowManifest[]) {
    this.#leases = new Map(
      manifests.map((manifest) => [manifest.name, new LeaseAllocator(manifest)]),
    );
  }

  agree(step: PhaseStep): AgreedStep | null {
    if (step.kind === "place" || step.kind === "deal")
      return { ...step, execution: this.#executions++ };
    if (step.kind === "numbers") return { ...step, ...this.#numbers.take(step.name, step.count) };
    if (step.kind !== "grant") return step;
    const granted = this.#leases.get(step.workflow)?.grant(step.name, step.size);
    return granted === undefined ? null : { ...step, ...granted };
  }
}
