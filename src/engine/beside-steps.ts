/** Runs user code outside the steps, within its time limit. Its errors are no results, but are reported. */

import type { WorkflowDefinition } from "../workflow/definition.ts";
import type { Findings } from "./findings.ts";
import { TimeLimit } from "./time-limit.ts";
import type { VirtualUser } from "./user.ts";

export class BesideSteps {
  readonly #definition: WorkflowDefinition;
  readonly #findings: Findings;

  constructor(definition: WorkflowDefinition, findings: Findings) {
    this.#definition = definition;
    this.#findings = findings;
  }

  setUp(user: VirtualUser): Promise<void> {
    return this.#run(user, "userSetup", this.#definition.limits.userSetupMs);
  }

  tearDown(user: VirtualUser): Promise<void> {
    return this.#run(user, "userTeardown", this.#definition.limits.userTeardownMs);
  }

  async #run(
    user: VirtualUser,
    what: "userSetup" | "userTeardown",
    limitMs: number,
  ): Promise<void> {
    const limit = new TimeLimit(what, limitMs);
    user.context.limit = limit;
    try {
      await limit.run(() => (what === "userSetup" ? user.setUp() : user.tearDown()));
    } catch (error) {
      this.#findings.failed(what, `${what} of user ${user.id}`, error);
    }
    user.context.limit = null;
  }
}
