/** `queue export` and `queue import`: from the embedded store to PostgreSQL, and back. */

import type { Command } from "commander";
import { errorText } from "../../core/base/error-text.ts";
import { maskCredentials } from "../../core/base/mask-credentials.ts";
import { clean } from "../../core/base/terminal-text.ts";
import { EXIT_FAILURE, EXIT_USAGE } from "../../host/exit-codes.ts";
import type { StorePlace } from "../../queue/transfer.ts";
import { complain } from "../print.ts";
import { line, print } from "./queue-command.ts";

interface TransferFlags {
  readonly dataDir?: string;
  readonly database?: string;
  readonly json?: true;
}

interface ExportFlags extends TransferFlags {
  readonly out: string;
}

type Transfer = typeof import("../../queue/transfer.ts");

export function registerTransfer(queue: Command): void {
  withPlace(queue.command("export"))
    .description("write all tasks, schedules, queues and files to a file; no node may run")
    .requiredOption("--out <file>", "a new file of JSON lines; only its owner may read it")
    .action((flags: ExportFlags) =>
      report(flags, `to ${flags.out}`, (transfer, place) => transfer.exportQueue(place, flags.out)),
    );
  withPlace(queue.command("import <file>"))
    .description("fill an empty queue with what `queue export` wrote; all of it, or nothing")
    .action((file: string, flags: TransferFlags) =>
      report(flags, `from ${file}`, (transfer, place) => transfer.importQueue(place, file)),
    );
}

function withPlace(command: Command): Command {
  return command
    .option("--data-dir <dir>", "the embedded store (default: .hyperscale/queue)")
    .option("--database <url>", "PostgreSQL (or HYPERSCALE_DATABASE_URL, without --data-dir)")
    .option("--json", "print JSON");
}

async function report(
  flags: TransferFlags,
  way: string,
  move: (transfer: Transfer, place: StorePlace) => Promise<Readonly<Record<string, number>>>,
): Promise<void> {
  // The export contains private inputs and results.
  process.umask(0o077);
  const [transfer, { QueueError }] = await Promise.all([
    import("../../queue/transfer.ts"),
    import("../../core/queue/errors.ts"),
  ]);
  try {
    const place = placeOf(flags);
    const counts = await move(transfer, place);
    const store = "dataDirectory" in place ? place.dataDirectory : "PostgreSQL";
    if (flags.json) return print({ store, counts });
    const found = Object.entries(counts).filter(([, count]) => count > 0);
    const list = found.map(([table, count]) => `${table} ${count}`).join("   ");
    line(`${store} ${way}: ${list === "" ? "the queue is empty" : list}`);
  } catch (error) {
    const known = error instanceof QueueError ? error : undefined;
    const message = maskCredentials(errorText(error));
    if (flags.json) print({ error: { code: known?.code ?? "INTERNAL", message } });
    complain(`hyperscale queue: ${clean(message)}`);
    process.exitCode = known?.code === "INVALID_PARAMS" ? EXIT_USAGE : EXIT_FAILURE;
  }
}

/** An explicit data directory wins over the environment. */
function placeOf({ dataDir, database }: TransferFlags): StorePlace {
  if (dataDir !== undefined && database !== undefined)
    throw new Error("--data-dir and --database are two stores: name one");
  if (dataDir !== undefined) return { dataDirectory: dataDir };
  const databaseUrl = database ?? process.env["HYPERSCALE_DATABASE_URL"] ?? "";
  return databaseUrl === "" ? { dataDirectory: ".hyperscale/queue" } : { databaseUrl };
}
