/**
 * Planted defects: each breaks one rule of a machine or of its driver. The simulator must find every
 * one of them; a mutant that survives is a hole in the checkers.
 */

import type { ElectionRules } from "../../src/core/cluster/election/rules.ts";
import { ELECTION_RULES } from "../../src/core/cluster/election/rules.ts";
import type { SwimRules } from "../../src/core/cluster/swim/rules.ts";
import { SWIM_RULES } from "../../src/core/cluster/swim/rules.ts";
import type { LaneRules } from "./lane.ts";
import { LANE_RULES } from "./lane.ts";

interface Rules {
  readonly swim: SwimRules;
  readonly election: ElectionRules;
  readonly lane: LaneRules;
}

const ALL_RULES: Rules = { swim: SWIM_RULES, election: ELECTION_RULES, lane: LANE_RULES };

/** Names such as `swim.equalAliveLoses`: the rule that the mutant breaks. */
export const MUTANTS: readonly string[] = Object.entries(ALL_RULES).flatMap(([machine, rules]) =>
  Object.keys(rules).map((rule) => `${machine}.${rule}`),
);

export function rulesWithout(mutant: string | null): Rules {
  if (mutant === null) return ALL_RULES;
  const [machine, rule] = mutant.split(".");
  if (machine === undefined || rule === undefined || !MUTANTS.includes(mutant)) {
    throw new Error(`unknown mutant "${mutant}"; one of: ${MUTANTS.join(", ")}`);
  }
  const broken = { [rule]: false };
  return {
    swim: machine === "swim" ? { ...SWIM_RULES, ...broken } : SWIM_RULES,
    election: machine === "election" ? { ...ELECTION_RULES, ...broken } : ELECTION_RULES,
    lane: machine === "lane" ? { ...LANE_RULES, ...broken } : LANE_RULES,
  };
}
