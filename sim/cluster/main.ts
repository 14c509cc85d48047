/**
 * `npm run sim:cluster`: whole datacenters in simulated worlds, many seeds over several processes or one in full.
 *
 *   npm run sim:cluster -- --seeds 2000 --minutes 10      the proof before a release
 *   npm run sim:cluster -- --seed 17 --minutes 10         replay one seed, with its last events
 *   npm run sim:cluster -- --seed 17 --shrink             the fewest faults that still break it
 *   npm run sim:cluster -- --gates --seeds 20             gates over two datacenters
 *   npm run sim:cluster -- --pressure --seeds 1000        overloaded nodes, floods, high latency
 *   npm run sim:cluster -- --mutants --minutes 2          is every planted defect found?
 */

import { simCommand, simulate } from "../kernel/command.ts";
import { PRESSURE_MUTANTS, TIERS_MUTANTS } from "./mutants.ts";
import { runTiersSeed } from "./run.ts";

const WHAT = "Runs whole datacenters (managers, workers, cores, clients) in simulated worlds.";

const program = simCommand("sim:cluster", WHAT, "worker.viewFenced")
  .option("--gates", "gates over two datacenters instead of one datacenter alone")
  .option("--pressure", "what nodes take in costs them time: slow nodes, floods, long ways")
  .parse();
const { gates = false, pressure = false } = program.opts<{
  readonly gates?: boolean;
  readonly pressure?: boolean;
}>();

await simulate(program, {
  script: "sim:cluster",
  worker: new URL("./serve.ts", import.meta.url),
  mutants: pressure ? PRESSURE_MUTANTS : TIERS_MUTANTS,
  liveness: new Set(["T3"]),
  run: runTiersSeed,
  complete: (base) => ({ ...base, gates, pressure, profile: base.mutant }),
  replayFlags: [...(gates ? ["--gates"] : []), ...(pressure ? ["--pressure"] : [])],
});
