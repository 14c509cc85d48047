/**
 * The node in a thread of its own. V8 sizes a thread's nursery when it begins, by default at most 16 MB; a busy node
 * allocates a kilobyte of short-lived values per commit, and with 64 MB fewer of them are still alive and copied when
 * it is full (82 instead of 92 us of CPU per commit over three nodes, in turns on one machine). Signals stay with the
 * process.
 */

import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { AuditLog } from "../../audit/audit-log.ts";
import type { AuditBounds } from "../../audit/bounds.ts";
import type { LineWriter } from "../../host/control/line-writer.ts";
import type { LogFileOptions } from "../../host/control/rotating-file.ts";
import { ServiceProcess, startProblem } from "../../host/control/service-process.ts";
import { EXIT_USAGE } from "../../host/exit-codes.ts";
import { nodeClock } from "../../host/node-clock.ts";
import { type LedgerConfig, readLedgerConfig } from "../../ledger/config.ts";
import { LedgerHost } from "../../ledger/host.ts";
import { RunError } from "../../runner/errors.ts";
import { packageVersion } from "../../runner/version.ts";
import { formatAddress } from "../../wire/address.ts";
import { complain } from "../print.ts";
import { openLogLines } from "./log-options.ts";

const STOP_MS_MAX = 30_000;

/** Commands of the process to its node. */
export type NodeOrder =
  | { readonly kind: "stop"; readonly why: string }
  | { readonly kind: "reload" };

/** Start parameters of the node. */
export interface NodeStart {
  readonly config: string;
  readonly log: LogFileOptions | undefined;
  readonly audit: AuditBounds;
}

const port = parentPort;
if (port !== null) await begin(workerData as NodeStart);

/** The process has already validated the configuration. */
async function begin({ config, log, audit }: NodeStart): Promise<void> {
  const read = readLedgerConfig(config);
  if (!read.ok) return;
  try {
    await runNode(read.config, await openLogLines(log), audit);
  } catch (error) {
    if (!(error instanceof RunError)) throw error;
    complain(`hyperscale ledger start: ${error.message}`);
    process.exitCode = EXIT_USAGE;
    port?.close();
  }
}

async function runNode(
  config: LedgerConfig,
  logLines: LineWriter | undefined,
  audited: AuditBounds,
): Promise<void> {
  const { name: node, logLevel } = config;
  const service = new ServiceProcess({ service: "ledger", node, logLevel, logLines });
  const { log, background } = service;
  port?.on("message", (order: NodeOrder) => {
    if (order.kind === "stop") service.stop(order.why);
    else service.reload();
  });
  try {
    const clock = nodeClock;
    const audit = { node, clock, log, background, ...audited };
    const host = await LedgerHost.start(config, {
      ...{ clock, log, background, version: packageVersion() },
      openAudit: () => AuditLog.open(join(config.dataDir, "audit"), audit),
      onEvent: (event) => service.say({ ...event, at: new Date().toISOString() }),
      onFatal: (reason, error) => service.fatal(reason, error),
    });
    service.serve({
      stop: (requester) => host.stop(requester),
      stopMsMax: STOP_MS_MAX,
      reload: (requester) => {
        host.reloadKeys(requester);
        log.event("info", "keys.reloaded", {});
      },
    });
    announce(config, host.encryption, service);
  } catch (error) {
    service.failed("ledger start", startProblem(error, `bind and api in ${config.file}`));
  }
}

function announce(config: LedgerConfig, encryption: string, service: ServiceProcess): void {
  const { name, region, cluster, environment } = config;
  const { log } = service;
  if (encryption !== "aes-256-gcm") log.event("warn", "ledger.plaintext", { encryption });
  const ready = {
    ...{ name, region, cluster, environment, encryption },
    ...{ version: packageVersion(), pid: process.pid },
    bind: formatAddress(config.bind.host, config.bind.port),
    api: formatAddress(config.api.host, config.api.port),
  };
  service.say({ event: "ready", ...ready, at: new Date().toISOString() });
  log.event("info", "ledger.ready", ready);
}
