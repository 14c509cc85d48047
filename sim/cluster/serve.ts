/** A child process of the simulator of datacenters. */

import { serveRuns } from "../kernel/serve-runs.ts";
import { runTiersSeed } from "./run.ts";

serveRuns(runTiersSeed);
