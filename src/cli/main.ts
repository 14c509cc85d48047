/** The command line: one file per command under commands/, each of which registers itself. */

import { Command, CommanderError } from "commander";
import { registerDemoTarget } from "./commands/demo-target.ts";
import { registerNew } from "./commands/new.ts";
import { registerPing } from "./commands/ping.ts";

/** Exit code for arguments or workflows that are wrong; nothing was run. */
const EXIT_USAGE = 2;

export async function main(argv: readonly string[]): Promise<void> {
  const program = new Command("hyperscale");
  program.description("Load testing in TypeScript, from one laptop to many datacenters.");
  program.showHelpAfterError("(add --help for the options)");
  program.exitOverride();
  registerDemoTarget(program);
  registerNew(program);
  registerPing(program);
  try {
    await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exitCode = error.exitCode === 0 ? 0 : EXIT_USAGE;
  }
}
