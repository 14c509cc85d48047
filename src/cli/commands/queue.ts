/** `hyperscale queue …`: nodes and clients of the durable task queue. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { join, resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { parseDuration } from "../../core/base/duration.ts";
import { QueueError } from "../../core/queue/errors.ts";
import { isLoopback } from "../../host/control/guard.ts";
import type { ServiceProcess } from "../../host/control/service-process.ts";
import { readTokenFile } from "../../host/control/token.ts";
import type { ExecutorUser } from "../../host/executor-user.ts";
import { EXIT_FAILURE, EXIT_USAGE } from "../../host/exit-codes.ts";
import { LOG_THRESHOLDS, type Log, type LogThreshold } from "../../host/ports/log.ts";
import type { NodeOptions } from "../../queue/node.ts";
import { listed } from "../option-values.ts";
import { type AuditFlags, auditBoundsOf, withAuditLog } from "./audit-options.ts";
import { type LogFlags, logFileOf, openLogLines, withLogFile } from "./log-options.ts";
import { registerQueueClient } from "./queue-client.ts";
import { TOKEN_FILE } from "./queue-command.ts";
import { registerTransfer } from "./queue-transfer.ts";

interface StartOptions extends LogFlags, AuditFlags {
  readonly listen: { readonly host: string; readonly port: number };
  readonly advertise?: string;
  readonly dataDir: string;
  readonly database?: string;
  readonly nodeId?: string;
  readonly role: "auto" | "leader" | "worker" | "observer";
  readonly executors?: string;
  readonly executorMemory?: number;
  readonly executorUser?: string;
  readonly allowCommand?: readonly string[];
  readonly allowHttp?: readonly string[];
  readonly workflows?: string;
  readonly bundles: boolean;
  readonly clientBundles?: true;
  readonly gate?: readonly string[];
  readonly manager?: readonly string[];
  readonly clusterDir?: string;
  readonly credentials?: string;
  readonly clusterName: string;
  readonly clusterEnvironment: string;
  readonly open?: boolean;
  readonly capability?: Readonly<Record<string, string>>;
  readonly tokenFile?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsCa?: string;
  readonly clientTokenFile?: string;
  readonly workerTokenFile?: string;
  readonly operatorTokenFile?: string;
  readonly maxParallel?: number;
  readonly prefetch?: number;
  readonly lease?: number;
  readonly leaderLease?: number;
  readonly poll?: number;
  readonly grace?: number;
  readonly retention?: number;
  readonly retentionFailed?: number;
  readonly retentionCancelled?: number;
  readonly logLevel?: LogThreshold;
}

export function registerQueue(program: Command): void {
  const queue = program
    .command("queue")
    .description("the durable task queue: run a node, submit work, see and cancel it")
    .addHelpText(
      "after",
      `
Examples:
  hyperscale queue start                                   a complete queue on this machine
  hyperscale queue submit sleep '{"ms": 500}' --wait       run a task and see its result
  hyperscale queue start --database postgres://db/jobs --executors ./executors.ts
                                                           one node of a cluster; start as many as you like
  hyperscale queue list --state FAILED                     dead letters; send one back with: queue requeue ID`,
    );
  registerStart(queue);
  registerQueueClient(queue);
  registerTransfer(queue);
}

function registerStart(queue: Command): void {
  const start = withExecutors(withAuditLog(withLogFile(queue.command("start"))));
  withRetention(withLoadtests(withAccess(start)))
    .description(
      "run a node in the foreground; prints its address when it is ready, as JSON unless at a terminal",
    )
    .addOption(
      new Option("--listen <host:port>", "where the API and the page are served")
        .argParser(parseListen)
        .default({ host: "127.0.0.1", port: 7600 }, "127.0.0.1:7600"),
    )
    .option(
      "--advertise <url>",
      "address other nodes use to reach this one (default: made from --listen)",
    )
    .option(
      "--data-dir <dir>",
      "where the embedded database and load-test results live",
      ".hyperscale/queue",
    )
    .addOption(
      new Option(
        "--database <url>",
        "PostgreSQL: makes this one node of a cluster (default: embedded)",
      ).env("HYPERSCALE_DATABASE_URL"),
    )
    .addOption(
      new Option(
        "--node-id <id>",
        "name of this node (default: the host's, with a random end)",
      ).env("HYPERSCALE_NODE_ID"),
    )
    .addOption(
      new Option("--role <role>", "auto leads when it can; worker never; observer only reads")
        .choices(["auto", "leader", "worker", "observer"])
        .default("auto")
        .env("HYPERSCALE_NODE_ROLE"),
    )
    .option(
      "--capability <name=value>",
      "what this node offers to placement; repeatable",
      collectCapability,
    )
    .option("--max-parallel <n>", "tasks run at once; 0 only coordinates (default: 16)", parseCount)
    .option(
      "--prefetch <n>",
      "tasks held leased beyond those running (default: by how fast they end)",
      parseCount,
    )
    .option("--lease <duration>", "task lease (default: 30s)", parseTime)
    .option("--leader-lease <duration>", "leader lease (default: 8s)", parseTime)
    .option("--poll <duration>", "poll interval (default: 5s)", parseTime)
    .option(
      "--grace <duration>",
      "how long running tasks may end when the node stops (default: 30s)",
      parseTime,
    )
    .addOption(
      new Option(
        "--log-level <level>",
        "log lines go to stderr (default: info; warn at a terminal)",
      ).choices(LOG_THRESHOLDS),
    )
    .action(startNode);
}

function withExecutors(command: Command): Command {
  return command
    .option(
      "--executors <file>",
      "TypeScript or JavaScript file whose exports are executors; each execution has its own process",
    )
    .option("--executor-memory <MiB>", "that one execution may hold (default: 512)", parseCount)
    .addOption(
      new Option(
        "--executor-user <name>",
        "user that executors and load tests run as when started as root; root keeps this node's rights " +
          "(default: nobody)",
      ).env("HYPERSCALE_EXECUTOR_USER"),
    )
    .option(
      "--allow-command <program...>",
      "programs the command executor may start (default: executor off)",
    )
    .option(
      "--allow-http <host...>",
      "hosts the http executor may reach: NAME, *.DOMAIN, address or network, each with an optional " +
        ":PORT, or public (default: public)",
    );
}

function withAccess(command: Command): Command {
  return withTls(command)
    .addOption(
      new Option(
        "--token-file <file>",
        "file with the bearer token; required beyond loopback (default: made in the data directory)",
      ).env("HYPERSCALE_QUEUE_TOKEN_FILE"),
    )
    .addOption(
      new Option("--client-token-file <file>", "token of those who only submit and see work").env(
        "HYPERSCALE_QUEUE_CLIENT_TOKEN_FILE",
      ),
    )
    .addOption(
      new Option("--worker-token-file <file>", "token of those who only take and report work").env(
        "HYPERSCALE_QUEUE_WORKER_TOKEN_FILE",
      ),
    )
    .addOption(
      new Option("--operator-token-file <file>", "token of those who see and steer the queue").env(
        "HYPERSCALE_QUEUE_OPERATOR_TOKEN_FILE",
      ),
    )
    .option("--open", "no token: every user of this machine may submit and see work");
}

function withTls(command: Command): Command {
  return command
    .addOption(
      new Option("--tls-cert <file>", "certificate: serves https only, with --tls-key").env(
        "HYPERSCALE_QUEUE_TLS_CERT_FILE",
      ),
    )
    .addOption(new Option("--tls-key <file>", "its key").env("HYPERSCALE_QUEUE_TLS_KEY_FILE"))
    .addOption(
      new Option(
        "--tls-ca <file>",
        "authority of the other nodes' certificates (default: the usual ones)",
      ).env("HYPERSCALE_QUEUE_TLS_CA_FILE"),
    );
}

function withRetention(command: Command): Command {
  return command
    .option("--retention <duration>", "how long finished tasks are kept (default: 7d)", parseTime)
    .option("--retention-failed <duration>", "the same of FAILED ones, if another", parseTime)
    .option(
      "--retention-cancelled <duration>",
      "the same of CANCELLED ones, if another",
      parseTime,
    );
}

function withLoadtests(command: Command): Command {
  return command
    .option(
      "--workflows <dir>",
      "folder whose workflow files load tests may run (default: what comes with a task)",
    )
    .option("--no-bundles", "run no workflow files that come with tasks")
    .option(
      "--client-bundles",
      "run those of clients' tokens, too: whoever has one runs code here (see --executor-user)",
    )
    .option(
      "--gate <host:port>",
      "gates of a cluster, for load tests that ask for it; repeat or separate by commas",
      listed,
    )
    .option("--manager <host:port>", "managers of a cluster without gates, likewise", listed)
    .option("--cluster-dir <dir>", "directory of a local cluster, likewise")
    .addOption(
      new Option("--credentials <file>", "a client's secret of that cluster").env(
        "HYPERSCALE_CREDENTIALS",
      ),
    )
    .option("--cluster-name <name>", "of that cluster", "hyperscale")
    .option("--cluster-environment <name>", "of that cluster", "default");
}

/** Extra time for a stop beyond the grace period of running tasks. */
const STOP_MARGIN_MS = 10_000;

