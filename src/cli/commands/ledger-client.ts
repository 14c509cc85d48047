/** `hyperscale ledger put|get|history|jobs|status|audit`: jobs and their events, over a node's interface. */

import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import type { Command } from "commander";
import { EXIT_FAILURE, EXIT_USAGE } from "../../host/exit-codes.ts";

import {
  callLedger,
  isAnswered,
  type JsonObject,
  LedgerClientError,
  type LedgerReply,
} from "../../ledger/client.ts";
import { EVENT_WORDS } from "../../ledger/event-json.ts";
import { keepSession, openSession } from "../../ledger/session.ts";
import { listed } from "../option-values.ts";
import { complain, jsonText } from "../print.ts";
import { type Common, runCommand, UsageError, withTarget } from "./ledger-target.ts";
import {
  showAudit,
  showHistory,
  showJob,
  showJobs,
  showPut,
  showReplaced,
  showStatus,
} from "./ledger-views.ts";

interface PutOptions extends Common {
  readonly key?: string;
  readonly session?: string;
  readonly spec?: string;
  readonly specFile?: string;
  readonly dc?: readonly string[];
  readonly event?: string;
  readonly eventId?: string;
  readonly durability: string;
  readonly ifSeq?: number;
  readonly ifFence?: number;
  readonly workers?: number;
  readonly reason?: string;
  readonly status?: string;
  readonly error?: string;
  readonly timeoutType?: string;
  readonly completed?: number;
  readonly failed?: number;
  readonly cores?: number;
  readonly attempt?: number;
  readonly digest?: string;
  readonly workflow?: string;
  readonly value?: string;
  readonly startAt?: number;
  readonly share?: readonly string[];
  readonly permille?: number;
  readonly bytes?: number;
}

const SESSION_TEXT = "what was done and seen is kept here, and never gone back behind";

const PUT_HELP = `
Without JOB a job is submitted; with JOB and --event something is said about it.
Events: ${EVENT_WORDS.join(", ")}.

Examples:
  $ hyperscale ledger put --spec '{"vus":10}' --dc dc1 --dc dc2
  $ hyperscale ledger put --spec-file flow.json --key ci:42:0123456789abcdef    once, however often sent
  $ hyperscale ledger put JOB --event accepted --dc dc1 --workers 8
  $ hyperscale ledger put JOB --event cancel --reason "wrong target"
  $ hyperscale ledger put JOB --event complete --status passed --durability global
  $ hyperscale ledger put JOB --event started --start-at 1704931200000 --digest HEX --share dc1=8
  $ hyperscale ledger put JOB --event complete --if-seq 4 --if-fence 2    refused if somebody was faster

A key reads client:sequence:nonce, the nonce 16 lower-case hex digits; without --key one is made, so that
the retries of this command make one job. Durability is never below what the event needs (jobs: global);
the answer says which level was really reached.
A cancel or abort that no quorum confirms at once is "passed on, not committed": who watches the job is told to
stop, and the node that was asked proposes it until it commits.
Exit codes: 0 done or passed on, 1 refused or no answer, 2 wrong arguments.
`;

const GET_HELP = `
Levels: eventual  whatever this node has           session  at least --min-seq (default)
        bounded   at most --stale milliseconds old strong   linearizable, confirmed by a quorum

Example:
  $ hyperscale ledger get use1-1704931200000-n1-00001 --level strong
`;

const AUDIT_HELP = `
One node answers for the jobs it replicates, in memory and in its archive; with --job, for any job.

Examples:
  $ hyperscale ledger audit --from 2026-01-31T12:00:00Z --to 2026-01-31T13:00:00Z
  $ hyperscale ledger audit --job use1-1704931200000-n1-00001 --json
`;

const JOBS_HELP = `
One node answers for the jobs it replicates, as far as it knows; finished ones until they are archived.

Examples:
  $ hyperscale ledger jobs --status created,accepted
  $ hyperscale ledger jobs --owner n2 --json
`;

const REPLACE_HELP = `
Run it against a node that stays. What could not be moved is listed; run it again until nothing is.
Exit codes: 0 all groups were moved, 1 some were not.
`;

