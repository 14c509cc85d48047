/** `hyperscale manager`: a manager of a datacenter in the foreground, and the preparation of its first start. */

import os from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { AuditLog } from "../../audit/audit-log.ts";
import { onSignals, ServiceProcess, startProblem } from "../../host/control/service-process.ts";
import { EXIT_USAGE } from "../../host/exit-codes.ts";
import { nodeClock } from "../../host/node-clock.ts";
import { effectiveSettings } from "../../ledger/settings.ts";
import {
  checkManagerConfig,
  type ManagerNodeConfig,
  readManagerConfig,
} from "../../nodes/manager/config.ts";
import { ManagerHost } from "../../nodes/manager/manager-host.ts";
import { cpuModel } from "../../runner/machine.ts";
import { packageVersion } from "../../runner/version.ts";
import { formatAddress } from "../../wire/address.ts";
import { listed } from "../option-values.ts";
import { complain } from "../print.ts";
import { type AuditFlags, auditBoundsOf, withAuditLog } from "./audit-options.ts";
import { allowStart } from "./first-start.ts";
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

const FIRST_STARTS = [
  ["found", "before the first start of a new datacenter, once for every manager"],
  ["join", "before the first start of a manager that is new in a datacenter that runs"],
] as const;

const HELP = `
Examples:
  $ hyperscale cluster up --managers 3 --workers 2      everything on this machine, in one command
  $ hyperscale manager init --file m1.json              writes a configuration to change
  $ hyperscale manager found --config m1.json           once, before the first start of a new datacenter
  $ hyperscale manager start --config m1.json

Logs are JSON lines on stderr; stdout has one line when the manager serves. SIGTERM lets others lead, waits for
what is under way and ends; a second one ends at once. SIGHUP reads the secrets again.
`;

interface ManagerFlags extends NodeFlags, LogFlags, AuditFlags {
  readonly bind?: string;
  readonly peer?: readonly string[];
  readonly clientSecretFile?: string;
  readonly codeFrom?: readonly string[];
}

export function registerManager(program: Command): void {
  const manager = program
    .command("manager")
    .description("a manager of a datacenter: places jobs on workers, and merges what they measure")
    .addHelpText("after", HELP);
  withAuditLog(withLogFile(withManagerFlags(manager.command("start"))))
    .description("run a manager in the foreground")
    .action((flags: ManagerFlags) =>
      runCommand(async () => {
        const config = configOf(flags, "start");
        if (config !== null) await runManager(config, flags);
      }, "manager"),
    );
  for (const [way, description] of FIRST_STARTS)
    withManagerFlags(manager.command(way))
      .description(description)
      .action((flags: ManagerFlags) =>
        runCommand(async () => {
          const config = configOf(flags, way);
          if (config !== null) await allowStart("manager", way, config.ledger);
        }, "manager"),
      );
  manager
    .command("init")
    .description("write a configuration to change, with comments")
    .option("--file <file>", "where", "manager.json")
    .action(({ file }: { readonly file: string }) =>
      runCommand(() => initNode("manager", file), "manager init"),
    );
}

function withManagerFlags(command: Command): Command {
  return withNodeFlags(command)
    .option("--bind <host:port>", "where managers, workers and clients call")
    .option("--peer <name=host:port>", "another manager; repeat or separate by commas", listed)
    .option("--client-secret-file <file>", "secrets that clients may greet with")
    .option("--code-from <who>", "whose code workers run: clients; nobody's without it", listed);
}

function configOf(flags: ManagerFlags, command: string): ManagerNodeConfig | null {
  const { bind, clientSecretFile, codeFrom, config: file, peer = [] } = flags;
  const read =
    file !== undefined
      ? readManagerConfig(file)
      : checkManagerConfig(FLAGS_PLACE, {
          ...configValue(flags),
          ...(bind === undefined ? {} : { bind }),
          ...(clientSecretFile === undefined ? {} : { clientSecretFile }),
          ...(codeFrom === undefined ? {} : { codeFrom }),
          peers: namedAddresses("--peer", peer),
        });
  if (read.ok) return read.config;
  for (const problem of read.problems)
    complain(`hyperscale manager ${command}: ${flagProblem(problem)}`);
  process.exitCode = EXIT_USAGE;
  return null;
}

async function runManager(config: ManagerNodeConfig, flags: ManagerFlags): Promise<void> {
  const { dataDir, logLevel, name: node } = config.ledger;
  const logLines = await openLogLines(logFileOf(flags));
  const service = new ServiceProcess({ service: "manager", node, logLevel, logLines });
  onSignals(service);
  const { background, log } = service;
  const clock = nodeClock;
  try {
    const host = await ManagerHost.start(config, {
      ...{ clock, log, background, version: packageVersion() },
      machine: {
        node: process.version,
        platform: `${os.type()} ${os.release()} ${os.arch()}`,
        cpuModel: cpuModel(),
      },
      openAudit: () =>
        AuditLog.open(join(dataDir, "audit"), {
          ...{ node, clock, log, background },
          ...auditBoundsOf(flags),
        }),
      onFatal: (reason, error) => service.fatal(reason, error),
    });
    service.serve({
      stop: async (requester) => {
        await host.stop(requester);
        return undefined;
      },
      stopMsMax: config.settings.stopDeadline,
      reload: (requester) => host.reloadKeys(requester),
    });
    announce(config, host, service);
  } catch (error) {
    service.failed("manager start", startProblem(error, "bind and api of its configuration"));
  }
}

function announce(config: ManagerNodeConfig, host: ManagerHost, service: ServiceProcess): void {
  const { api, bind, cluster, environment, name } = config.ledger;
  const { encryption } = host;
  const { log } = service;
  if (encryption !== "aes-256-gcm") log.event("warn", "manager.plaintext", { encryption });
  const ready = {
    ...{ name, role: "manager", datacenter: config.datacenter, cluster, environment, encryption },
    ...{ version: packageVersion(), pid: process.pid },
    address: formatAddress(bind.host, bind.port),
    api: formatAddress(api.host, api.port),
  };
  service.say({ event: "ready", ...ready, at: new Date().toISOString() });
  log.event("info", "manager.ready", ready);
  log.event("info", "manager.settings", effectiveSettings("manager", config.settings));
}
