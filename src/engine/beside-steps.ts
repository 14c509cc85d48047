/** Code of one user beside the steps: within its limit, and what goes wrong in it is no result but is told. */

import type { WorkflowDefinition } from "../workflow/definition.ts";
import type { Complaints } from "./complaints.ts";
import type { Faults } from "./faults.ts";
import { TimeLimit } from "./time-limit.ts";
import type { VirtualUser } from "./user.ts";

export class BesideSteps {
  readonly #definition: WorkflowDefinition;
  readonly #complaints: Complaints;
  readonly #faults: Faults;

  constructor(definition: WorkflowDefinition, complaints: Complaints, faults: Faults) {
    this.#definition = definition;
    this.#complaints = complaints;
    this.#faults = faults;
  }

  setUp(user: VirtualUser): Promise<void> {
    return this.#run(user, "userSetup", this.#definition.limits.userSetupMs);
  }

  tearDown(user: VirtualUser): Promise<void> {
    return this.#run(user, "userTeardown", this.#definition.limits.userTeardownMs);
  }

  async #run(
    { context, id }: VirtualUser,
    what: "userSetup" | "userTeardown",
    limitMs: number,
  ): Promise<void> {
    const limit = new TimeLimit(what, limitMs);
    context.limit = limit;
    try {
      await limit.run(() => this.#definition[what]?.(context));
    } catch (error) {
      this.#complaints.add(`${what} of user ${id}`, error);
      this.#faults.failed(what, error);
    }
    context.limit = null;
  }
}
