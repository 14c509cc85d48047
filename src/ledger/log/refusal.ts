/** Texts for logs that do not open: what is wrong, where, and what to do. */

import { join } from "node:path";
import type { LogRefusal } from "../../core/ledger/log/log.ts";
import { refusalText } from "../../core/ledger/log/recovery.ts";
import { WalError } from "./errors.ts";

export function refusalError(refusal: LogRefusal, directory: string, identity: string): WalError {
  if (refusal.code === "FILE_ERROR") {
    const { code, message } = refusal.problem;
    return new WalError("WAL_FAILED", `${directory}: ${message}`, { code });
  }
  if (refusal.code === "FOREIGN_FILES") return foreignError(directory, refusal.names);
  const advice: Readonly<Record<typeof refusal.code, string>> = {
    WAL_CORRUPT: `inspect it with "hyperscale wal verify ${directory}"; restore this node from its peers`,
    WAL_VERSION: "start the version that wrote it, or give this one an empty directory",
    WAL_FOREIGN: "move that file away, or give the log a directory of its own",
    WAL_IDENTITY: "check the configured data directory, cluster and node name",
    WAL_UNKNOWN_TYPE: "start the version that wrote it",
  };
  const text = `${directory}: ${refusalText(refusal, identity)}. To go on: ${advice[refusal.code]}`;
  return new WalError(refusal.code, text);
}

function foreignError(directory: string, [name = "", ...others]: readonly string[]): WalError {
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  return new WalError(
    "WAL_FOREIGN",
    `${join(directory, name)}${more} is no file of a write-ahead log: ` +
      "give the log a directory of its own, or move that file away",
  );
}
