/** A child process of the cluster simulator. */

import { serveRuns } from "../kernel/pool.ts";
import { runSeed } from "./run.ts";

serveRuns(runSeed);
