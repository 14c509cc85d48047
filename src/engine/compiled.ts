/** A workflow definition compiled for the loop: layers of steps with indices instead of names. */

import type { LoadOverrides } from "../core/load/job/load-overrides.ts";
import { NameTable } from "../core/load/stats/names.ts";
import type { CallSettings, PreparedCall } from "../protocols/protocol.ts";
import {
  type CheckDefinition,
  isPreparedCall,
  type MetricDefinition,
  protocolOf,
  type StepFunction,
  type WorkflowDefinition,
} from "../workflow/definition.ts";
import type { FlowPart } from "../workflow/flow-part.ts";
import { overrideSettings } from "../workflow/overrides.ts";

export interface CompiledStep {
  readonly name: string;
  /** Index among the measured steps; -1 for an action. */
  readonly index: number;
  /** Index among all steps and actions of the workflow. */
  readonly slot: number;
  readonly layer: number;
  readonly call: PreparedCall | null;
  readonly run: StepFunction | null;
}

interface CompiledCheck {
  readonly index: number;
  readonly definition: CheckDefinition;
}

export interface CompiledWorkflow {
  readonly definition: WorkflowDefinition;
  readonly steps: readonly CompiledStep[];
  readonly layers: readonly (readonly CompiledStep[])[];
  /** Checks that run after each layer, by layer; those without `after` run after the last one. */
  readonly checks: readonly (readonly CompiledCheck[])[];
  readonly metrics: readonly MetricDefinition[];
  /** Some function can read results: keep them. */
  readonly keepsResults: boolean;
  /** Functions store results even if nothing reads them: each iteration begins without. (VUC-1) */
  readonly storesResults: boolean;
  /** Steps and checks by the numbers they are recorded under. */
  readonly names: { readonly steps: NameTable; readonly checks: NameTable };
  /** Body of a flow instead of layers; null for workflows with steps. */
  readonly flow: FlowPart | null;
  readonly setsUsersUp: boolean;
  readonly tearsUsersDown: boolean;
  /** After the overrides of the command line; one object, the key of shared pools. */
  readonly settings: CallSettings;
}

export function compile(
  definition: WorkflowDefinition,
  overrides: LoadOverrides,
): CompiledWorkflow {
  const layerNames = definition.layers();
  const layerOf = new Map(
    layerNames.flatMap((layer, at) => layer.map((name) => [name, at] as const)),
  );
  const names = { steps: new NameTable(), checks: new NameTable() };
  const steps = definition.steps.map((step, slot): CompiledStep => {
    const call = isPreparedCall(step.run) ? step.run : null;
    const tags = { ...definition.tags, ...step.tags };
    const measured = step.kind === "step";
    return {
      name: step.name,
      index: measured ? names.steps.numberOf(step.name, protocolOf(step), tags) : -1,
      slot,
      layer: layerOf.get(step.name) ?? 0,
      call,
      run: call === null ? (step.run as StepFunction) : null,
    };
  });
  const layers = layerNames.map((_, at) => steps.filter((step) => step.layer === at));
  const checks: CompiledCheck[][] = layers.map(() => []);
  for (const check of definition.checks) {
    const after = check.after.map((name) => layerOf.get(name) ?? 0);
    const layer = after.length === 0 ? layers.length - 1 : Math.max(...after);
    checks[layer]?.push({ index: names.checks.numberOf(check.name), definition: check });
  }
  const readers = checks.some((list) => list.length > 0) || definition.metrics.length > 0;
  const keepsResults =
    readers ||
    definition.provides.length > 0 ||
    steps.some((step) => step.run !== null && step.layer > 0);
  return {
    definition,
    steps,
    layers,
    checks,
    metrics: definition.metrics,
    keepsResults,
    storesResults: keepsResults || steps.some((step) => step.run !== null),
    names,
    flow: definition.flow,
    setsUsersUp: (definition.flow ?? definition).userSetup !== undefined,
    tearsUsersDown: (definition.flow ?? definition).userTeardown !== undefined,
    settings: overrideSettings(definition.settings, overrides),
  };
}
