/**
 * What the cores of a run share beside their data. Numbers that must be given once are given by whoever agrees
 * to steps, so that no other driver gives them again. Queues are kept here: they go with the driver, and whoever
 * follows it knows which were in use.
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
    const told = { kind: "send", core, command: { kind: "shared", id, answer } } as const;
    return isNew ? [{ kind: "agree", step: { kind: "queue", name } }, told] : [told];
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
