/** `hyperscale wal inspect|verify|dump`: reads a write-ahead log. Changes no file. */

import { type Command, InvalidArgumentError, Option } from "commander";
import { headedTable } from "../../core/base/text-table.ts";
import { RECORD_TYPES, recordTypeName } from "../../core/ledger/log/record-types.ts";
import { formatCount } from "../../core/load/results/format.ts";
import { EXIT_FAILURE, EXIT_USAGE } from "../../host/exit-codes.ts";
import { WalError } from "../../ledger/log/errors.ts";
import { inspectLog, type LogReport } from "../../ledger/log/inspect.ts";
import { listSegments, type ReadEntry, readRecords } from "../../ledger/log/reader.ts";
import { complain, jsonText } from "../print.ts";

const CODES = `
Exit codes: 0 sound, 1 corrupt or refused (a node would not start on it), 2 no such directory or wrong
            arguments. A torn tail is sound: the last batch was being written when the process died,
            nobody was told it was durable, and opening the log cuts it off.

While a process writes to the log, its last batch may look torn; stop it for a final word.`;

export function registerWal(program: Command): void {
  const wal = program
    .command("wal")
    .summary("look at a write-ahead log: inspect, verify, dump")
    .description("Looks at the write-ahead log of a ledger node. No file is ever changed.")
    .addHelpText("after", CODES);
  wal
    .command("inspect")
    .description("segments, checkpoints, record counts and positions")
    .argument("<directory>", "the log's directory")
    .option("--json", "one object instead of text")
    .addHelpText("after", `\nExample:\n  hyperscale wal inspect data/wal\n${CODES}`)
    .action((directory: string, { json }: Flags) => report(directory, json === true, inspectText));
  wal
    .command("verify")
    .description("check every byte: sound, torn tail or corrupt, and what proves it")
    .argument("<directory>", "the log's directory")
    .option("--json", "one object instead of text")
    .addHelpText(
      "after",
      `\nExample:\n  hyperscale wal verify data/wal && start-the-node\n${CODES}`,
    )
    .action((directory: string, { json }: Flags) => report(directory, json === true, verifyText));
  wal
    .command("dump")
    .description("the records, one per line")
    .argument("<directory>", "the log's directory")
    .option(
      "--from <lsn>",
      "begin here; found through the index, without reading what is before",
      lsn,
    )
    .option("--to <lsn>", "end here", lsn)
    .option("--limit <count>", "at most this many records", lsn)
    .addOption(new Option("--type <name>", "only these records").choices(Object.keys(RECORD_TYPES)))
    .addOption(
      new Option("--payload <form>", "how payloads are shown")
        .choices(["hex", "text", "none"])
        .default("hex"),
    )
    .option("--json", "one object per line, payloads whole and in base64")
    .addHelpText("after", DUMP_HELP)
    .action(dump);
}

const DUMP_HELP = `
Examples:
  hyperscale wal dump data/wal --limit 20
  hyperscale wal dump data/wal --from 1200 --to 1300 --type VSR_ENTRY
  hyperscale wal dump data/wal --json | jq 'select(.type == "CHECKPOINT_MARK")'
${CODES}`;

interface Flags {
  readonly json?: boolean;
}

function lsn(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new InvalidArgumentError("give a whole number from 1 on.");
  }
  return value;
}

async function report(
  directory: string,
  json: boolean,
  text: (report: LogReport) => string,
): Promise<void> {
  const found = await orUsage(() => inspectLog(directory));
  if (found === null) return;
  process.stdout.write(json ? `${jsonText(found, 2)}\n` : text(found));
  if (found.verdict === "corrupt" || found.verdict === "refused") process.exitCode = EXIT_FAILURE;
}

/** A missing directory is the caller's mistake, not the log's. */
async function orUsage<Value>(work: () => Promise<Value>): Promise<Value | null> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof WalError)) throw error;
    complain(`hyperscale: ${error.message}`);
    process.exitCode = error.code === "WAL_MISSING" ? EXIT_USAGE : EXIT_FAILURE;
    return null;
  }
}

const VERDICTS: Readonly<Record<LogReport["verdict"], string>> = {
  sound: "sound",
  "torn-tail": "sound, with a torn tail (nothing acknowledged is missing)",
  corrupt: "CORRUPT",
  refused: "REFUSED",
};

function verifyText(log: LogReport): string {
  const lines = [`${log.directory}: ${VERDICTS[log.verdict]}`];
  if (log.detail !== null) lines.push(`  ${log.detail}`);
  lines.push(`  ${count(log.entries, "entry", "entries")} checked${range(log)}`);
  const good = log.checkpoints.filter(({ problem }) => problem === null).length;
  lines.push(`  ${count(good, "intact checkpoint", "intact checkpoints")}`);
  for (const { file, problem } of log.checkpoints) {
    if (problem !== null) lines.push(`  ${file}: ${problem}`);
  }
  if (log.verdict === "torn-tail")
    lines.push("  opening the log cuts the tail off; nothing is to be done");
  if (log.verdict === "corrupt") lines.push(CORRUPT_ADVICE);
  return `${lines.join("\n")}\n`;
}

const CORRUPT_ADVICE =
  "  a node will not start on it: move the directory aside and let the node catch up from its peers,\n" +
  "  or restore a copy. Do not cut the file: what follows the damage had been acknowledged.";