async function startNode(options: StartOptions): Promise<void> {
  // A node writes private inputs, results and the token.
  process.umask(0o077);
  const [
    { QueueNode, blameExecution },
    { ServiceProcess, onSignals, startProblem },
    { UsageError },
  ] = await Promise.all([
    import("../../queue/node.ts"),
    import("../../host/control/service-process.ts"),
    import("./ledger-target.ts"),
  ]);
  const logLines = await openLogLines(logFileOf(options));
  const nodeId = nodeIdOf(options);
  const isTerminal = process.stderr.isTTY && logLines === undefined;
  const service = new ServiceProcess({
    service: "queue",
    node: nodeId,
    logLevel: options.logLevel ?? (isTerminal ? "warn" : "info"),
    isTerminal,
    contains: blameExecution,
    logLines,
  });
  onSignals(service);
  if (process.stdout.isTTY) service.greet(startingText(options));
  try {
    const user = await userOf(options, service.log);
    const isolated = options.executors === undefined ? undefined : await isolate(options, user);
    const own = isolated?.executors ?? {};
    const node = await QueueNode.start(
      await nodeOptions({ ...options, user }, nodeId, service, own),
    );
    const { gracePeriodMs } = node.settings;
    service.serve({
      stop: async (requester) => {
        const returned = await node.stop(gracePeriodMs, requester);
        await isolated?.close();
        return { returned };
      },
      stopMsMax: gracePeriodMs + STOP_MARGIN_MS,
    });
    if (node.storage === "embedded") {
      service.log.event("warn", "database.embedded", {
        durable: "over a crash of the process, not over a power cut: use PostgreSQL for that",
      });
    }
    const ready = { url: node.url, role: node.roleName, node_id: nodeId, pid: process.pid };
    if (process.stdout.isTTY) service.greet(`Queue ready: ${node.pageUrl}`);
    else service.say({ event: "ready", ...ready });
  } catch (error) {
    const wrong =
      error instanceof UsageError ||
      (error instanceof QueueError && ["INVALID_PARAMS", "UNAUTHORIZED"].includes(error.code));
    const code = wrong ? EXIT_USAGE : EXIT_FAILURE;
    service.failed("queue start", startProblem(error, "--listen"), code);
  }
}

