/** `hyperscale demo-target`: the bundled server to load, until Ctrl-C. */

import { type Command, InvalidArgumentError } from "commander";
import { errorText } from "../../core/base/error-text.ts";
import { tableLines } from "../../core/base/text-table.ts";
import { makeCertificate } from "../../demo/certificate.ts";
import { type Endpoint, endpoints } from "../../demo/endpoints.ts";
import { DEMO_HOST, DEMO_PORT, type DemoTarget, startDemoTarget } from "../../demo/server.ts";
import { complain } from "../print.ts";

interface DemoTargetFlags {
  readonly host: string;
  readonly port: number;
  readonly tls?: true;
  readonly json?: true;
}

const LOOPBACK = /^(127\.|localhost$|::1$)/;

export function registerDemoTarget(program: Command): void {
  program
    .command("demo-target")
    .summary("start the bundled server to load: fast, slow, failing and stalling endpoints")
    .description(
      "Starts the bundled demo target and serves until Ctrl-C.\n" +
        "Examples, tests and first runs load it, never a public site.",
    )
    .option("-p, --port <port>", "port to listen on; 0 takes any free one", parsePort, DEMO_PORT)
    .option("--host <address>", "address to listen on", DEMO_HOST)
    .option("--tls", "serve https, with a self-signed certificate made on the spot")
    .option("--json", "print one JSON line (url, host, port, pid) instead of the table")
    .addHelpText("after", "\nExample:\n  $ hyperscale demo-target --port 0 --json\n")
    .action(async (flags: DemoTargetFlags) => {
      await serve(flags);
    });
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) {
    throw new InvalidArgumentError("a port is a whole number from 0 to 65535.");
  }
  return port;
}

async function serve(flags: DemoTargetFlags): Promise<void> {
  let target: DemoTarget;
  try {
    target = await startDemoTarget({
      host: flags.host,
      port: flags.port,
      ...(flags.tls === true ? { tls: makeCertificate({ hosts: ["localhost", flags.host] }) } : {}),
    });
  } catch (error) {
    complain(`hyperscale demo-target: ${explain(error, flags)}`);
    process.exitCode = 1;
    return;
  }
  // Before the first output: its reader may send the signal at once.
  const stopped = stopSignal();
  const { url, host, port } = target;
  process.stdout.write(
    flags.json === true
      ? `${JSON.stringify({ url, host, port, pid: process.pid })}\n`
      : `${welcome(target)}\n`,
  );
  const signal = await stopped;
  const { requests, connections } = target.stats();
  await target.close();
  if (flags.json !== true) {
    const served = `${requests} request${requests === 1 ? "" : "s"}`;
    process.stdout.write(
      `\nStopped by ${signal} after ${served} over ${connections} connection${connections === 1 ? "" : "s"}.\n`,
    );
  }
}

/** The first of the two signals ends the wait; a second one ends the process as usual. */
function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    process.once("SIGINT", resolve);
    process.once("SIGTERM", resolve);
  });
}

function explain(error: unknown, { host, port }: DemoTargetFlags): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  switch (code) {
    case "EADDRINUSE":
      return (
        `port ${port} on ${host} is taken by another process.\n` +
        "  Choose another with --port N, or let the system choose with --port 0."
      );
    case "EACCES":
      return (
        `not allowed to listen on port ${port}.\n` +
        "  Ports below 1024 need more rights: choose a higher one with --port N."
      );
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return (
        `${host} is not an address of this machine.\n` +
        "  Leave --host out for 127.0.0.1, or use 0.0.0.0 for all."
      );
    default:
      return errorText(error);
  }
}

function welcome({ url, host }: DemoTarget): string {
  const rows = endpoints.map((endpoint) => [methodsOf(endpoint), shown(endpoint), endpoint.does]);
  const open = LOOPBACK.test(host) ? [] : ["", `Note: ${host} can be reached from other machines.`];
  return [
    `Demo target: ${url}`,
    ...open,
    "",
    ...tableLines(rows).map((line) => `  ${line}`),
    "",
    `Try:  hyperscale run ${url}/ --duration 5s`,
    "Stop: Ctrl-C",
  ].join("\n");
}

function methodsOf({ methods }: Endpoint): string {
  return methods.length === 0 ? "any" : methods.filter((name) => name !== "HEAD").join("|");
}

function shown({ path, query }: Endpoint): string {
  return query === undefined ? path : `${path}?${query}`;
}
