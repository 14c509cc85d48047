/** `hyperscale worker`: executor cores for the jobs of a datacenter, in the foreground. */

import { userInfo } from "node:os";
import type { Command } from "commander";
import { onSignals, ServiceProcess, startProblem } from "../../host/control/service-process.ts";
import { rightsText } from "../../host/executor-user.ts";
import { EXIT_USAGE } from "../../host/exit-codes.ts";
import { nodeClock } from "../../host/node-clock.ts";
import { effectiveSettings } from "../../ledger/settings.ts";
import { serveWorker } from "../../nodes/worker/api.ts";
import {
  checkWorkerConfig,
  readWorkerConfig,
  type WorkerNodeConfig,
} from "../../nodes/worker/config.ts";
import { WorkerHost } from "../../nodes/worker/worker-host.ts";
import { physicalCores } from "../../runner/machine.ts";
import { packageVersion } from "../../runner/version.ts";
import { formatAddress } from "../../wire/address.ts";
import { listed } from "../option-values.ts";
import { complain } from "../print.ts";
import { runCommand } from "./ledger-target.ts";
import { type LogFlags, logFileOf, openLogLines, withLogFile } from "./log-options.ts";
import { initNode } from "./node-config.ts";
import {
  configValue,
  FLAGS_PLACE,
  flagProblem,
  type NodeFlags,
  namedAddresses,
  withNodeFlags,
} from "./node-flags.ts";

/** Extra time beyond that of stopping jobs, in which their load is cut short and reported. */
const STOP_SLACK_MS = 10_000;

const HELP = `
Examples:
  $ hyperscale worker init --file w1.json               writes a configuration to change
  $ hyperscale worker start --config w1.json
  $ hyperscale worker start --name w1 --join m1=10.0.0.1:7700 --cores 8 --secret-file cluster.key

Started as root, a worker runs the code of jobs as user nobody (executorUser), who cannot read its keys. Started
as anybody else it runs that code with its own rights: use a user that may do no harm. Logs are JSON lines on
stderr; stdout has one line when a manager has taken it in. SIGTERM takes no more cores, waits for the jobs that
run here (setting drainDeadline), hands what is left of them to other workers and ends; a second one ends at once.
`;

interface WorkerFlags extends NodeFlags, LogFlags {
  readonly join?: readonly string[];
  readonly cores?: number;
}

export function registerWorker(program: Command): void {
  const worker = program
    .command("worker")
    .description("a worker of a datacenter: runs the load of jobs in executor cores")
    .addHelpText("after", HELP);
  withLogFile(withNodeFlags(worker.command("start")))
    .description("run a worker in the foreground")
    .option(
      "--join <name=host:port>",
      "a manager; repeat or separate by commas, all of them",
      listed,
    )
    .option("--cores <n>", "CPU cores that jobs may use", Number)
    .action((flags: WorkerFlags) =>
      runCommand(async () => {
        const config = configOf(flags);
        if (config !== null) await runWorker(config, flags);
      }, "worker"),
    );
  worker
    .command("init")
    .description("write a configuration to change, with comments")
    .option("--file <file>", "where", "worker.json")
    .action(({ file }: { readonly file: string }) =>
      runCommand(() => initNode("worker", file), "worker init"),
    );
}

function configOf(flags: WorkerFlags): WorkerNodeConfig | null {
  const { config: file, cores, join = [] } = flags;
  const read =
    file !== undefined
      ? readWorkerConfig(file)
      : checkWorkerConfig(FLAGS_PLACE, {
          ...configValue(flags),
          managers: namedAddresses("--join", join),
          cores: cores ?? physicalCores(),
        });
  if (read.ok) return read.config;
  for (const problem of read.problems) complain(`hyperscale worker start: ${flagProblem(problem)}`);
  process.exitCode = EXIT_USAGE;
  return null;
}

async function runWorker(config: WorkerNodeConfig, flags: WorkerFlags): Promise<void> {
  const { logLevel, name: node, settings } = config;
  const logLines = await openLogLines(logFileOf(flags));
  const service = new ServiceProcess({ service: "worker", node, logLevel, logLines });
  onSignals(service);
  const { background, log } = service;
  try {
    const host = await WorkerHost.start(config, {
      ...{ clock: nodeClock, log, background, version: packageVersion() },
      onFatal: (reason, error) => service.fatal(reason, error),
    });
    const api = await serveWorker(host, { log, background });
    service.serve({
      stop: async () => {
        await host.stop();
        await api?.close();
        return undefined;
      },
      stopMsMax: settings.drainDeadline + STOP_SLACK_MS,
    });
    announce(config, host, service);
  } catch (error) {
    service.failed("worker start", startProblem(error, "api of its configuration"));
  }
}

function announce(config: WorkerNodeConfig, host: WorkerHost, service: ServiceProcess): void {
  const { api, cluster, cores, datacenter, environment, name } = config;
  const { encryption } = host;
  const { incarnation } = host.status();
  if (encryption !== "aes-256-gcm") service.log.event("warn", "worker.plaintext", { encryption });
  const ready = {
    ...{ name, role: "worker", datacenter, cluster, environment, encryption, cores, incarnation },
    ...{ version: packageVersion(), pid: process.pid },
    api: api === null ? null : formatAddress(api.host, api.port),
  };
  service.say({ event: "ready", ...ready, at: new Date().toISOString() });
  service.log.event("info", "worker.ready", { ...ready, runsAs: userInfo().username });
  const { user } = host.rights;
  const rights = { as: user?.name ?? userInfo().username, meaning: rightsText(host.rights) };
  service.log.event(user === null ? "warn" : "info", "worker.job-code", rights);
  service.log.event("info", "worker.settings", effectiveSettings("worker", config.settings));
}
