/**
 * Planted defects: each switches off one rule of a machine, and the simulator must find it. Rules that another one
 * covers in every cluster have no switch: tests of their machines show them.
 */

import { GATE_RULES, type GateRules } from "../../src/core/cluster/gate/rules.ts";
import { MANAGER_RULES, type ManagerRules } from "../../src/core/cluster/manager/rules.ts";
import { PRESSURE_RULES, type PressureRules } from "../../src/core/cluster/overload/rules.ts";
import { WORKER_RULES, type WorkerRules } from "../../src/core/cluster/worker/rules.ts";

interface TiersRules {
  readonly gate: GateRules;
  readonly manager: ManagerRules;
  readonly worker: WorkerRules;
  readonly pressure: PressureRules;
}

const ALL_TIERS_RULES: TiersRules = {
  gate: GATE_RULES,
  manager: MANAGER_RULES,
  worker: WORKER_RULES,
  pressure: PRESSURE_RULES,
};

/** Rules that matter under overload: `--pressure --mutants` tries these. */
const UNDER_PRESSURE: readonly string[] = [
  ...Object.keys(PRESSURE_RULES).map((rule) => `pressure.${rule}`),
  "gate.returnNoticed",
  "manager.latenessAllowed",
  "manager.massFailureHeld",
  "manager.extensionsCounted",
  "worker.waitingFiguresStay",
];

/** Names such as `worker.viewFenced`. */
export const TIERS_MUTANTS: readonly string[] = Object.entries(ALL_TIERS_RULES)
  .flatMap(([machine, rules]) => Object.keys(rules).map((rule) => `${machine}.${rule}`))
  .filter((name) => !UNDER_PRESSURE.includes(name));

export const PRESSURE_MUTANTS = UNDER_PRESSURE;

/** Rules of gates are tried in worlds with gates. */
export function needsGates(mutant: string | null): boolean {
  return mutant?.startsWith("gate.") === true;
}

export function tiersRulesWithout(mutant: string | null): TiersRules {
  if (mutant === null) return ALL_TIERS_RULES;
  const [machine = "", rule = ""] = mutant.split(".");
  const rules = Object.entries(ALL_TIERS_RULES).find(([name]) => name === machine)?.[1];
  if (rules === undefined || !(rule in rules)) {
    throw new Error(`unknown mutant "${mutant}"; one of: ${TIERS_MUTANTS.join(", ")}`);
  }
  return { ...ALL_TIERS_RULES, [machine]: { ...rules, [rule]: false } };
}
