/**
 * Planted defects: each breaks one rule of a machine or of its driver. The simulator must find every
 * one of them; a mutant that survives is a hole in the checkers.
 */

import { MEMBER_RULES, type MemberRules } from "../../src/core/cluster/node/member-types.ts";

/** Names such as `swim.equalAliveLoses`: the rule that the mutant breaks. */
export const MUTANTS: readonly string[] = Object.entries(MEMBER_RULES).flatMap(([machine, rules]) =>
  Object.keys(rules).map((rule) => `${machine}.${rule}`),
);

export function rulesWithout(mutant: string | null): MemberRules {
  if (mutant === null) return MEMBER_RULES;
  const [machine, rule] = mutant.split(".");
  if (machine === undefined || rule === undefined || !MUTANTS.includes(mutant)) {
    throw new Error(`unknown mutant "${mutant}"; one of: ${MUTANTS.join(", ")}`);
  }
  const broken = { [rule]: false };
  const { swim, election, barrier } = MEMBER_RULES;
  return {
    swim: machine === "swim" ? { ...swim, ...broken } : swim,
    election: machine === "election" ? { ...election, ...broken } : election,
    barrier: machine === "barrier" ? { ...barrier, ...broken } : barrier,
  };
}
