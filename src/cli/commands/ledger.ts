/**
 * `hyperscale ledger`: a node of the job ledger in the foreground, what prepares one, and the commands
 * that talk to a running one.
 */

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { JsonLog } from "../../adapters/json-log.ts";
import { LineWriter } from "../../adapters/line-writer.ts";
import { nodeClock } from "../../adapters/node-clock.ts";
import { type LedgerConfig, readLedgerConfig } from "../../ledger/config.ts";
import { allowFirstStart, type FirstStart } from "../../ledger/founding.ts";
import { LedgerHost } from "../../ledger/host.ts";
import { formatAddress } from "../../wire/address.ts";
import { EXIT_FAILURE, EXIT_USAGE } from "../exit-codes.ts";
import { packageVersion } from "../version.ts";
import { registerLedgerClient } from "./ledger-client.ts";

/** A defect or a failed disk, as in sysexits: the supervisor restarts us, and the log says why. */
const EXIT_DEFECT = 70;
const STOP_MS_MAX = 20_000;
const LAST_WORDS_MS_MAX = 300;
const NODES_MAX = 7;

const HELP = `
A ledger of three nodes on this machine, in two minutes:
  $ hyperscale ledger init --nodes 3 --dir demo
  $ hyperscale ledger start --config demo/n1.json     in three terminals, n1 to n3
  $ hyperscale ledger put --api 127.0.0.1:7201 --spec '{"vus":10}' --key me:1:0123456789abcdef
  $ hyperscale ledger get JOB --api 127.0.0.1:7202 --level strong
  $ hyperscale ledger status --api 127.0.0.1:7203

Guide: docs/operating/ledger.md
`;

const START_HELP = `
Logs are JSON lines on stderr. On stdout there is one line when the node serves, {"event":"ready",…},
then one per event: peers that come and go, groups it leads, alarms.
SIGTERM and Ctrl-C let work under way finish, write a checkpoint and end with 0; a second one ends at
once. SIGHUP reads the secrets again. Exit 70: the disk failed or an invariant broke; start again and
the node recovers what is durable.
`;

export function registerLedger(program: Command): void {
  const ledger = program
    .command("ledger")
    .description("the replicated job ledger: run a node, submit and read jobs")
    .addHelpText("after", HELP);
  ledger
    .command("start")
    .description("run a node of the ledger in the foreground")
    .requiredOption("--config <file>", "the node's configuration, JSON")
    .addHelpText("after", START_HELP)
    .action(async ({ config: file }: { readonly config: string }) => {
      const config = readConfig(file, "start");
      if (config !== null) await runNode(config);
    });
  firstStartCommand(
    ledger.command("found"),
    "found",
    "before the first start of a new ledger, once on every node: its data directory is empty",
  );
  firstStartCommand(
    ledger.command("join"),
    "join",
    "before the first start of a node that is new in a running ledger; see also replace",
  );
  ledger
    .command("init")
    .description("write configurations and a secret for a new ledger on this machine")
    .requiredOption("--dir <dir>", "where to write them; must not hold a ledger yet")
    .option("--nodes <n>", "how many nodes", Number, 3)
    .option("--host <host>", "the address they listen on", "127.0.0.1")
    .option("--port <n>", "of the first node's peers; its interface is 100 higher", Number, 7_101)
    .option("--lease-ms <n>", "how long a failed primary is waited for", Number, 10_000)
    .action(initLedger);
  registerLedgerClient(ledger);
}

function firstStartCommand(command: Command, way: FirstStart, description: string): void {
  command
    .description(description)
    .requiredOption("--config <file>", "the node's configuration, JSON")
    .action(async ({ config: file }: { readonly config: string }) => {
      const config = readConfig(file, way);
      if (config === null) return;
      const problem = await allowFirstStart(config.dataDir, way);
      if (problem === null) {
        const what = way === "found" ? "found its part of a new ledger" : "join a ledger";
        process.stdout.write(`${config.name} may ${what} with ${config.dataDir}\n`);
        return;
      }
      process.stderr.write(`hyperscale ledger ${way}: ${problem}\n`);
      process.exitCode = EXIT_FAILURE;
    });
}

interface InitOptions {
  readonly dir: string;
  readonly nodes: number;
  readonly host: string;
  readonly port: number;
  readonly leaseMs: number;
}

const REGIONS = ["use1", "euw1", "apse", "usw2", "euc1", "sae1", "apne"];

