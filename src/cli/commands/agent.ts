/**
 * `hyperscale agent`: a bare member of a cluster in the foreground. Logs are JSON lines on stderr; stdout has one line
 * when it is ready and one per membership event, for tools to read.
 */

import { hostname } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { AuditLog } from "../../audit/audit-log.ts";
import type { AuditBounds } from "../../audit/bounds.ts";
import type { LogFileOptions } from "../../host/control/rotating-file.ts";
import { onSignals, ServiceProcess, startProblem } from "../../host/control/service-process.ts";
import { keepOwnToken } from "../../host/control/token.ts";
import { EXIT_USAGE } from "../../host/exit-codes.ts";
import { nodeClock } from "../../host/node-clock.ts";
import { Agent } from "../../nodes/agent/agent.ts";
import { type AgentConfig, type AgentOptions, readAgentConfig } from "../../nodes/agent/config.ts";
import type { AgentEvent } from "../../nodes/agent/events.ts";
import { AgentServer } from "../../nodes/agent/server.ts";
import { packageVersion } from "../../runner/version.ts";
import { formatAddress } from "../../wire/address.ts";
import { listed } from "../option-values.ts";
import { complain } from "../print.ts";
import { type AuditFlags, auditBoundsOf, withAuditLog } from "./audit-options.ts";
import { type LogFlags, logFileOf, openLogLines, withLogFile } from "./log-options.ts";

/** A stop that takes longer than this is cut short. */
const STOP_MS_MAX = 4_800;

const HELP = `
Examples:
  $ hyperscale keygen > cluster.key
  $ hyperscale agent --name a --bind 127.0.0.1:7946 --secret-file cluster.key --api 127.0.0.1:7947
  $ hyperscale agent --name b --bind 127.0.0.2:7946 --secret-file cluster.key --join 127.0.0.1:7946
  $ hyperscale members --api 127.0.0.1:7947

Three managers that elect a leader: give each --voters m1,m2,m3 and --role manager.
Rotate the key: add the new one as second line of the file everywhere and reload (SIGHUP, or
"hyperscale keys reload"); move it to the first line and reload; delete the old one and reload.
SIGTERM and Ctrl-C leave gracefully within 5 s; a second one ends at once.
`;

/** Flags as commander returns them: lists and switches are absent by default. */
type AgentFlags = Omit<AgentOptions, "join" | "dns" | "voters" | "insecurePlaintext"> &
  Partial<AgentOptions>;

export function registerAgent(program: Command): void {
  withAuditLog(withLogFile(program.command("agent")))
    .description("run a member of a cluster in the foreground")
    .option("--name <name>", "unique name of this member", hostname())
    .option("--bind <host:port>", "where to listen, UDP and TCP", "127.0.0.1:7946")
    .option("--advertise <host:port>", "where others reach us, if it differs from --bind")
    .option("--join <host:port>", "a member to join; repeat or separate by commas", listed)
    .option("--dns <name[:port]>", "a DNS name of members (A, AAAA, or _x._udp SRV)", listed)
    .option("--role <role>", "gate, manager or worker", "worker")
    .option("--datacenter <name>", "where this member is", "dc1")
    .option("--cluster <name>", "members of other clusters are refused", "hyperscale")
    .option("--environment <name>", "members of other environments are refused", "default")
    .option("--profile <name>", "timing: lan, wan, local or dc", "lan")
    .option("--api <host:port>", "serve the control interface here")
    .option("--api-token-file <file>", "bearer token of the interface (api.token in --data-dir)")
    .option("--metrics-token-file <file>", "opens /metrics off the loopback, and nothing else")
    .option("--secret-file <file>", "secrets, one per line: the first seals, all open")
    .option("--insecure-plaintext", "no encryption at all; for development only")
    .option("--data-dir <dir>", "what must survive a restart (.hyperscale/agent-<name>)")
    .option("--voters <names>", "all members that elect the leader of our group", listed)
    .option("--priority <n>", "higher stands for election earlier", Number, 0)
    .option("--tls-cert <file>", "certificate for mutual TLS on streams")
    .option("--tls-key <file>", "its key")
    .option("--tls-ca <file>", "the authority that signs members")
    .option("--no-tls-verify-hostname", "do not compare certificates with host names")
    .option("--log-level <level>", "error, warn, info or debug", "info")
    .addHelpText("after", HELP)
    .action(async (given: AgentFlags & LogFlags & AuditFlags) => {
      const lists = { join: [], dns: [], voters: [], insecurePlaintext: false };
      const read = readAgentConfig({ ...lists, ...given }, process.env);
      if (!read.ok) {
        for (const problem of read.problems) complain(`hyperscale agent: ${problem}`);
        process.exitCode = EXIT_USAGE;
        return;
      }
      await runAgent(read.config, logFileOf(given), auditBoundsOf(given));
    });
}

async function runAgent(
  config: AgentConfig,
  file: LogFileOptions | undefined,
  audited: AuditBounds,
): Promise<void> {
  const { name: node, logLevel } = config;
  const logLines = await openLogLines(file);
  const service = new ServiceProcess({ service: "agent", node, logLevel, logLines });
  onSignals(service);
  try {
    await startAgent(config, service, audited);
  } catch (error) {
    service.failed("agent", startProblem(error, "--bind, --advertise and --api"));
  }
}

async function startAgent(
  config: AgentConfig,
  service: ServiceProcess,
  audited: AuditBounds,
): Promise<void> {
  const { log, background } = service;
  const version = packageVersion();
  let server: AgentServer | null = null;
  const onEvent = (event: AgentEvent): void => {
    service.say(event);
    server?.publish(event);
  };
  const onFatal = (reason: string, error: unknown): void => service.fatal(reason, error);
  const { name: node, dataDir } = config;
  const clock = nodeClock;
  const audit = await AuditLog.open(join(dataDir, "audit"), {
    ...{ node, clock, log, background },
    ...audited,
  });
  const around = { clock, log, audit, background, version, onEvent, onFatal };
  const agent = await Agent.start(config, around);
  if (config.api !== null) {
    const { host, isOwnToken, port, token } = config.api;
    if (isOwnToken) keepOwnToken(dataDir, token, formatAddress(host, port));
    server = await AgentServer.listen(config.api, {
      agent,
      log,
      background,
      onLeave: (requester) => service.stop("asked over the interface", requester),
    }).catch(async (error: unknown) => {
      await agent.stop();
      throw error;
    });
  }
  service.serve({
    stop: async (requester) => {
      await agent.leave(requester);
      await server?.close();
      await audit.close();
      return undefined;
    },
    stopMsMax: STOP_MS_MAX,
    reload: (requester) => agent.reloadKeys(requester),
  });
  announce(config, agent, service);
}

function announce(config: AgentConfig, agent: Agent, service: ServiceProcess): void {
  const { log } = service;
  const { name, address, role, datacenter, profile } = config;
  const { encryption, version } = agent.status();
  if (encryption !== "aes-256-gcm") {
    log.event("warn", "agent.plaintext", {
      encryption,
      meaning: "packets need not be encrypted or authenticated; never use this off a test bench",
    });
  }
  const api = config.api === null ? null : formatAddress(config.api.host, config.api.port);
  const ready = { name, address, role, datacenter, profile, version, pid: process.pid };
  service.say({ event: "ready", ...ready, api, encryption, at: new Date().toISOString() });
  log.event("info", "agent.ready", { ...ready, api, encryption });
}
