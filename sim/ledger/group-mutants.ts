/**
 * Planted defects of replication: each rule of `VsrRules` switched off alone (S-1..12, S-16,
 * S-18), and the variants of the first design's audit (docs/internals/vsr.md). Walks must find
 * every one; the safe ones must stay clean.
 */

import { errorText } from "../../src/core/base/error-text.ts";
import type { VsrRules } from "../../src/core/ledger/group/rules.ts";
import { VSR_RULES } from "../../src/core/ledger/group/rules.ts";
import { walk, walkAndHeal } from "./walk.ts";

interface Mutant {
  readonly name: string;
  readonly rules: Partial<VsrRules>;
  readonly members: number;
  readonly spares: number;
  readonly steps: number;
}

export const SEEDS_MAX = 2_000;

/** With an odd group half of it is a majority less one; only an even one shows S-10 (VSR-6). */
const MEMBERS: Partial<Record<keyof VsrRules, number>> = { majorityQuorum: 4 };
/** Rules that take long histories to matter. */
const STEPS: Partial<Record<keyof VsrRules, number>> = { ackOfThisView: 1_500 };

/**
 * Covered by `npm run sim:ledger`: a walk takes no checkpoints, and it rarely reaches another primary that commits
 * unnoticed by one that resigned or sleeps.
 */
const ELSEWHERE = new Set<keyof VsrRules>(["checkpointKeepsPromise", "successorAsks", "wokenAsks"]);

export const MUTANTS: readonly Mutant[] = ruleNames().map((rule) => ({
  name: rule,
  rules: { [rule]: false },
  members: MEMBERS[rule] ?? 3,
  spares: 3,
  steps: STEPS[rule] ?? 600,
}));

function ruleNames(): (keyof VsrRules)[] {
  const names = Object.keys(VSR_RULES) as (keyof VsrRules)[];
  return names.filter((name) => !ELSEWHERE.has(name));
}

const FIRST_DESIGN: Partial<VsrRules> = {
  adoptLog: false,
  installBeforeAck: false,
  ownerByView: false,
  staleViewRefused: false,
  promiseDurable: false,
  joinByInstall: false,
};

const variant = (name: string, rules: Partial<VsrRules>, members = 3): Mutant => ({
  ...{ name, rules, members, spares: 0, steps: 600 },
});

/** The unsafe variants of the audit; walks here spend steps on timers, so they are longer than its own. */
export const VARIANTS: readonly Mutant[] = [
  variant("A the first design", { ...FIRST_DESIGN, viewChangeQuorum: false }),
  variant("B A with a quorum for the view change", FIRST_DESIGN),
  variant("C logs adopted by length", { adoptByNormalView: false }),
  variant("D views without an owner", { ownerByView: false }),
  variant("F promises not durable", { promiseDurable: false }),
  variant("G acks before the disk", { ackAfterDurable: false }),
  variant("H four members with a quorum of two", { majorityQuorum: false }, 4),
];

interface Find {
  readonly seed: number;
  readonly violation: string;
}

/** The first seed whose walk detects the defect. */
export function hunt(mutant: Mutant, seeds: number, damageOnly: boolean): Find | null {
  for (let seed = 0; seed < seeds; seed++) {
    const violation = violationOf(mutant, seed, damageOnly);
    if (violation !== null) return { seed, violation };
  }
  return null;
}

export function violationOf(mutant: Mutant, seed: number, damageOnly: boolean): string | null {
  const { rules, members, spares, steps } = mutant;
  // The audit knew no leases: they hide damage by keeping views few.
  const clocks = damageOnly ? "noLeases" : "bounded";
  const options = { seed, members, spares, steps, rules, damageOnly, clocks } as const;
  try {
    return (damageOnly ? walk(options) : walkAndHeal(options)).violation;
  } catch (error) {
    // A broken rule may lead a machine into breaking its own assertion: seen, too.
    return `DEFECT: ${errorText(error)}`;
  }
}
