/**
 * Shared state of the cores of a run, beside their data. Unique numbers are assigned through agreed steps, so that no
 * other driver assigns them again. Queues are kept here: they are lost with the driver, and its successor knows which
 * were in use.
 */

import type { CoreEvent } from "../job/core-messages.ts";
import { SharedValues } from "../job/shared-values.ts";
import type { PhasesEffect, SharedStep } from "./phase-types.ts";

export class SharedRequests {
  readonly #values = new SharedValues();
  readonly #queues = new Set<string>();

  /** Queues that had values. */
  get queues(): readonly string[] {
    return [...this.#queues];
  }

  ask(
    core: number,
    { id, request }: Extract<CoreEvent, { kind: "shared" }>,
  ): readonly PhasesEffect[] {
    const { kind, name } = request;
    if (kind === "numbers") {
      const step = { kind, core, id, name, count: request.count } as const;
      return [{ kind: "agree", step }];
    }
    const isNew = kind === "push" && !this.#queues.has(name);
    if (isNew) this.#queues.add(name);
    const answer = this.#values.answer(request);
    const reply = { kind: "send", core, command: { kind: "shared", id, answer } } as const;
    return isNew ? [{ kind: "agree", step: { kind: "queue", name } }, reply] : [reply];
  }

  agreed(step: SharedStep): readonly PhasesEffect[] {
    if (step.kind === "queue") {
      this.#queues.add(step.name);
      return [];
    }
    const { core, from, id, to } = step;
    const answer = { kind: "numbers", from, to } as const;
    return [{ kind: "send", core, command: { kind: "shared", id, answer } }];
  }
}
