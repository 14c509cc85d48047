/** `hyperscale ping URL`: one request, and its time by phase. */

import { readFileSync } from "node:fs";
import { METHODS, validateHeaderName, validateHeaderValue } from "node:http";
import { type Command, InvalidArgumentError, Option } from "commander";
import { parseDuration } from "../../core/base/duration.ts";
import { errorText } from "../../core/base/error-text.ts";
import { maskCredentials } from "../../core/base/mask-credentials.ts";
import type { ProtocolPing } from "../../protocols/protocol.ts";
import { parseTargetUrl } from "../../runner/target-url.ts";
import {
  drawAnswer,
  drawFailure,
  drawLine,
  drawSpread,
  type PictureOptions,
} from "../ping/picture.ts";
import { type PingAnswer, type PingOutcome, type ProbeOptions, probe } from "../ping/probe.ts";
import { warmUp } from "../ping/warm-up.ts";
import { complain, escapeJson } from "../print.ts";

interface PingFlags {
  readonly method?: string;
  readonly header: readonly (readonly [string, string])[];
  readonly body?: Buffer;
  readonly count: number;
  readonly timeout: number;
  readonly insecure?: true;
  readonly json?: true;
}

const COUNT_MAX = 1_000;
const TIMEOUT_MS = 5_000;
const EXIT_FAILURE = 1;
const EXIT_USAGE = 2;

const headerOption = new Option("-H, --header <name: value>", "request header; repeatable")
  .argParser(addHeader)
  .default([], "none");

const timeoutOption = new Option("-t, --timeout <time>", "limit for each request, such as 500ms")
  .argParser(parseTime)
  .default(TIMEOUT_MS, "5s");

export function registerPing(program: Command): void {
  program
    .command("ping")
    .summary("send one request and show where its time went")
    .description(
      "Sends one request on a fresh connection and shows where its time went: " +
        "DNS, TCP connect, TLS, login, first byte, body. http:// and https:// send HTTP/1.1 and " +
        "show redirects without following them; other protocols send their smallest request.",
    )
    .argument("<url>", "address: http://, https://, or that of another protocol")
    .option(
      "-X, --method <method>",
      "request method (default: GET, or POST with a body)",
      parseMethod,
    )
    .addOption(headerOption)
    .option("-d, --body <text>", "request body; @file reads it from a file", parseBody)
    .option("-c, --count <n>", "how many requests, one after another", parseCount, 1)
    .addOption(timeoutOption)
    .option("-k, --insecure", "go on when the certificate is not trusted")
    .option("--json", "print one JSON line per request")
    .addHelpText("after", HELP)
    .action(async (text: string, flags: PingFlags) => {
      const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text.trim())?.[1]?.toLowerCase();
      if (scheme !== undefined && scheme !== "http" && scheme !== "https") {
        process.exitCode = await pingProtocol(scheme, text.trim(), flags);
        return;
      }
      const target = parseTargetUrl(text);
      if (!target.ok) {
        complain(`hyperscale ping: ${target.problem}`);
        process.exitCode = EXIT_USAGE;
        return;
      }
      const answered = await ping(target.url, flags);
      if (!answered) process.exitCode = EXIT_FAILURE;
    });
}

const HELP = `
Exit code: 0 when every request was answered (whatever the status), 1 when one was not,
2 when the arguments are wrong.

Examples:
  $ hyperscale ping https://example.com/
  $ hyperscale ping http://127.0.0.1:8089/login -d '{"user":"ada"}' -H 'content-type: application/json'
  $ hyperscale ping http://127.0.0.1:8089/ --count 5 --json
  $ hyperscale ping redis://cache.test --count 3
`;

async function ping(url: URL, flags: PingFlags): Promise<boolean> {
  const options: ProbeOptions = {
    url,
    method: flags.method ?? (flags.body === undefined ? "GET" : "POST"),
    headers: flags.header,
    body: flags.body ?? null,
    timeoutMs: flags.timeout,
    insecure: flags.insecure === true,
  };
  if (flags.json !== true) process.stdout.write(`${options.method} ${withoutPassword(url)}\n\n`);
  await warmUp(url.protocol === "https:");
  return pingOften(flags, { url: withoutPassword(url), method: options.method }, () =>
    probe(options),
  );
}

