/** A child process of the ledger simulator. */

import { serveRuns } from "../kernel/pool.ts";
import { runLedgerSeed } from "./run.ts";

serveRuns(runLedgerSeed);
