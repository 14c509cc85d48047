/**
 * `hyperscale ledger`: a node of the job ledger in the foreground, its preparation, and the commands that talk to a
 * running one.
 */

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";
import type { Command } from "commander";
import { onSignals } from "../../host/control/service-process.ts";
import { EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_USAGE } from "../../host/exit-codes.ts";
import { makeFolder } from "../../host/folders.ts";
import { type LedgerConfig, readLedgerConfig } from "../../ledger/config.ts";
import { allowFirstStart, type FirstStart } from "../../ledger/founding.ts";
import { formatAddress } from "../../wire/address.ts";
import { complain } from "../print.ts";
import { type AuditFlags, auditBoundsOf, withAuditLog } from "./audit-options.ts";
import { registerLedgerClient } from "./ledger-client.ts";
import type { NodeOrder, NodeStart } from "./ledger-node.ts";
import { registerLedgerWatch } from "./ledger-watch.ts";
import { type LogFlags, logFileOf, withLogFile } from "./log-options.ts";

/** Half of the young generation: see ledger-node.ts. */
const NURSERY_MB = 64;
const NODES_MAX = 7;

const HELP = `
A ledger of three nodes on this machine, in two minutes:
  $ hyperscale ledger init --nodes 3 --dir demo
  $ hyperscale ledger start --config demo/n1.json     in three terminals, n1 to n3
  $ hyperscale ledger put --api 127.0.0.1:7201 --spec '{"vus":10}' --key me:1:0123456789abcdef
  $ hyperscale ledger get JOB --api 127.0.0.1:7202 --level strong
  $ hyperscale ledger status --api 127.0.0.1:7203

Guide: docs/operate/ledger.md
`;

const START_HELP = `
Logs are JSON lines on stderr. On stdout there is one line when the node serves, {"event":"ready",…},
then one per event: peers that come and go, groups it leads, alarms.
SIGTERM and Ctrl-C let other nodes lead and work under way finish, write a checkpoint and end with 0; the
last line, {"event":"stopped",…}, says how many groups nobody else leads. A second one ends at once.
SIGHUP reads the secrets again. Exit 70: the disk failed or an invariant broke; start again and the node
recovers what is durable.
`;

export function registerLedger(program: Command): void {
  const ledger = program
    .command("ledger")
    .description("the replicated job ledger: run a node, submit and read jobs")
    .addHelpText("after", HELP);
  withAuditLog(withLogFile(ledger.command("start")))
    .description("run a node of the ledger in the foreground")
    .requiredOption("--config <file>", "the node's configuration, JSON")
    .addHelpText("after", START_HELP)
    .action((options: LogFlags & AuditFlags & { readonly config: string }) => {
      const { config } = options;
      const start = { config, log: logFileOf(options), audit: auditBoundsOf(options) };
      if (readConfig(config, "start") !== null) runNode(start);
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
  registerLedgerWatch(ledger);
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
      complain(`hyperscale ledger ${way}: ${problem}`);
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
    complain(`hyperscale ledger init: ${problem}`);
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
  await makeFolder(dir, { mode: 0o700 });
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
    complain(`hyperscale ledger ${command}: ${problem}`);
  }
  process.exitCode = EXIT_USAGE;
  return null;
}

/** Exits as the node exits. */
function runNode(start: NodeStart): void {
  // Applies to the next thread; this one has its nursery already.
  setFlagsFromString(`--min-semi-space-size=${NURSERY_MB / 2}`);
  setFlagsFromString(`--max-semi-space-size=${NURSERY_MB}`);
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const node = new Worker(new URL(`./ledger-node.${extension}`, import.meta.url), {
    workerData: start,
  });
  node.once("error", (error) => {
    complain(`hyperscale ledger start: ${error.stack ?? error.message}`);
  });
  node.once("exit", (code) => process.exit(code));
  const send = (order: NodeOrder): void => node.postMessage(order);
  let stopping = false;
  onSignals({
    stop: (why) => {
      if (stopping) process.exit(EXIT_INTERRUPTED);
      stopping = true;
      send({ kind: "stop", why });
    },
    reload: () => send({ kind: "reload" }),
  });
}
