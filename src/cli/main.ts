/** The command line: one file per command under commands/, each of which registers itself. */

import { Command, CommanderError } from "commander";
import { errorText } from "../protocols/errors.ts";
import { RunError } from "../runner/errors.ts";
import { registerAgent } from "./commands/agent.ts";
import { registerCompare } from "./commands/compare.ts";
import { registerDemoTarget } from "./commands/demo-target.ts";
import { registerKeygen } from "./commands/keygen.ts";
import { registerLeave } from "./commands/leave.ts";
import { registerLedger } from "./commands/ledger.ts";
import { registerMembers } from "./commands/members.ts";
import { registerMonitor } from "./commands/monitor.ts";
import { registerNew } from "./commands/new.ts";
import { registerPing } from "./commands/ping.ts";
import { registerQueue } from "./commands/queue.ts";
import { registerRun } from "./commands/run.ts";
import { registerWal } from "./commands/wal.ts";
import { EXIT_FAILURE, EXIT_USAGE } from "./exit-codes.ts";
import { packageVersion } from "./version.ts";

export async function main(argv: readonly string[]): Promise<void> {
  const program = new Command("hyperscale");
  program.description(
    "Load testing and durable workflows in TypeScript, from one laptop to many datacenters.",
  );
  program.version(packageVersion(), "-V, --version");
  program.showHelpAfterError("(add --help for the options)");
  program.addHelpText("after", START_HERE);
  registerRun(program);
  registerNew(program);
  registerPing(program);
  registerDemoTarget(program);
  registerCompare(program);
  registerQueue(program);
  registerAgent(program);
  registerMembers(program);
  registerMonitor(program);
  registerLeave(program);
  registerKeygen(program);
  registerLedger(program);
  registerWal(program);
  throwInsteadOfExit(program);
  try {
    if (argv.length === 0) program.outputHelp();
    else await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    process.exitCode = explain(error);
  }
}

/** One line for people; the stack only for those who ask for it. */
function explain(error: unknown): number {
  // Commander has already said what is wrong with the arguments.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
  const debug = process.env["HYPERSCALE_DEBUG"] !== undefined && error instanceof Error;
  process.stderr.write(`hyperscale: ${debug ? error.stack : errorText(error)}\n`);
  return error instanceof RunError ? error.exitCode : EXIT_FAILURE;
}

/** Wrong arguments are ours to answer, with our exit code, in every command however deep. */
function throwInsteadOfExit(command: Command): void {
  command.exitOverride();
  for (const child of command.commands) throwInsteadOfExit(child);
}

const START_HERE = `
Start here:
  hyperscale demo-target                 a safe server on this machine to practise on
  hyperscale run http://127.0.0.1:8089   load a URL, no file needed
  hyperscale new flow.ts                 write a first workflow
  hyperscale run flow.ts                 run it

Exit codes: 0 passed, 99 a threshold or check failed, 2 wrong workflow or arguments,
            130 interrupted (results are written), 1 anything else.`;
