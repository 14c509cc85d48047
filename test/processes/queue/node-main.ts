/** The real command line, run from source by tests that need a process to kill. */

import { Command } from "commander";
import { registerQueue } from "../../../src/cli/commands/queue.ts";

const program = new Command("hyperscale");
registerQueue(program);
await program.parseAsync(process.argv.slice(2), { from: "user" });
