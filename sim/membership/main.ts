/**
 * `npm run sim:membership`: many seeds over several processes, or one seed in full.
 *
 *   npm run sim:membership -- --seeds 300 --minutes 10        the check before every merge
 *   npm run sim:membership -- --seed 17 --minutes 10          replay one seed, with its last events
 *   npm run sim:membership -- --seed 17 --shrink              the fewest faults that still break it
 *   npm run sim:membership -- --mutants                       is every planted defect found?
 */

import { count, simCommand, simulate } from "../kernel/command.ts";
import { MUTANTS } from "./mutants.ts";
import { runSeed } from "./run.ts";

interface Sizes {
  readonly members?: number;
  readonly electing?: number;
}

const WHAT = "Runs the cluster protocols in simulated worlds with faults, one world per seed.";
const program = simCommand("sim:membership", WHAT, "swim.equalAliveLoses")
  .option("--members <n>", "members besides the electing ones (default: drawn by the seed)", count)
  .option("--electing <n>", "electing members, 1, 3 or 5 (default: drawn by the seed)", count)
  .parse();

const { members, electing } = program.opts<Sizes>();
if ((members === undefined) !== (electing === undefined)) {
  program.error("--members and --electing go together");
}
const size = members === undefined || electing === undefined ? null : { members, electing };

await simulate(program, {
  script: "sim:membership",
  worker: new URL("./worker.ts", import.meta.url),
  mutants: MUTANTS,
  liveness: new Set(["M5", "M7", "E9"]),
  run: runSeed,
  complete: (base) => ({ ...base, size }),
  replayFlags: size === null ? [] : [`--members ${members}`, `--electing ${electing}`],
});