function startingText({ database, dataDir }: StartOptions): string {
  const store = database === undefined ? `the embedded store in ${dataDir}` : "PostgreSQL";
  return `Starting a queue node on ${store} …`;
}

/**
 * The given name, or the host's with a random suffix. A node of the embedded store keeps its name in the data
 * directory, which one process uses at a time; nodes of PostgreSQL may be started side by side from one directory.
 */
function nodeIdOf({ nodeId, database, dataDir }: StartOptions): string {
  if (nodeId !== undefined) return nodeId;
  const made = `${hostname()}-${Math.random().toString(36).slice(2, 6)}`;
  if (database !== undefined) return made;
  const file = join(dataDir, "node-id");
  try {
    const kept = readFileSync(file, "utf8").trim();
    if (kept !== "") return kept;
  } catch {
    // First start in this directory.
  }
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  writeFileSync(file, `${made}\n`, { mode: 0o600 });
  return made;
}

/** Whether the address of a database exposes its password to all users of the machine, who can read arguments. */
export function exposesPassword(database = "", argv: readonly string[]): boolean {
  const hasPassword = /:\/\/[^/@]*:[^/@]+@|[?&]password=./.test(database);
  return hasPassword && argv.some((word) => word.includes(database));
}

async function nodeOptions(
  options: StartOptions & { readonly user: ExecutorUser | null },
  nodeId: string,
  { log, background }: ServiceProcess,
  own: NodeOptions["executors"],
): Promise<NodeOptions> {
  const { AuditLog } = await import("../../audit/audit-log.ts");
  const { nodeClock: clock } = await import("../../host/node-clock.ts");
  const { readSettings } = await import("../../queue/config.ts");
  const { builtinExecutors } = await import("../../queue/executors/builtin.ts");
  const settings = readSettings(process.env, {
    maxParallel: options.maxParallel,
    prefetch: options.prefetch,
    taskLeaseMs: options.lease,
    leaderLeaseMs: options.leaderLease,
    pollIntervalMs: options.poll,
    gracePeriodMs: options.grace,
    retentionMs: options.retention,
    retentionFailedMs: options.retentionFailed,
    retentionCancelledMs: options.retentionCancelled,
  });
  if (exposesPassword(options.database, process.argv)) {
    const cure = "give the address in HYPERSCALE_DATABASE_URL";
    log.event("warn", "database.password-exposed", { option: "--database", do: cure });
  }
  const cluster = await clusterOf(options);
  const builtin = builtinExecutors({
    commands:
      options.allowCommand === undefined
        ? undefined
        : { allow: options.allowCommand, user: options.user },
    http: options.allowHttp === undefined ? undefined : { allow: options.allowHttp },
    loadtest: {
      resultsDirectory: join(options.dataDir, "loadtests"),
      workflows: options.workflows,
      // Without a token every user of the machine could run code as this one.
      bundles: options.bundles && options.open !== true,
      cluster,
      user: options.user,
    },
  });
  return {
    nodeId,
    role: options.role,
    listen: options.listen,
    advertise: options.advertise,
    databaseUrl: options.database,
    dataDirectory: options.dataDir,
    token: options.tokenFile === undefined ? undefined : readTokenFile(options.tokenFile),
    tokenFile: tokenFileOf(options),
    scopedTokens: scopedTokensOf(options),
    clientBundles: options.clientBundles === true,
    tls: tlsOf(options),
    executors: { ...builtin, ...own },
    capabilities: { ...(cluster === undefined ? {} : { cluster: true }), ...options.capability },
    settings,
    log,
    openAudit: () =>
      AuditLog.openFree(join(options.dataDir, "audit"), {
        ...{ node: nodeId, clock, log, background },
        ...auditBoundsOf(options),
      }),
  };
}

