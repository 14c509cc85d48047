/**
 * `npm run sim:ledger`: whole ledgers in simulated worlds, many seeds over several processes or one in full.
 *
 *   npm run sim:ledger -- --seeds 2000 --minutes 10      the proof before a release
 *   npm run sim:ledger -- --seed 17 --minutes 10         replay one seed, with its last events
 *   npm run sim:ledger -- --seed 17 --shrink             the fewest faults that still break it
 *   npm run sim:ledger -- --mutants --minutes 4          is every planted defect found?
 */

import { simCommand, simulate } from "../kernel/command.ts";
import { LEDGER_MUTANTS } from "./mutants.ts";
import { runLedgerSeed } from "./run.ts";

const WHAT = "Runs whole ledgers (replication, logs on disks, keys, clients) in simulated worlds.";

await simulate(simCommand("sim:ledger", WHAT, "vsr.adoptLog").parse(), {
  script: "sim:ledger",
  worker: new URL("./worker.ts", import.meta.url),
  mutants: LEDGER_MUTANTS,
  liveness: new Set(["L1", "L2", "L3", "L4", "L5", "G1"]),
  run: runLedgerSeed,
  complete: (base) => base,
  replayFlags: [],
});
