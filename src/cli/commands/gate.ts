/** `hyperscale gate`: a gate in the foreground, the preparation of its first start, and its configuration. */

import { join } from "node:path";
import type { Command } from "commander";
import { AuditLog } from "../../audit/audit-log.ts";
import { onSignals, ServiceProcess, startProblem } from "../../host/control/service-process.ts";
import { EXIT_USAGE } from "../../host/exit-codes.ts";
import { nodeClock } from "../../host/node-clock.ts";
import { effectiveSettings } from "../../ledger/settings.ts";
import { checkGateConfig, type GateNodeConfig, readGateConfig } from "../../nodes/gate/config.ts";
import { GateHost } from "../../nodes/gate/gate-host.ts";
import { packageVersion } from "../../runner/version.ts";
import { formatAddress } from "../../wire/address.ts";
import { listed, repeated } from "../option-values.ts";
import { complain } from "../print.ts";
import { type AuditFlags, auditBoundsOf, withAuditLog } from "./audit-options.ts";
import { allowStart } from "./first-start.ts";
import { runCommand, UsageError } from "./ledger-target.ts";
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
  ["found", "before the first start of new gates, once for each of them"],
  ["join", "before the first start of a gate that is new beside others that run"],
] as const;

const HELP = `
Examples:
  $ hyperscale cluster up --gates 3 --datacenters dc1,dc2   everything on this machine, in one command
  $ hyperscale gate init --file g1.json                     writes a configuration to change
  $ hyperscale gate found --config g1.json                  once, before the first start of new gates
  $ hyperscale gate start --config g1.json

Logs are JSON lines on stderr; stdout has one line when the gate serves. SIGTERM lets others lead, waits for
what is under way and ends; a second one ends at once. SIGHUP reads the secrets again.
`;

interface GateFlags extends NodeFlags, LogFlags, AuditFlags {
  readonly bind?: string;
  readonly peer?: readonly string[];
  readonly managers?: readonly string[];
  readonly clientSecretFile?: string;
  readonly codeFrom?: readonly string[];
  readonly report?: readonly string[];
}

export function registerGate(program: Command): void {
  const gate = program
    .command("gate")
    .description("a gate of a cluster: takes jobs, and has them run in datacenters")
    .addHelpText("after", HELP);
  withAuditLog(withLogFile(withGateFlags(gate.command("start"))))
    .description("run a gate in the foreground")
    .action((flags: GateFlags) =>
      runCommand(async () => {
        const config = configOf(flags, "start");
        if (config !== null) await runGate(config, flags);
      }, "gate"),
    );
  for (const [way, description] of FIRST_STARTS)
    withGateFlags(gate.command(way))
      .description(description)
      .action((flags: GateFlags) =>
        runCommand(async () => {
          const config = configOf(flags, way);
          if (config !== null) await allowStart("gate", way, config.ledger);
        }, "gate"),
      );
  gate
    .command("init")
    .description("write a configuration to change")
    .option("--file <file>", "where", "gate.json")
    .action(({ file }: { readonly file: string }) =>
      runCommand(() => initNode("gate", file), "gate init"),
    );
}

function withGateFlags(command: Command): Command {
  return withNodeFlags(command)
    .option("--bind <host:port>", "where gates and clients call")
    .option("--peer <name=host:port>", "another gate; repeat or separate by commas", listed)
    .option(
      "--managers <dc:name=host:port,...>",
      "a datacenter with its managers; repeat for others",
      repeated,
    )
    .option("--client-secret-file <file>", "secrets that clients may greet with")
    .option("--code-from <who>", "whose code workers run: clients; nobody's without it", listed)
    .option("--report <name=target>", "send the figures of all its jobs there; repeat", repeated);
}

function configOf(flags: GateFlags, command: string): GateNodeConfig | null {
  const {
    bind,
    clientSecretFile,
    codeFrom,
    config: file,
    managers = [],
    peer = [],
    report = [],
  } = flags;
  const { datacenter: _, ...value } = configValue(flags);
  const read =
    file !== undefined
      ? readGateConfig(file)
      : checkGateConfig(FLAGS_PLACE, {
          ...value,
          ...(bind === undefined ? {} : { bind }),
          ...(clientSecretFile === undefined ? {} : { clientSecretFile }),
          ...(codeFrom === undefined ? {} : { codeFrom }),
          reports: report,
          peers: namedAddresses("--peer", peer),
          datacenters: managers.map(datacenterOf),
        });
  if (read.ok) return read.config;
  for (const problem of read.problems)
    complain(`hyperscale gate ${command}: ${flagProblem(problem)}`);
  process.exitCode = EXIT_USAGE;
  return null;
}

function datacenterOf(text: string): object {
  const [, name, rest] = /^([^:=]+):(.+)$/.exec(text) ?? [];
  if (name === undefined || rest === undefined)
    throw new UsageError(`--managers ${text}: write DATACENTER:NAME=HOST:PORT,NAME=HOST:PORT`);
  return { name, managers: namedAddresses("--managers", listed(rest)) };
}

async function runGate(config: GateNodeConfig, flags: GateFlags): Promise<void> {
  const { dataDir, logLevel, name: node } = config.ledger;
  const logLines = await openLogLines(logFileOf(flags));
  const service = new ServiceProcess({ service: "gate", node, logLevel, logLines });
  onSignals(service);
  const { background, log } = service;
  const clock = nodeClock;
  try {
    const host = await GateHost.start(config, {
      ...{ clock, log, background, version: packageVersion() },
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
    service.failed("gate start", startProblem(error, "bind and api of its configuration"));
  }
}

function announce(config: GateNodeConfig, host: GateHost, service: ServiceProcess): void {
  const { api, bind, cluster, environment, name } = config.ledger;
  const { encryption } = host;
  const { log } = service;
  if (encryption !== "aes-256-gcm") log.event("warn", "gate.plaintext", { encryption });
  const ready = {
    ...{ name, role: "gate", cluster, environment, encryption },
    ...{ version: packageVersion(), pid: process.pid },
    datacenters: config.datacenters.map((one) => one.name).join(" "),
    address: formatAddress(bind.host, bind.port),
    api: formatAddress(api.host, api.port),
  };
  service.say({ event: "ready", ...ready, at: new Date().toISOString() });
  log.event("info", "gate.ready", ready);
  log.event("info", "gate.settings", effectiveSettings("gate", config.settings));
}
