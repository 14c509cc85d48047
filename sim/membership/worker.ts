/** A child process of the cluster simulator. */

import { serveRuns } from "../kernel/serve-runs.ts";
import { runSeed } from "./run.ts";

serveRuns(runSeed);
