/** `hyperscale audit`: requests with requester and time, from a node's audit log. Changes no file. */

import { type Command, InvalidArgumentError } from "commander";
import {
  type AuditEntry,
  type AuditFilter,
  type AuditProblem,
  AuditReadError,
  auditDirectory,
  followAudit,
  readAudit,
} from "../../audit/read.ts";
import { parseDuration } from "../../core/base/duration.ts";
import { headedTable, tableLines } from "../../core/base/text-table.ts";
import { EXIT_FAILURE, EXIT_USAGE } from "../../host/exit-codes.ts";
import { AUDIT_KINDS } from "../../host/ports/audit.ts";
import { complain, jsonText } from "../print.ts";

/** Default length of a table; JSON lines have no bound. */
const TABLE_ENTRIES = 1_000;
/** The newest entries kept in memory before the first is printed. */
const LIMIT_MAX = 10_000;

const GROUPS = [...new Set(AUDIT_KINDS.map((kind) => kind.split(".")[0] ?? kind))];

const HELP = `
Every agent, ledger node and queue node keeps an audit log in <data-dir>/audit: who joined, failed, left
or was removed, who leads, which keys are in use, what was cancelled, retried or replaced, and who asked
for it. It is read from the files: the node need not run, and may.

Examples:
  $ hyperscale audit data/n1                                  the newest ${TABLE_ENTRIES} entries
  $ hyperscale audit data/n1 --kind member --from 2h          members, the last two hours
  $ hyperscale audit data/n1 --subject worker-7 --limit 20    what happened to one member
  $ hyperscale audit data/n1 --requester alice --json | jq .  what somebody asked for
  $ hyperscale audit data/n1 --follow                         as it happens; Ctrl-C ends

Times: 2026-01-31, 2026-01-31T12:00:00Z, or a duration before now (90s, 2h, 7d).
Kinds: a group (${GROUPS.join(", ")}) or one of
${inColumns(AUDIT_KINDS)}

An operator's name is what their client said; the credential is what the request was let in by.
Exit codes: 0 read, 1 parts are damaged or only a newer version can read it, 2 no such directory, not an
            audit log, or wrong arguments.`;

interface Flags extends AuditFilter {
  readonly from?: number;
  readonly to?: number;
  readonly limit?: number;
  readonly follow?: boolean;
  readonly json?: boolean;
}

export function registerAudit(program: Command): void {
  program
    .command("audit")
    .summary("who asked a node for what, and when")
    .description("Shows the audit log of an agent, a ledger node or a queue node, newest last.")
    .argument("<directory>", "a node's data directory, or the audit log in it")
    .option("--from <time>", "only entries from then on", timeOf)
    .option("--to <time>", "only entries up to then", timeOf)
    .option("--kind <kind>", 'one kind ("member.failed") or a group of them ("member")', kindOf)
    .option("--subject <name>", "what it happened to: a member, job, task, schedule")
    .option("--requester <who>", "a name, address, credential, or operator, peer, self, system")
    .option("--limit <count>", `only the newest so many, at most ${LIMIT_MAX}`, limitOf)
    .option("--follow", "go on with entries as they are written")
    .option("--json", "one object per line")
    .addHelpText("after", HELP)
    .action(audit);
}

async function audit(path: string, flags: Flags): Promise<void> {
  if (flags.from !== undefined && flags.to !== undefined && flags.from > flags.to) {
    complain("hyperscale: --from is after --to");
    process.exitCode = EXIT_USAGE;
    return;
  }
  const problems = new Problems();
  // `| head` is a valid way to read a log.
  const closed = new AbortController();
  process.stdout.on("error", () => closed.abort());
  const directory = await auditDirectory(path);
  try {
    const last = await show(directory, flags, problems, closed.signal);
    if (flags.follow === true) await follow(directory, flags, last, closed);
  } catch (error) {
    if (!(error instanceof AuditReadError)) throw error;
    complain(`hyperscale: ${error.message}`);
    process.exitCode = error.code === "NEWER" ? EXIT_FAILURE : EXIT_USAGE;
  }
  problems.report();
}

