/** A child process of the ledger simulator. */

import { serveRuns } from "../kernel/serve-runs.ts";
import { runLedgerSeed } from "./run.ts";

serveRuns(runLedgerSeed);