export function registerLedgerClient(ledger: Command): void {
  registerPut(ledger);
  withTarget(ledger.command("get <job>"))
    .description("read a job")
    .option("--level <level>", "eventual, session, bounded or strong", "session")
    .option("--min-seq <n>", "session: at least this place of its log", Number)
    .option("--session <file>", SESSION_TEXT)
    .option("--stale <ms>", "bounded: how old the answer may be", Number)
    .addHelpText("after", GET_HELP)
    .action((job: string, options: ReadOptions) => runCommand(() => get(job, options, showJob)));
  withTarget(ledger.command("history <job>"))
    .description("list the events of a job: place, time, outcome")
    .option("--level <level>", "eventual, session, bounded or strong", "session")
    .option("--min-seq <n>", "session: at least this place of its log", Number)
    .option("--session <file>", SESSION_TEXT)
    .option("--stale <ms>", "bounded: how old the answer may be", Number)
    .action((job: string, options: ReadOptions) =>
      runCommand(() => get(job, options, showHistory)),
    );
  withTarget(ledger.command("jobs"))
    .description("list the jobs a node replicates, by status and owner")
    .option("--status <status>", "created, accepted, …; repeat or separate by commas", listed)
    .option("--owner <node>", "jobs that this node leads")
    .option("--prefix <text>", "jobs whose ids begin so")
    .option("--after <job>", "the page after this job")
    .option("--limit <n>", "at most so many", Number, 100)
    .addHelpText("after", JOBS_HELP)
    .action((options: JobsOptions) => runCommand(() => jobs(options)));
  withTarget(ledger.command("status"))
    .description("a node's groups, log and peers")
    .option("--groups [prefix]", "list groups with their views and primaries")
    .action((options: StatusOptions) => runCommand(() => status(options)));
  withTarget(ledger.command("audit"))
    .description("events of any time range, archived jobs included")
    .option("--from <time>", "2026-01-31T12:00:00Z, or milliseconds")
    .option("--to <time>", "the same")
    .option("--job <job>", "only this job")
    .option("--limit <n>", "at most so many", Number, 1_000)
    .addHelpText("after", AUDIT_HELP)
    .action((options: AuditOptions) => runCommand(() => audit(options)));
  withTarget(ledger.command("replace"))
    .description("give a node's place in every group this node knows to another node")
    .requiredOption("--leaving <name>", "the node that is gone or shall go")
    .requiredOption("--joining <name>", "the node that takes its place; configured and running")
    .addHelpText("after", REPLACE_HELP)
    .action((options: ReplaceOptions) => runCommand(() => replace(options)));
}

function registerPut(ledger: Command): void {
  withTarget(ledger.command("put [job]"))
    .description("submit a job, or an event of a job")
    .option("--key <key>", "idempotency key: client:sequence:nonce")
    .option("--spec <text>", "what to run; opaque to the ledger")
    .option("--spec-file <file>", "the same from a file")
    .option(
      "--dc <name>",
      "datacenters of the job, or of the event; repeat or separate by commas",
      listed,
    )
    .option("--session <file>", SESSION_TEXT)
    .option("--event <event>", EVENT_WORDS.join(", "))
    .option("--event-id <id>", "names the event over retries; made if not given")
    .option("--durability <level>", "none, local, regional or global", "none")
    .option("--if-seq <n>", "only if nothing has changed the job after this place", Number)
    .option("--if-fence <n>", "only while the job's owner has this fence (its view)", Number)
    .option("--workers <n>", "accepted: workers the datacenter gives", Number)
    .option("--reason <text>", "cancel, abort, queued: why")
    .option("--status <text>", "complete, result: how it ended")
    .option("--error <text>", "fail: what went wrong")
    .option("--timeout-type <text>", "timeout: which")
    .option("--completed <n>", "progress, result: finished so far", Number)
    .option("--failed <n>", "progress, result: failed so far", Number)
    .option("--cores <n>", "dispatched: cores that are asked for", Number)
    .option("--attempt <n>", "dispatched: how often this datacenter was asked", Number)
    .option("--digest <hex>", "dispatched, started, result: SHA-256 of what is kept elsewhere")
    .option("--workflow <name>", "setup: whose set-up")
    .option("--value <text>", "setup: what it gave")
    .option("--start-at <ms>", "started: the instant, in milliseconds since 1970", Number)
    .option("--share <dc=cores>", "started: what a datacenter gets; repeat", listed)
    .option("--permille <n>", "scaled: of the plan; 1000 is as planned", Number)
    .option("--bytes <n>", "result: size of what the digest names", Number)
    .addHelpText("after", PUT_HELP)
    .action((job: string | undefined, options: PutOptions) => runCommand(() => put(job, options)));
}

