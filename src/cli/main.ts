/** The command line: each command registers itself. */

import { Command } from "commander";
import { registerAgent } from "./commands/agent.ts";
import { registerKeygen } from "./commands/keygen.ts";
import { registerLeave } from "./commands/leave.ts";
import { registerMembers } from "./commands/members.ts";
import { registerMonitor } from "./commands/monitor.ts";

export async function main(args: readonly string[]): Promise<void> {
  const program = new Command("hyperscale");
  registerAgent(program);
  registerMembers(program);
  registerMonitor(program);
  registerLeave(program);
  registerKeygen(program);
  try {
    await program.parseAsync(args as string[], { from: "user" });
  } catch (error) {
    process.stderr.write(`hyperscale: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
