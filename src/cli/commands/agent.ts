/**
 * `hyperscale agent`: a bare member of a cluster in the foreground. Logs are JSON lines on stderr; stdout
 * has one line when it is ready and one per membership event, for tools to read.
 */

import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import type { Command } from "commander";
import { errorText } from "../../core/base/error-text.ts";
import { JsonLog } from "../../host/control/json-log.ts";
import { LineWriter } from "../../host/control/line-writer.ts";
import { nodeClock } from "../../host/node-clock.ts";
import { Agent } from "../../tiers/agent/agent.ts";
import { type AgentConfig, type AgentOptions, readAgentConfig } from "../../tiers/agent/config.ts";
import { Discovery } from "../../tiers/agent/discovery.ts";
import type { AgentEvent } from "../../tiers/agent/events.ts";
import { AgentServer } from "../../tiers/agent/server.ts";
import { formatAddress } from "../../wire/address.ts";
import { listed } from "../option-values.ts";

/** A defect, as in sysexits: the supervisor restarts us, and the log says why. */
const EXIT_DEFECT = 70;
/** A stop that takes longer than this is cut short. */
const STOP_MS_MAX = 4_800;
/** How long the last lines may wait for their reader. */
const LAST_WORDS_MS_MAX = 300;

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

/** What commander gives: lists and switches are absent when they were not used. */
type AgentFlags = Omit<AgentOptions, "join" | "dns" | "voters" | "insecurePlaintext"> &
  Partial<AgentOptions>;

export function registerAgent(program: Command): void {
  program
    .command("agent")
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
    .option("--api-token-file <file>", "bearer token of the interface; needed off the loopback")
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
    .action(async (given: AgentFlags) => {
      const lists = { join: [], dns: [], voters: [], insecurePlaintext: false };
      const read = readAgentConfig({ ...lists, ...given }, process.env);
      if (!read.ok) {
        for (const problem of read.problems) process.stderr.write(`hyperscale agent: ${problem}\n`);
        process.exitCode = 2;
        return;
      }
      await runAgent(read.config).catch((error: unknown) => {
        process.stderr.write(`hyperscale agent: ${explain(error)}\n`);
        process.exitCode = 1;
      });
    });
}

async function runAgent(config: AgentConfig): Promise<void> {
  const out = new LineWriter(1);
  const errors = new LineWriter(2);
  const log = new JsonLog(config.logLevel, { node: config.name }, errors);
  /** Ends the process once what was said has been taken, or its reader had its chance. */
  const end = (code: number): void => {
    Promise.all([out.drained(LAST_WORDS_MS_MAX), errors.drained(LAST_WORDS_MS_MAX)]).then(
      () => process.exit(code),
      () => process.exit(code),
    );
  };
  const version = packageVersion();
  let server: AgentServer | null = null;
  let discovery: Discovery | null = null;
  const onEvent = (event: AgentEvent): void => {
    out.write(`${JSON.stringify(event)}\n`);
    server?.publish(event);
    discovery?.onMembersChanged();
  };
  const onFatal = (reason: string, error: unknown): void => {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
    log.event("error", "agent.fatal", { reason, detail });
    end(EXIT_DEFECT);
  };
  const agent = await Agent.start(config, { clock: nodeClock, log, version, onEvent, onFatal });
  discovery = await Discovery.open({ agent, config, log, clock: nodeClock });
  const finder = discovery;
  const stop = stopper(agent, finder, () => server, { log, end });
  if (config.api !== null) {
    server = await AgentServer.listen(config.api, {
      agent,
      log,
      onLeave: () => stop("asked over the interface"),
      resolve: (addresses) => finder.add(addresses),
    }).catch(async (error: unknown) => {
      await finder.stop();
      await agent.stop();
      throw error;
    });
  }
  process.on("SIGTERM", () => stop("SIGTERM"));
  process.on("SIGINT", () => stop("SIGINT"));
  process.on("SIGHUP", () => reloadKeys(agent, log));
  const { name, address, role, datacenter, profile } = config;
  const ready = { name, address, role, datacenter, profile, version, pid: process.pid };
  const { encryption } = agent.status();
  if (encryption !== "aes-256-gcm") {
    log.event("warn", "agent.plaintext", {
      encryption,
      meaning: "packets need not be encrypted or authenticated; never use this off a test bench",
    });
  }
  const api = config.api === null ? null : formatAddress(config.api.host, config.api.port);
  const at = new Date().toISOString();
  out.write(`${JSON.stringify({ event: "ready", ...ready, api, encryption, at })}\n`);
  log.event("info", "agent.ready", { ...ready, api, encryption });
  finder.start();
}

/** The first call leaves gracefully, the second ends at once. */
function stopper(
  agent: Agent,
  discovery: Discovery,
  server: () => AgentServer | null,
  { log, end }: { readonly log: JsonLog; readonly end: (code: number) => void },
): (why: string) => void {
  let stopping = false;
  return (why) => {
    if (stopping) process.exit(130);
    stopping = true;
    log.event("info", "agent.leaving", { why });
    setTimeout(() => process.exit(1), STOP_MS_MAX).unref();
    discovery
      .stop()
      .then(() => agent.leave())
      .then(() => server()?.close())
      .then(
        () => {
          log.event("info", "agent.left", {});
          end(0);
        },
        (error: unknown) => {
          log.event("error", "agent.stopFailed", { problem: String(error) });
          end(1);
        },
      );
  };
}

/** Why it did not start, and what to do about it. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, address, port } = error as NodeJS.ErrnoException & {
    address?: string;
    port?: number;
  };
  const where = `${address}:${port}`;
  switch (code) {
    case "EADDRINUSE":
      return `${where} is taken: another agent runs there; choose another --bind or --api`;
    case "EADDRNOTAVAIL":
      return `${where} is not an address of this machine; see --bind and --advertise`;
    case "EACCES":
      return `${error.message}; no right to use it`;
    default:
      return error.message;
  }
}

function reloadKeys(agent: Agent, log: JsonLog): void {
  try {
    agent.reloadKeys();
  } catch (error) {
    // The old ring stays: a typing mistake in the file must not cut a member off.
    const problem = errorText(error);
    log.event("error", "keys.notReloaded", { problem });
  }
}

function packageVersion(): string {
  const text = readFileSync(new URL("../../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
