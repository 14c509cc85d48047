/**
 * Walks of one group from the command line.
 *
 *     npm run sim:group -- walks [count] [members] [steps] [bounded|wild|noLeases] [from]
 *     npm run sim:group -- mutants
 *     npm run sim:group -- variants [count]
 *
 * Exit 129 when a walk breaks an invariant or a mutant is not found.
 */

import { hunt, MUTANTS, SEEDS_MAX, VARIANTS, violationOf } from "./group-mutants.ts";
import type { WalkOptions } from "./walk.ts";
import { walk, walkAndHeal } from "./walk.ts";

const SHORT_STEPS = 200;
const BROKEN = 129;

function walks(args: readonly string[]): boolean {
  const count = Number(args[0] ?? 3_000);
  const members = Number(args[1] ?? 3);
  const steps = Number(args[2] ?? 600);
  const clocks = (args[3] ?? "bounded") as NonNullable<WalkOptions["clocks"]>;
  const from = Number(args[4] ?? 0);
  let broken = 0;
  let commits = 0;
  let epochs = 0;
  let reads = 0;
  for (let seed = from; seed < from + count; seed++) {
    const options = { seed, members, spares: steps < SHORT_STEPS ? 0 : 3, steps, clocks };
    const group = steps < SHORT_STEPS ? walk(options) : walkAndHeal(options);
    commits += group.checks.committed.length;
    reads += group.checks.readsDone;
    epochs += Math.max(...group.nodes.map(({ replica }) => replica?.state.epoch ?? 1));
    if (group.violation === null) continue;
    broken++;
    console.log(`seed ${seed}: ${group.violation}`);
  }
  const each = (sum: number): string => (sum / count).toFixed(1);
  const per = `${each(commits)} commits, ${each(reads)} strong reads, ${each(epochs)} epochs each`;
  console.log(`${count} walks of ${members} (${clocks}, ${steps} steps): ${broken} broken; ${per}`);
  return broken === 0;
}

function mutants(): boolean {
  let missed = 0;
  for (const mutant of MUTANTS) {
    const find = hunt(mutant, SEEDS_MAX, false);
    if (find === null) missed++;
    const text = find === null ? "NOT FOUND" : `seed ${find.seed}: ${find.violation}`;
    console.log(`${mutant.name.padEnd(22)} ${text}`);
  }
  console.log(`${MUTANTS.length - missed} of ${MUTANTS.length} found`);
  return missed === 0;
}

function variants(args: readonly string[]): boolean {
  const count = Number(args[0] ?? 40_000);
  let missed = 0;
  for (const variant of VARIANTS) {
    let broken = 0;
    for (let seed = 0; seed < count; seed++) {
      if (violationOf(variant, seed, true) !== null) broken++;
    }
    if (broken === 0) missed++;
    console.log(`${variant.name.padEnd(40)} ${broken} of ${count}`);
  }
  return missed === 0;
}

const [what = "walks", ...args] = process.argv.slice(2);
const fine = what === "mutants" ? mutants() : what === "variants" ? variants(args) : walks(args);
process.exitCode = fine ? 0 : BROKEN;
