/**
 * The node in a thread of its own. V8 sizes a thread's nursery when it begins, by default at most 16 MB; a
 * busy node makes a kilobyte of short-lived values per commit, and with 64 MB fewer of them are still alive
 * and copied when it is full (82 instead of 92 us of CPU per commit over three nodes, in turns on one
 * machine). Signals stay with the process.
 */

import { parentPort, workerData } from "node:worker_threads";
import { errorText } from "../../core/base/error-text.ts";
import { JsonLog } from "../../host/control/json-log.ts";
import { LineWriter } from "../../host/control/line-writer.ts";
import { nodeClock } from "../../host/node-clock.ts";
import { type LedgerConfig, readLedgerConfig } from "../../ledger/config.ts";
import { LedgerHost } from "../../ledger/host.ts";
import { formatAddress } from "../../wire/address.ts";
import { EXIT_FAILURE } from "../exit-codes.ts";
import { packageVersion } from "../version.ts";

/** A defect or a failed disk, as in sysexits: the supervisor restarts us, and the log says why. */
const EXIT_DEFECT = 70;
const STOP_MS_MAX = 20_000;
const LAST_WORDS_MS_MAX = 300;

/** What the process tells its node. */
export type NodeOrder =
  | { readonly kind: "stop"; readonly why: string }
  | { readonly kind: "reloadKeys" };

const port = parentPort;
const read = readLedgerConfig(String(workerData));
if (port !== null && read.ok) await runNode(read.config);

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
    errors.write(`hyperscale ledger start: ${explain(error, config)}\n`);
    end(EXIT_FAILURE);
    return null;
  });
  if (host === null) return;
  const stop = stopper(host, log, end);
  port?.on("message", (order: NodeOrder) => {
    if (order.kind === "stop") stop(order.why);
    else reloadKeys(host, log);
  });
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

function stopper(
  host: LedgerHost,
  log: JsonLog,
  end: (code: number) => void,
): (why: string) => void {
  return (why) => {
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
    const problem = errorText(error);
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
