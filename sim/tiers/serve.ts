/** A child process of the simulator of datacenters. */

import { serveRuns } from "../kernel/pool.ts";
import { runTiersSeed } from "./run.ts";

serveRuns(runTiersSeed);
