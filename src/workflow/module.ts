/** Finds the workflows that a module exports: the default export, named ones, and arrays of them. */

import type { WorkflowDefinition } from "./definition.ts";
import { DefinitionError } from "./errors.ts";
import { Flow } from "./flow.ts";
import { Workflow } from "./workflow.ts";

export function workflowsOf(module: unknown): WorkflowDefinition[] {
  const found = new Set<WorkflowDefinition>();
  for (const value of Object.values(Object(module) as Record<string, unknown>)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item instanceof Workflow || item instanceof Flow) found.add(item.definition);
    }
  }
  if (found.size === 0) {
    throw new DefinitionError(
      "no flow or workflow is exported. End the file with: " +
        'export default flow("name", { vus: 10, duration: "30s" }, async ({ step }) => { … })',
    );
  }
  const definitions = [...found].sort((a, b) => a.place - b.place);
  for (const definition of definitions) {
    const same = definitions.filter((other) => other.name === definition.name);
    if (same.length > 1)
      throw new DefinitionError(`two workflows are named "${definition.name}"; names must differ`);
    if (definition.flow !== null) continue;
    if (definition.steps.length === 0) {
      throw new DefinitionError(
        `workflow "${definition.name}" has no steps: add .step("name", http.get("http://…"))`,
      );
    }
    if (definition.isTest && definition.plan.kind === "once") {
      const hint = 'write for example { vus: 10, duration: "30s" }';
      throw new DefinitionError(
        `workflow "${definition.name}": vus and duration are missing; ${hint}`,
      );
    }
  }
  return definitions;
}