interface JobsOptions extends Common {
  readonly status?: readonly string[];
  readonly owner?: string;
  readonly prefix?: string;
  readonly after?: string;
  readonly limit: number;
}

async function jobs({ status: statuses, limit, ...options }: JobsOptions): Promise<void> {
  const query = new URLSearchParams({ limit: String(limit) });
  if (statuses !== undefined) query.set("status", statuses.join(","));
  for (const name of ["owner", "prefix", "after"] as const) {
    const value = options[name];
    if (value !== undefined) query.set(name, value);
  }
  const path = `/v1/jobs?${query}`;
  const reply = await callLedger(options, { method: "GET", path, id: randomUUID() });
  show(options, reply, () => showJobs(reply.body));
}

interface ReplaceOptions extends Common {
  readonly leaving: string;
  readonly joining: string;
}

async function replace({ leaving, joining, ...options }: ReplaceOptions): Promise<void> {
  const path = "/v1/replace";
  const body = { leaving, joining };
  const retry = { ...ONCE, attemptTimeoutMs: 600_000 };
  const reply = await callLedger(options, { method: "POST", path, body, id: randomUUID(), retry });
  show(options, reply, () => showReplaced(reply.body));
  if (Array.isArray(reply.body["failed"]) && reply.body["failed"].length > 0) {
    process.exitCode = EXIT_FAILURE;
  }
}

async function put(job: string | undefined, options: PutOptions): Promise<void> {
  const call = job === undefined ? submission(options) : eventCall(job, options);
  const reply = await callLedger(options, {
    method: "POST",
    ...call,
    onRetry: (why, afterMs) =>
      complain(`hyperscale ledger: ${why}; again in ${(afterMs / 1_000).toFixed(1)} s`),
  }).catch((error: unknown) => {
    if (!(error instanceof LedgerClientError) || !error.unknown) throw error;
    const again = job === undefined ? `--key ${call.id}` : `--event-id ${call.id}`;
    throw new LedgerClientError(`${error.message}. It may have happened: ask again with ${again}`);
  });
  keepSession(options.session, reply.body);
  show(options, reply, () => showPut(reply.body, call.id));
}

interface PutCall {
  readonly path: string;
  readonly body: unknown;
  readonly id: string;
}

function submission(options: PutOptions): PutCall {
  if (options.event !== undefined) throw new UsageError("--event needs the JOB it is about");
  if (options.spec !== undefined && options.specFile !== undefined) {
    throw new UsageError("--spec and --spec-file: give one of them");
  }
  const key = options.key ?? `${clientName()}:0:${randomBytes(8).toString("hex")}`;
  const spec =
    options.specFile === undefined ? Buffer.from(options.spec ?? "") : fileOf(options.specFile);
  const specBase64 = spec.toString("base64");
  const body = {
    key,
    specBase64,
    ...(options.dc === undefined ? {} : { datacenters: options.dc }),
  };
  return { path: "/v1/jobs", body, id: key };
}

function clientName(): string {
  const { username } = userInfo();
  return /^[A-Za-z0-9._-]{1,64}$/.test(username) ? username : "cli";
}

function fileOf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    throw new UsageError(`--spec-file ${path}: cannot be read`);
  }
}

/** Events requested by a person: the log keeps by whom. (G-19) */
const ORDERS: readonly string[] = ["cancel", "abort", "paused", "resumed", "scaled"];

function sharesOf(shares: readonly string[] | undefined): Record<string, number> | undefined {
  if (shares === undefined) return undefined;
  const pairs = shares.map((text) => {
    const [dc = "", cores = ""] = text.split("=", 2);
    if (dc === "" || !/^\d+$/.test(cores)) throw new UsageError(`--share ${text}: write DC=CORES`);
    return [dc, Number(cores)] as const;
  });
  return Object.fromEntries(pairs);
}

