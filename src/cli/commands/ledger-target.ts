/** Shared by all commands that talk to a running ledger node. */

import type { Command } from "commander";
import { EXIT_FAILURE, EXIT_USAGE } from "../../host/exit-codes.ts";
import { LedgerClientError, type LedgerTarget } from "../../ledger/client.ts";
import { complain } from "../print.ts";

export interface Common extends LedgerTarget {
  readonly json?: boolean;
}

export function withTarget(command: Command): Command {
  return command
    .option(
      "--api <host:port>",
      "a node's interface, or several with commas (or HYPERSCALE_LEDGER_API)",
      process.env["HYPERSCALE_LEDGER_API"] ?? "127.0.0.1:7201",
    )
    .option("--token-file <file>", "the node's token: api.token in its data directory")
    .option(
      "--dir <dir>",
      "or the directory of data directories (.hyperscale, .hyperscale/cluster)",
    )
    .option("--json", "the answer as JSON");
}

/** The caller's mistake; its message says what to write instead. */
export class UsageError extends Error {}

export async function runCommand(work: () => Promise<void>, command = "ledger"): Promise<void> {
  try {
    await work();
  } catch (error) {
    const usage = error instanceof UsageError;
    if (!usage && !(error instanceof LedgerClientError)) throw error;
    complain(`hyperscale ${command}: ${error.message}`);
    process.exitCode = usage ? EXIT_USAGE : EXIT_FAILURE;
  }
}
