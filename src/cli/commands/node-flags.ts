/** Flags of managers and workers that replace a configuration file. */

import { join } from "node:path";
import type { Command } from "commander";
import { UsageError } from "./ledger-target.ts";

export interface NodeFlags {
  readonly config?: string;
  readonly name?: string;
  readonly datacenter?: string;
  readonly cluster?: string;
  readonly environment?: string;
  readonly api?: string;
  readonly dataDir?: string;
  readonly secretFile?: string;
  readonly insecurePlaintext?: true;
  readonly logLevel?: string;
}

export function withNodeFlags(command: Command): Command {
  return command
    .option("--config <file>", "the node's configuration, JSON; instead of the flags below")
    .option("--name <name>", "unique name of this node")
    .option("--datacenter <name>", "where it is")
    .option("--cluster <name>", "nodes of other clusters are refused")
    .option("--environment <name>", "nodes of other environments are refused")
    .option("--api <host:port>", "serve health, readiness and metrics here")
    .option("--data-dir <dir>", "what must survive a restart")
    .option("--secret-file <file>", "secrets of the cluster, one per line")
    .option("--insecure-plaintext", "no encryption at all; for development only")
    .option("--log-level <level>", "error, warn, info or debug");
}

/** A configuration as in a file; relative to the working directory. */
export function configValue(flags: NodeFlags): Readonly<Record<string, unknown>> {
  const { api, cluster, dataDir, datacenter, environment, logLevel, name, secretFile } = flags;
  const { insecurePlaintext } = flags;
  const value = {
    ...{ name, datacenter, cluster, environment, api, secretFile, insecurePlaintext, logLevel },
    dataDir: dataDir ?? (name === undefined ? undefined : join(".hyperscale", name)),
  };
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined));
}

/** Stands for the flags in messages. */
export const FLAGS_PLACE = join(process.cwd(), "flags");

/** Fields of a configuration whose flags have other names. */
const FLAG_NAMES: Readonly<Record<string, string>> = { managers: "join", datacenters: "managers" };

/** Turns a problem of the configuration into one of the flag. */
export function flagProblem(problem: string): string {
  const place = `${FLAGS_PLACE}: `;
  if (!problem.startsWith(place)) return problem;
  return `--${problem.slice(place.length).replace(/^\w+/, flagOf)}`;
}

function flagOf(field: string): string {
  return (FLAG_NAMES[field] ?? field).replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** "m1=127.0.0.1:7700", any number of them. */
export function namedAddresses(
  flag: string,
  texts: readonly string[],
): { readonly name: string; readonly address: string }[] {
  return texts.map((text) => {
    const [, name, address] = /^([^=]+)=(.+)$/.exec(text) ?? [];
    if (name === undefined || address === undefined)
      throw new UsageError(`${flag} ${text}: write NAME=HOST:PORT`);
    return { name, address };
  });
}