async function initLedger({ dir, nodes, host, port, leaseMs }: InitOptions): Promise<void> {
  const refuse = (problem: string): void => {
    process.stderr.write(`hyperscale ledger init: ${problem}\n`);
    process.exitCode = EXIT_USAGE;
  };
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > NODES_MAX) {
    refuse(`--nodes: a whole number from 1 to ${NODES_MAX}`);
    return;
  }
  if (!Number.isInteger(port) || port < 1 || port + 100 + nodes > 65_535) {
    refuse("--port: a port that leaves room for the nodes and their interfaces");
    return;
  }
  const secret = join(dir, "cluster.key");
  if (existsSync(secret)) {
    refuse(`${secret} exists: ${dir} holds a ledger already; choose another --dir`);
    return;
  }
  const sites = Array.from({ length: nodes }, (_, at) => ({
    name: `n${at + 1}`,
    region: REGIONS[at] ?? "use1",
    address: formatAddress(host, port + at),
    api: formatAddress(host, port + 100 + at),
  }));
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await writeFile(secret, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600, flag: "wx" });
  for (const { name, region, address, api } of sites) {
    const peers = sites
      .filter((site) => site.name !== name)
      .map((site) => ({ name: site.name, region: site.region, address: site.address }));
    const config = {
      ...{ name, region, cluster: "laptop", bind: address, api, peers },
      ...{ dataDir: name, secretFile: "cluster.key", leaseMs, idempotency: "development" },
    };
    await writeFile(join(dir, `${name}.json`), `${JSON.stringify(config, null, 2)}\n`);
    const problem = await allowFirstStart(join(dir, name), "found");
    if (problem !== null) throw new Error(problem);
  }
  const lines = sites.map(
    ({ name }) => `  hyperscale ledger start --config ${join(dir, name)}.json`,
  );
  const first = sites[0]?.api ?? "";
  process.stdout.write(
    `Wrote ${sites.length} nodes to ${dir}. Start each in a terminal of its own:\n${lines.join("\n")}\n\n` +
      `Then:\n  hyperscale ledger status --api ${first}\n` +
      `  hyperscale ledger put --api ${first} --spec '{"vus":10}'\n`,
  );
}

function readConfig(file: string, command: string): LedgerConfig | null {
  const read = readLedgerConfig(file);
  if (read.ok) return read.config;
  for (const problem of read.problems) {
    process.stderr.write(`hyperscale ledger ${command}: ${problem}\n`);
  }
  process.exitCode = EXIT_USAGE;
  return null;
}

async function runNode(config: LedgerConfig): Promise<void> {
  const out = new LineWriter(1);
  const errors = new LineWriter(2);
  const log = new JsonLog(config.logLevel, { node: config.name }, errors);
  const end = (code: number): void => {
    Promise.all([out.drained(LAST_WORDS_MS_MAX), errors.drained(LAST_WORDS_MS_MAX)]).then(
      () => process.exit(code),
      () => process.exit(code),
    );
  };
  const version = packageVersion();
  const say = (event: object): void => {
    out.write(`${JSON.stringify({ ...event, at: new Date().toISOString() })}\n`);
  };
  const onFatal = (reason: string, error: unknown): void => {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
    log.event("error", "ledger.fatal", { reason, detail });
    end(EXIT_DEFECT);
  };
  process.on("uncaughtException", (error) => onFatal("an error nobody expected", error));
  const handlers = { clock: nodeClock, log, version, onEvent: say, onFatal };
  const host = await LedgerHost.start(config, handlers).catch((error: unknown) => {
    process.stderr.write(`hyperscale ledger start: ${explain(error, config)}\n`);
    end(EXIT_FAILURE);
    return null;
  });
  if (host === null) return;
  const stop = stopper(host, log, end);
  process.on("SIGTERM", () => stop("SIGTERM"));
  process.on("SIGINT", () => stop("SIGINT"));
  process.on("SIGHUP", () => reloadKeys(host, log));
  const { name, region, cluster, environment } = config;
  const { encryption } = host;
  if (encryption !== "aes-256-gcm") log.event("warn", "ledger.plaintext", { encryption });
  const ready = {
    ...{ name, region, cluster, environment, encryption, version, pid: process.pid },
    bind: formatAddress(config.bind.host, config.bind.port),
    api: formatAddress(config.api.host, config.api.port),
  };
  say({ event: "ready", ...ready });
  log.event("info", "ledger.ready", ready);
}

/** The first call ends in order, the second at once. */
function stopper(
  host: LedgerHost,
  log: JsonLog,
  end: (code: number) => void,
): (why: string) => void {
  let stopping = false;
  return (why) => {
    if (stopping) process.exit(130);
    stopping = true;
    log.event("info", "ledger.stopping", { why });
    setTimeout(() => process.exit(1), STOP_MS_MAX).unref();
    host.stop().then(
      () => {
        log.event("info", "ledger.stopped", {});
        end(0);
      },
      (error: unknown) => {
        log.event("error", "ledger.stopFailed", { problem: String(error) });
        end(1);
      },
    );
  };
}

function reloadKeys(host: LedgerHost, log: JsonLog): void {
  try {
    host.reloadKeys();
    log.event("info", "keys.reloaded", {});
  } catch (error) {
    // The old ring stays: a typing mistake in the file must not cut a node off.
    const problem = error instanceof Error ? error.message : String(error);
    log.event("error", "keys.notReloaded", { problem });
  }
}

/** Why it did not start, and what to do about it. */
function explain(error: unknown, { file }: LedgerConfig): string {
  if (!(error instanceof Error)) return String(error);
  const { code, address, port } = error as NodeJS.ErrnoException & {
    address?: string;
    port?: number;
  };
  switch (code) {
    case "EADDRINUSE":
      return `${address}:${port} is taken: is this node running already? See bind and api in ${file}`;
    case "EADDRNOTAVAIL":
      return `${address}:${port} is not an address of this machine; see bind and api in ${file}`;
    case "EACCES":
    case "EROFS":
      return `${error.message}; no right to use it`;
    default:
      return error.message;
  }
}