/** Returns the number of the last entry that was read. */
async function show(
  directory: string,
  flags: Flags,
  problems: Problems,
  signal: AbortSignal,
): Promise<number> {
  const json = flags.json === true;
  const limit = flags.limit ?? (json ? Number.POSITIVE_INFINITY : TABLE_ENTRIES);
  // A ring when there is a limit; without one nothing is kept.
  const ring: AuditEntry[] = [];
  let count = 0;
  let last = 0;
  const onProblem = (problem: AuditProblem): void => problems.note(problem);
  for await (const entry of readAudit(directory, filterOf(flags), { onProblem })) {
    last = entry.lsn;
    if (signal.aborted) break;
    if (Number.isFinite(limit)) ring[count % limit] = entry;
    else await write(`${jsonLine(entry)}\n`);
    count++;
  }
  const newest = [...ring.slice(count % limit), ...ring.slice(0, count % limit)];
  if (json) for (const entry of newest) await write(`${jsonLine(entry)}\n`);
  else if (newest.length > 0) await write(`${headedTable(HEAD, newest.map(row))}\n`);
  if (count === 0) complain("hyperscale: no entry matches");
  if (!json && flags.limit === undefined && count > limit) {
    const text = `${count - limit} earlier entries are not shown: see --from, --to, --limit or --json`;
    complain(`hyperscale: ${text}`);
  }
  return last;
}

async function follow(
  directory: string,
  flags: Flags,
  afterLsn: number,
  stop: AbortController,
): Promise<void> {
  const end = (): void => stop.abort();
  process.once("SIGINT", end);
  process.once("SIGTERM", end);
  const { signal } = stop;
  for await (const entry of followAudit(directory, filterOf(flags), { afterLsn, signal })) {
    if (signal.aborted) break;
    const [line = ""] = tableLines([row(entry)]);
    await write(`${flags.json === true ? jsonLine(entry) : line}\n`);
  }
}

/** Waits for a slow reader, so that a long log does not pile up in memory. */
async function write(text: string): Promise<void> {
  if (process.stdout.write(text)) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      process.stdout.off("drain", done).off("close", done).off("error", done);
      resolve();
    };
    process.stdout.once("drain", done).once("close", done).once("error", done);
  });
}

function filterOf({ from, to, kind, subject, requester }: Flags): AuditFilter {
  return {
    ...(from === undefined ? {} : { fromMs: from }),
    ...(to === undefined ? {} : { toMs: to }),
    ...(kind === undefined ? {} : { kind }),
    ...(subject === undefined ? {} : { subject }),
    ...(requester === undefined ? {} : { requester }),
  };
}

const HEAD = ["time", "node", "kind", "subject", "requested by", "detail"];

function row({ at, node, kind, subject, requester, detail }: AuditEntry): readonly string[] {
  const { kind: by, name, credential, address } = requester;
  const who = [
    by === "self" ? "this node" : by,
    ...(name === "" ? [] : [name]),
    ...(credential === "" ? [] : [`(${credential})`]),
    ...(address === "" ? [] : [`from ${address}`]),
  ].join(" ");
  const fields = Object.entries(detail).map(([key, value]) => `${key}=${value}`);
  return [new Date(at).toISOString(), node, kind, subject, who, fields.join(" ")];
}

function jsonLine({ at, ...entry }: AuditEntry): string {
  return jsonText({ at: new Date(at).toISOString(), ...entry });
}

function timeOf(text: string): number {
  if (/^\d{4}-\d\d-\d\d/.test(text)) {
    const time = Date.parse(text);
    if (Number.isFinite(time)) return time;
  }
  const ago = parseDuration(text);
  if (ago.ok) return Date.now() - ago.ms;
  throw new InvalidArgumentError(
    "write 2026-01-31, 2026-01-31T12:00:00Z, or 2h for two hours ago.",
  );
}

function kindOf(text: string): string {
  if (GROUPS.includes(text) || AUDIT_KINDS.some((kind) => kind === text)) return text;
  throw new InvalidArgumentError(`write one of ${GROUPS.join(", ")}, or a kind (see --help).`);
}

function limitOf(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= LIMIT_MAX) return count;
  throw new InvalidArgumentError(`write a whole number from 1 to ${LIMIT_MAX}.`);
}

function inColumns(words: readonly string[]): string {
  const lines: string[] = [];
  for (let at = 0; at < words.length; at += 4) {
    const line = words.slice(at, at + 4).map((word) => word.padEnd(18));
    lines.push(`  ${line.join("")}`.trimEnd());
  }
  return lines.join("\n");
}

/** Reports each problem once, and not a thousand of them. */
class Problems {
  static readonly SHOWN_MAX = 5;
  #count = 0;
  #damaged = false;

  note({ damaged, message }: AuditProblem): void {
    this.#damaged ||= damaged;
    this.#count++;
    if (this.#count <= Problems.SHOWN_MAX) complain(`hyperscale: ${message}`);
  }

  report(): void {
    const more = this.#count - Problems.SHOWN_MAX;
    if (more > 0) complain(`hyperscale: and ${more} more places`);
    if (this.#damaged) process.exitCode = EXIT_FAILURE;
  }
}
