/** Finds the workflows that a module exports: the default export, named ones, and arrays of them. */

import { didYouMean } from "../core/base/nearest.ts";
import type { WorkflowDefinition } from "./definition.ts";
import { DefinitionError } from "./errors.ts";
import { Flow } from "./flow.ts";
import { Mix } from "./mix.ts";
import { Workflow } from "./workflow.ts";

type Exported = Workflow | Flow | Mix;

/** Workflows that a run of a module runs; `only` selects by name, and overrides a default mix. */
export function workflowsOf(module: unknown, only: readonly string[] = []): WorkflowDefinition[] {
  const exported = Object(module) as Record<string, unknown>;
  const all = Object.values(exported).flatMap((value) =>
    (Array.isArray(value) ? value : [value]).filter(isExported),
  );
  if (all.length === 0) {
    throw new DefinitionError(
      "no flow or workflow is exported. End the file with: " +
        'export default flow("name", { vus: 10, duration: "30s" }, async ({ step }) => { … })',
    );
  }
  const definitions = [...new Set(all.map(({ definition }) => definition))].sort(
    (a, b) => a.place - b.place,
  );
  // Flows of a mix have metrics under their own names, exported or not.
  const named = [...new Set(definitions.flatMap((one) => [one, ...partsOf(one)]))];
  for (const definition of definitions) check(definition, named);
  if (only.length > 0) return chosen(definitions, only);
  const { default: main } = exported;
  if (main instanceof Mix) return [main.definition];
  // Flows of a mix run in it, not again beside it.
  const mixed = new Set(definitions.flatMap(partsOf));
  return definitions.filter((definition) => !mixed.has(definition));
}

function isExported(value: unknown): value is Exported {
  return value instanceof Workflow || value instanceof Flow || value instanceof Mix;
}

function chosen(
  definitions: readonly WorkflowDefinition[],
  only: readonly string[],
): WorkflowDefinition[] {
  const names = definitions.map(({ name }) => name);
  const stranger = only.find((name) => !names.includes(name));
  if (stranger !== undefined) {
    const hint = didYouMean(stranger, names) || ` (available: ${names.join(", ")})`;
    throw new DefinitionError(`--only: no exported workflow is called "${stranger}"${hint}`);
  }
  const found = definitions.filter(({ name }) => only.includes(name));
  for (const mix of found) {
    const part = partsOf(mix).find((one) => found.includes(one));
    if (part !== undefined)
      throw new DefinitionError(`--only: mix "${mix.name}" runs "${part.name}" already; name one`);
  }
  return found;
}

function partsOf({ mix }: WorkflowDefinition): WorkflowDefinition[] {
  return mix.map(({ definition }) => definition);
}

function check(definition: WorkflowDefinition, all: readonly WorkflowDefinition[]): void {
  const { name } = definition;
  for (const one of [definition, ...partsOf(definition)])
    if (all.some((other) => other !== one && other.name === one.name))
      throw new DefinitionError(`two workflows are named "${one.name}"; names must differ`);
  if (definition.mix.length > 0 && definition.plan.kind === "once")
    throw new DefinitionError(
      `mix "${name}": a load model is missing; write for example { rate: 100, duration: "1m" }`,
    );
  if (definition.flow !== null || definition.mix.length > 0) return;
  if (definition.steps.length === 0) {
    throw new DefinitionError(
      `workflow "${name}" has no steps: add .step("name", http.get("http://…"))`,
    );
  }
  if (definition.isTest && definition.plan.kind === "once") {
    const hint = 'write for example { vus: 10, duration: "30s" }';
    throw new DefinitionError(`workflow "${name}": vus and duration are missing; ${hint}`);
  }
}