/** User that the code of executors and load tests runs as; written to the log. */
async function userOf(
  { clientBundles, executorUser }: StartOptions,
  log: Log,
): Promise<ExecutorUser | null> {
  const { executorRights, rightsText } = await import("../../host/executor-user.ts");
  const { loadtestProgram } = await import("../../queue/executors/loadtest-program.ts");
  const rights = executorRights({ name: executorUser, program: loadtestProgram });
  const { user } = rights;
  // Tasks of clients contain code of others only where that is allowed.
  const level = user === null && clientBundles === true ? "warn" : "info";
  const as = user?.name ?? userInfo().username;
  log.event(level, "queue.job-code", { as, meaning: rightsText(rights) });
  return user;
}

/** Cluster for load tests, as options of `hyperscale submit`. */
async function clusterOf(options: StartOptions): Promise<readonly string[] | undefined> {
  const { gate, manager, clusterDir, clusterName, clusterEnvironment } = options;
  if ((gate ?? manager ?? clusterDir) === undefined) return undefined;
  const dir = clusterDir === undefined ? undefined : resolve(clusterDir);
  const credentials = options.credentials === undefined ? undefined : resolve(options.credentials);
  const names = { cluster: clusterName, environment: clusterEnvironment };
  const given = { gate, manager, dir, credentials };
  // Reported now, not with the first task.
  const { placeOf } = await import("./cluster-place.ts");
  placeOf({ ...given, ...names });
  return Object.entries({ ...given, ...names }).flatMap(([name, value]) =>
    [value ?? []].flat().flatMap((one) => [`--${name}`, one]),
  );
}