function eventCall(job: string, options: PutOptions): PutCall {
  const { event, dc } = options;
  if (event === undefined || !EVENT_WORDS.some((word) => word === event)) {
    throw new UsageError(`--event: say what happened to ${job}: ${EVENT_WORDS.join(", ")}`);
  }
  if (dc !== undefined && dc.length > 1)
    throw new UsageError("--dc: an event is of one datacenter");
  const id = options.eventId ?? randomUUID();
  const { workers, reason, error, timeoutType, completed, failed, ifSeq, ifFence } = options;
  const { cores, attempt, digest, workflow, value, permille, bytes } = options;
  const said = {
    ...{ workers, reason, status: options.status, error, timeoutType, completed, failed },
    ...{ ifSeq, ifFence, cores, attempt, digest, workflow, value, permille, bytes },
    ...{ startAtMs: options.startAt, shares: sharesOf(options.share) },
  };
  const given = Object.entries({ ...said, dc: dc?.[0] }).filter(([, value]) => value !== undefined);
  const requestor = ORDERS.includes(event) ? { requestor: clientName() } : {};
  const durability = options.durability.toUpperCase();
  const body = { event, eventId: id, durability, ...requestor, ...Object.fromEntries(given) };
  return { path: `/v1/jobs/${encodeURIComponent(job)}/events`, body, id };
}

interface ReadOptions extends Common {
  readonly level: string;
  readonly session?: string;
  readonly minSeq?: number;
  readonly stale?: number;
}

async function get(
  job: string,
  options: ReadOptions,
  view: (body: JsonObject) => string,
): Promise<void> {
  const query = new URLSearchParams({ level: options.level });
  if (options.minSeq !== undefined) query.set("minSeq", String(options.minSeq));
  if (options.session !== undefined) {
    if (options.level !== "session") throw new UsageError("--session: only with --level session");
    const { level, minSeq } = openSession(options.session).need(job);
    query.set("level", level.toLowerCase());
    query.set("minSeq", String(minSeq));
  }
  if (options.stale !== undefined) query.set("staleMs", String(options.stale));
  const path = `/v1/jobs/${encodeURIComponent(job)}?${query}`;
  const reply = await callLedger(options, { method: "GET", path, id: randomUUID() });
  keepSession(options.session, reply.body);
  show(options, reply, () => view(reply.body));
}

interface StatusOptions extends Common {
  readonly groups?: string | boolean;
}

async function status(options: StatusOptions): Promise<void> {
  const quick = { method: "GET", id: randomUUID(), retry: ONCE } as const;
  const reply = await callLedger(options, { ...quick, path: "/v1/status" });
  if (options.groups === undefined) {
    show(options, reply, () => showStatus(reply.body, []));
    return;
  }
  const prefix = typeof options.groups === "string" ? options.groups : "";
  const path = `/v1/groups?prefix=${encodeURIComponent(prefix)}`;
  const listed = await callLedger(options, { ...quick, path });
  const groups = (listed.body["groups"] ?? []) as readonly JsonObject[];
  show(options, { ...reply, body: { ...reply.body, groups } }, () =>
    showStatus(reply.body, groups),
  );
}

const ONCE = { retriesMax: 0, delayMs: 0, jitter: 0, attemptTimeoutMs: 10_000 };

interface AuditOptions extends Common {
  readonly from?: string;
  readonly to?: string;
  readonly job?: string;
  readonly limit: number;
}

async function audit(options: AuditOptions): Promise<void> {
  const query = new URLSearchParams({ limit: String(options.limit) });
  for (const name of ["from", "to", "job"] as const) {
    const value = options[name];
    if (value !== undefined) query.set(name, value);
  }
  const path = `/v1/audit?${query}`;
  const reply = await callLedger(options, { method: "GET", path, id: randomUUID() });
  show(options, reply, () => showAudit(reply.body));
}

function show({ json }: Common, reply: LedgerReply, view: () => string): void {
  if (json === true) process.stdout.write(`${jsonText(reply.body, 2)}\n`);
  else if (isAnswered(reply.status)) process.stdout.write(`${view()}\n`);
  else complain(`hyperscale ledger: ${String(reply.body["error"])}`);
  if (isAnswered(reply.status)) return;
  process.exitCode = reply.status === 400 ? EXIT_USAGE : EXIT_FAILURE;
}