function range({ firstLsn, maxLsn }: LogReport): string {
  return maxLsn === 0 ? "" : `, LSN ${firstLsn} to ${maxLsn}`;
}

function count(number: number, one: string, many: string): string {
  return `${formatCount(number)} ${number === 1 ? one : many}`;
}

function inspectText(log: LogReport): string {
  const identities = new Set(
    log.segments.map(({ identity }) => identity).filter((id) => id !== null),
  );
  const lines = [
    `log        ${log.directory}`,
    `verdict    ${VERDICTS[log.verdict]}`,
    ...(log.detail === null ? [] : [`           ${log.detail}`]),
    `identity   ${[...identities].join(", ") || "none yet"}`,
    `entries    ${formatCount(log.entries)}${range(log)}`,
    `clock      ${log.maxHlc.wall === 0 ? "none" : `${isoTime(log.maxHlc.wall)} + ${log.maxHlc.logical}`}`,
  ];
  if (log.foreign.length > 0) lines.push(`foreign    ${log.foreign.join(", ")}`);
  if (log.temporary.length > 0) lines.push(`unfinished ${log.temporary.join(", ")}`);
  const types = Object.entries(log.types).map(([name, total]) => [name, formatCount(total)]);
  if (log.segments.length > 0) lines.push("", segmentTable(log));
  if (types.length > 0) lines.push("", headedTable(["record", "count"], types));
  if (log.checkpoints.length > 0) lines.push("", checkpointTable(log));
  return `${lines.join("\n")}\n`;
}

function segmentTable({ segments }: LogReport): string {
  const cell = (value: number | null): string => (value === null ? "-" : String(value));
  return headedTable(
    ["segment", "state", "first lsn", "last lsn", "entries", "used", "size", "index"],
    segments.map((segment) => [
      segment.file,
      segment.state,
      cell(segment.firstLsn),
      cell(segment.lastLsn),
      String(segment.entries),
      cell(segment.usedBytes),
      String(segment.bytes),
      segment.index,
    ]),
  );
}

function checkpointTable({ checkpoints }: LogReport): string {
  return headedTable(
    ["checkpoint", "local lsn", "through lsn", "slices", "made", "state"],
    checkpoints.map(({ file, header, problem }) => [
      file,
      header === null ? "-" : String(header.localLsn),
      header === null ? "-" : String(header.throughLsn),
      header === null ? "-" : String(header.slices),
      header === null ? "-" : isoTime(header.createdAt),
      problem ?? "intact",
    ]),
  );
}

function isoTime(wall: number): string {
  const time = new Date(wall);
  return Number.isNaN(time.getTime()) ? `${wall} ms` : time.toISOString();
}

interface DumpFlags extends Flags {
  readonly from?: number;
  readonly to?: number;
  readonly limit?: number;
  readonly type?: string;
  readonly payload: "hex" | "text" | "none";
}

async function dump(directory: string, flags: DumpFlags): Promise<void> {
  const segments = await orUsage(() => listSegments(directory));
  if (segments === null) return;
  let closed = false;
  // `| head` is a valid way to read a log.
  process.stdout.on("error", () => {
    closed = true;
  });
  const to = flags.to === undefined ? {} : { to: flags.to };
  const from = flags.from ?? segments[0]?.firstLsn ?? 1;
  let left = flags.limit ?? Number.POSITIVE_INFINITY;
  try {
    for await (const entry of readRecords(segments, { from, ...to })) {
      if (flags.type !== undefined && recordTypeName(entry.type) !== flags.type) continue;
      const line = flags.json === true ? jsonLine(entry) : textLine(entry, flags.payload);
      process.stdout.write(`${line}\n`);
      if (--left === 0 || closed) return;
    }
  } catch (error) {
    if (!(error instanceof WalError)) throw error;
    // Reading stops at the first invalid record; its meaning depends on the whole log.
    const log = await inspectLog(directory);
    const detail = log.detail ?? error.message;
    complain(`hyperscale: ${VERDICTS[log.verdict]}: ${detail}`);
    if (log.verdict === "corrupt" || log.verdict === "refused") process.exitCode = EXIT_FAILURE;
  }
}

function jsonLine(entry: ReadEntry): string {
  const { payload, type, ...place } = entry;
  return jsonText({
    ...place,
    type: recordTypeName(type),
    payload: Buffer.from(payload).toString("base64"),
  });
}

const PAYLOAD_SHOWN_BYTES = 48;

function textLine(entry: ReadEntry, form: DumpFlags["payload"]): string {
  const { lsn: number, type, wall, logical, payload, segmentId, offset } = entry;
  const place = `${segmentId}:${offset}`;
  const head = [
    String(number).padStart(10),
    place.padEnd(12),
    `${isoTime(wall)}+${logical}`.padEnd(28),
    recordTypeName(type).padEnd(24),
    `${payload.length} B`.padStart(8),
  ].join("  ");
  if (form === "none" || payload.length === 0) return head;
  const shown = Buffer.from(payload.subarray(0, PAYLOAD_SHOWN_BYTES));
  const text =
    form === "hex"
      ? shown.toString("hex")
      : shown.toString("utf8").replace(/[\x00-\x1f\x7f]/g, "·");
  return `${head}  ${text}${payload.length > PAYLOAD_SHOWN_BYTES ? "…" : ""}`;
}
