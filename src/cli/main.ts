/** The command line: parses arguments and hands over to the command. */

import { Command } from "commander";
import { registerQueue } from "./commands/queue.ts";

export async function main(args: readonly string[]): Promise<void> {
  const program = new Command("hyperscale").description(
    "load testing and durable workflow execution in TypeScript, from one laptop to many datacenters",
  );
  registerQueue(program);
  await program.parseAsync([...args], { from: "user" });
}