function scopedTokensOf(options: StartOptions): NodeOptions["scopedTokens"] {
  const { clientTokenFile, workerTokenFile, operatorTokenFile } = options;
  return {
    ...(clientTokenFile === undefined ? {} : { client: readTokenFile(clientTokenFile) }),
    ...(workerTokenFile === undefined ? {} : { worker: readTokenFile(workerTokenFile) }),
    ...(operatorTokenFile === undefined ? {} : { operator: readTokenFile(operatorTokenFile) }),
  };
}

function tlsOf({ tlsCert, tlsKey, tlsCa }: StartOptions): NodeOptions["tls"] {
  const ca = tlsCa === undefined ? undefined : readFileSync(tlsCa, "utf8");
  if (tlsCert === undefined && tlsKey === undefined) return { ca };
  if (tlsCert === undefined || tlsKey === undefined)
    throw new QueueError("INVALID_PARAMS", "--tls-cert and --tls-key belong together");
  const [cert, key] = [readFileSync(tlsCert, "utf8"), readFileSync(tlsKey, "utf8")];
  return { certificate: { cert, key }, ca };
}

/** File of the shared token for clients, unless one is given or disabled. */
function tokenFileOf(options: StartOptions): string | undefined {
  const loopback = isLoopback(options.listen.host);
  if (options.open === true || options.tokenFile !== undefined || !loopback) return undefined;
  return join(options.dataDir, TOKEN_FILE);
}

async function isolate(
  { executors = "", executorMemory }: StartOptions,
  user: ExecutorUser | null,
) {
  const { isolateExecutors } = await import("../../queue/isolation/isolate.ts");
  return isolateExecutors(
    executors,
    executorMemory === undefined ? { user } : { user, memoryMb: executorMemory },
  );
}

function parseListen(text: string): { host: string; port: number } {
  const match = /^(.*):(\d{1,5})$/.exec(text);
  const port = Number(match?.[2]);
  if (match === null || port > 65_535)
    throw new InvalidArgumentError("write host:port, e.g. 127.0.0.1:7600");
  const host = (match[1] ?? "").replace(/^\[(.*)\]$/, "$1");
  return { host: host === "" ? "127.0.0.1" : host, port };
}

function parseCount(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError("write a whole number");
  return Number(text);
}

function parseTime(text: string): number {
  const parsed = parseDuration(text);
  if (!parsed.ok) throw new InvalidArgumentError(parsed.problem);
  return parsed.ms;
}

function collectCapability(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("write name=value, e.g. gpu=nvidia");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}