/** The exit code. */
async function pingProtocol(scheme: string, text: string, flags: PingFlags): Promise<number> {
  const { knownSchemes, probeProtocol, protocolOf, warmUpProtocol } = await import(
    "../ping/protocols.ts"
  );
  const protocol = await protocolOf(scheme);
  const ofHttp = flags.method ?? flags.header[0] ?? flags.body;
  const problem =
    protocol === undefined
      ? `no protocol has addresses ${scheme}://; there are: http, https, ${knownSchemes().join(", ")}`
      : ofHttp !== undefined
        ? "--method, --header and --body are for http:// and https:// only"
        : problemOfAddress(protocol, text, flags.insecure === true);
  if (problem !== null || protocol === undefined) {
    complain(`hyperscale ping: ${maskCredentials(problem ?? "")}`);
    return EXIT_USAGE;
  }
  const url = new URL(text);
  if (flags.json !== true) process.stdout.write(`${withoutPassword(url)}\n\n`);
  try {
    await warmUpProtocol(protocol, url);
  } catch (error) {
    complain(`hyperscale ping: ${maskCredentials(errorText(error))}`);
    return EXIT_FAILURE;
  }
  const options = {
    protocol,
    url,
    timeoutMs: flags.timeout,
    insecure: flags.insecure === true,
  };
  const answered = await pingOften(flags, { url: withoutPassword(url) }, () =>
    probeProtocol(options),
  );
  return answered ? 0 : EXIT_FAILURE;
}

function problemOfAddress(
  protocol: ProtocolPing,
  address: string,
  insecure: boolean,
): string | null {
  try {
    protocol.call(address, { insecure });
    return null;
  } catch (error) {
    return errorText(error);
  }
}

/** Returns true when every one was answered. */
async function pingOften(
  flags: PingFlags,
  what: Readonly<Record<string, string>>,
  probeOnce: () => Promise<PingOutcome>,
): Promise<boolean> {
  const picture: PictureOptions = {
    colour: process.stdout.isTTY === true && (process.env["NO_COLOR"] ?? "") === "",
    columns: process.stdout.columns ?? 80,
  };
  const answers: PingAnswer[] = [];
  for (let index = 1; index <= flags.count; index++) {
    const outcome = await probeOnce();
    if (outcome.ok) answers.push(outcome);
    if (flags.json === true) process.stdout.write(`${asJson(outcome, what)}\n`);
    else if (!outcome.ok) process.stderr.write(`${drawFailure(outcome, picture)}\n`);
    else if (flags.count === 1) process.stdout.write(`${drawAnswer(outcome, picture)}\n`);
    else process.stdout.write(`${drawLine(outcome, index)}\n`);
  }
  if (flags.count > 1 && flags.json !== true) {
    process.stdout.write(`\n${drawSpread(answers, flags.count)}\n`);
  }
  return answers.length === flags.count;
}

function asJson(outcome: PingOutcome, what: Readonly<Record<string, string>>): string {
  // Thousandths of a millisecond: the rest is noise.
  const text = JSON.stringify({ ...what, ...outcome }, (_, value) =>
    typeof value === "number" ? Math.round(value * 1_000) / 1_000 : (value as unknown),
  );
  return escapeJson(text);
}

function withoutPassword(url: URL): string {
  if (url.password === "") return url.href;
  const shown = new URL(url);
  shown.password = "***";
  return shown.href;
}

function parseMethod(text: string): string {
  const method = text.toUpperCase();
  if (METHODS.includes(method)) return method;
  throw new InvalidArgumentError("use an HTTP method such as GET, POST, PUT or DELETE.");
}

function addHeader(
  text: string,
  before: readonly (readonly [string, string])[],
): readonly (readonly [string, string])[] {
  const colon = text.indexOf(":");
  const name = text.slice(0, Math.max(colon, 0)).trim();
  const value = text.slice(colon + 1).trim();
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  } catch {
    throw new InvalidArgumentError('write it as "name: value".');
  }
  return [...before, [name, value]];
}

function parseBody(text: string): Buffer {
  if (!text.startsWith("@")) return Buffer.from(text);
  try {
    return readFileSync(text.slice(1));
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new InvalidArgumentError(`cannot read ${text.slice(1)} (${code}).`);
  }
}

function parseCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= COUNT_MAX) return count;
  throw new InvalidArgumentError(`use a whole number from 1 to ${COUNT_MAX}.`);
}

function parseTime(text: string): number {
  const duration = parseDuration(text);
  if (!duration.ok) throw new InvalidArgumentError(`${duration.problem}.`);
  if (duration.ms === 0) throw new InvalidArgumentError("a time-out must be more than zero.");
  return duration.ms;
}
