/**
 * Mixes: one load, shared by several flows.
 *
 *   export default mix([browse.weight(95), buy.weight(5)], { rate: 300, duration: "10m" });
 *
 * Weights are shares of the iterations begun, and hold on every core to within one per flow.
 */

import { WorkflowDefinition } from "./definition.ts";
import { DefinitionError } from "./errors.ts";
import { Flow, type WeightedFlow } from "./flow.ts";
import type { WorkflowOptions } from "./options.ts";

export type MixOptions = WorkflowOptions & {
  /** In results and thresholds; "mix" by default. */
  readonly name?: string;
};

export class Mix {
  readonly definition: WorkflowDefinition;

  constructor(definition: WorkflowDefinition) {
    this.definition = definition;
  }
}

export function mix(flows: readonly WeightedFlow[], options: MixOptions): Mix {
  const { name = "mix", ...load } = options ?? {};
  const where = `mix "${name}"`;
  if (!Array.isArray(flows) || flows.length === 0)
    throw new DefinitionError(
      `${where} needs flows: mix([browse.weight(95), buy.weight(5)], { … })`,
    );
  const parts = flows.map((part: Partial<WeightedFlow>) => {
    if (!(part?.flow instanceof Flow) || part.weight === undefined)
      throw new DefinitionError(`${where}: write each flow with its weight: browse.weight(95)`);
    return { definition: part.flow.definition, weight: part.weight };
  });
  const names = parts.map(({ definition }) => definition.name);
  const twice = [...names, name].find((one, at, all) => all.indexOf(one) !== at);
  if (twice !== undefined) throw new DefinitionError(`${where}: "${twice}" is there twice`);
  return new Mix(new WorkflowDefinition(name, load as WorkflowOptions, null, parts));
}
