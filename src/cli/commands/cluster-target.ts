/** Shared by all commands that talk to a running agent. */

import type { Command } from "commander";
import { EXIT_FAILURE } from "../../host/exit-codes.ts";
import { AgentClientError, type AgentTarget } from "../../nodes/agent/client.ts";
import { complain } from "../print.ts";

export function withTarget(command: Command): Command {
  return command
    .option(
      "--api <host:port>",
      "the agent's control interface (or HYPERSCALE_API)",
      process.env["HYPERSCALE_API"] ?? "127.0.0.1:7947",
    )
    .option("--token-file <file>", "the agent's token: api.token in its data directory")
    .option(
      "--dir <dir>",
      "or the directory of data directories (.hyperscale, .hyperscale/cluster)",
    );
}

/** Runs a command and turns an agent's rejection into one line and a non-zero exit. */
export async function runAgainst(
  target: AgentTarget,
  work: (target: AgentTarget) => Promise<void>,
): Promise<void> {
  try {
    await work(target);
  } catch (error) {
    if (!(error instanceof AgentClientError)) throw error;
    complain(`hyperscale: ${error.message}`);
    process.exitCode = EXIT_FAILURE;
  }
}
