/** Shared by the client commands of `hyperscale queue`: the connection to a node, and errors as one line. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { parseDuration } from "../../core/base/duration.ts";
import { errorText } from "../../core/base/error-text.ts";
import { clean } from "../../core/base/terminal-text.ts";
import { BACKOFF_KINDS, type Backoff, backoffProblem } from "../../core/queue/retry.ts";
import { readTokenFile } from "../../host/control/token.ts";
import { EXIT_FAILURE, EXIT_USAGE } from "../../host/exit-codes.ts";
import type { QueueClient } from "../../queue/index.ts";
import { complain, jsonText } from "../print.ts";

/** In a node's data directory: the generated token. */
export const TOKEN_FILE = "token";
const DEFAULT_TOKEN_FILE = join(".hyperscale", "queue", TOKEN_FILE);

export interface Shared {
  readonly url: string;
  readonly tokenFile?: string;
  readonly tlsCa?: string;
  readonly json?: boolean;
}

export function add(parent: Command, name: string, description: string, args: string): Command {
  return parent
    .command(args === "" ? name : `${name} ${args}`)
    .description(description)
    .addOption(
      new Option(
        "--url <url>",
        "any node of the queue; several, separated by commas, are tried in turn",
      )
        .default("http://127.0.0.1:7600")
        .env("HYPERSCALE_QUEUE_URL"),
    )
    .addOption(
      new Option(
        "--token-file <file>",
        `file with the bearer token (default: ${DEFAULT_TOKEN_FILE}, if it is there)`,
      ).env("HYPERSCALE_QUEUE_TOKEN_FILE"),
    )
    .addOption(
      new Option("--tls-ca <file>", "authority of https:// nodes (default: the usual ones)").env(
        "HYPERSCALE_QUEUE_TLS_CA_FILE",
      ),
    )
    .option("--json", "print JSON");
}

function tokenOf({ tokenFile }: Shared): string | undefined {
  if (tokenFile !== undefined) return readTokenFile(tokenFile);
  return existsSync(DEFAULT_TOKEN_FILE) ? readTokenFile(DEFAULT_TOKEN_FILE) : undefined;
}

function tokenHint({ tokenFile }: Shared): string {
  const found = tokenFile ?? (existsSync(DEFAULT_TOKEN_FILE) ? DEFAULT_TOKEN_FILE : undefined);
  if (found !== undefined) return `The token of ${found} is not the one of this node`;
  const cure = "--token-file names the file `token` in the data directory of a node";
  return `There is no ${DEFAULT_TOKEN_FILE} here: ${cure}`;
}

type Action = (client: QueueClient, options: never, ...args: never[]) => Promise<unknown>;

/** Opens the client, runs the command, turns errors into one line and an exit code. */
export function run(action: Action) {
  return async (...given: unknown[]): Promise<void> => {
    const args = given.slice(0, -2);
    const options = given.at(-2) as Shared;
    const { QueueClient, QueueError } = await import("../../queue/index.ts");
    let client: QueueClient | undefined;
    try {
      client = new QueueClient(options.url.split(","), {
        token: tokenOf(options),
        ca: options.tlsCa === undefined ? undefined : readFileSync(options.tlsCa, "utf8"),
      });
      const code = await (action as (...all: unknown[]) => Promise<unknown>)(
        client,
        options,
        ...args,
      );
      if (typeof code === "number") process.exitCode = code;
    } catch (error) {
      const known = error instanceof QueueError ? error : undefined;
      const hint = known?.code === "UNAUTHORIZED" ? `. ${tokenHint(options)}` : "";
      const message = errorText(error) + hint;
      if (options.json) print({ error: { code: known?.code ?? "INTERNAL", message } });
      complain(`hyperscale queue: ${clean(message)}`);
      process.exitCode =
        known === undefined || known.code === "INVALID_PARAMS" ? EXIT_USAGE : EXIT_FAILURE;
    } finally {
      client?.close();
    }
  };
}

export function readInput(text: string | undefined): unknown {
  if (text === undefined) return null;
  const json =
    text === "-"
      ? readFileSync(0, "utf8")
      : text.startsWith("@")
        ? readFileSync(text.slice(1), "utf8")
        : text;
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new Error(`the input is not JSON: ${errorText(error)}`);
  }
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvalidArgumentError(`not JSON: ${errorText(error)}`);
  }
}

export function parseWhole(text: string): number {
  if (!/^-?\d{1,9}$/.test(text)) throw new InvalidArgumentError("write a whole number");
  return Number(text);
}

/** Seconds as a number, or a duration such as `2s` and `5m`. */
export function parseSeconds(text: string): number {
  if (/^\d{1,7}(\.\d+)?$/.test(text)) return Number(text);
  return secondsOf(text);
}

function parseNumber(text: string): number {
  if (!/^\d{1,7}(\.\d+)?$/.test(text)) throw new InvalidArgumentError("write a number");
  return Number(text);
}

/** `linear,base=5s,cap=2m`, with the names of the API. */
export function parseBackoff(text: string): Backoff {
  const backoff: Record<string, string | number> = {};
  for (const part of text.split(",")) {
    const [name = "", value] = part.split("=", 2);
    if (value === undefined && BACKOFF_KINDS.some((kind) => kind === name)) backoff["kind"] = name;
    else if (name === "base" || name === "cap") backoff[name] = secondsOf(value ?? "");
    else if (name === "factor" || name === "jitter") backoff[name] = parseNumber(value ?? "");
    else throw new InvalidArgumentError("write e.g. exponential,base=1s,factor=2,cap=5m,jitter=1");
  }
  const problem = backoffProblem(backoff);
  if (problem !== undefined) throw new InvalidArgumentError(problem);
  return backoff;
}

function secondsOf(text: string): number {
  const parsed = parseDuration(text);
  if (!parsed.ok) throw new InvalidArgumentError(parsed.problem);
  return parsed.ms / 1_000;
}

export function parseWhen(text: string): string | number {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}

export function print(value: unknown): void {
  process.stdout.write(`${jsonText(value)}\n`);
}

export function line(text: string): void {
  // Names, results and errors come from others: none of their escape codes reaches the terminal.
  for (const part of text.split("\n")) process.stdout.write(`${clean(part)}\n`);
}
