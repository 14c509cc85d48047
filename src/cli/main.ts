/** The command line: commands register themselves; wrong arguments end with exit code 2. */

import { Command, CommanderError } from "commander";
import { registerCompare } from "./commands/compare.ts";

const EXIT_BAD_INPUT = 2;

export async function main(args: readonly string[]): Promise<void> {
  const program = new Command("hyperscale");
  program.description("Load testing and durable workflow execution.").exitOverride();
  registerCompare(program);
  for (const command of program.commands) command.exitOverride();
  try {
    await program.parseAsync([...args], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exitCode = error.exitCode === 0 ? 0 : EXIT_BAD_INPUT;
  }
}
