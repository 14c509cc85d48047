/** Address and secret of a cluster: flags, the environment, or the directory of a local one. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { ClusterClient, ClusterError } from "../../client/client.ts";
import { EXIT_FAILURE, EXIT_USAGE } from "../../host/exit-codes.ts";
import { parseSecrets } from "../../wire/secret.ts";
import { listed } from "../option-values.ts";
import { complain } from "../print.ts";
import { UsageError } from "./ledger-target.ts";

export const CLUSTER_DIR = join(".hyperscale", "cluster");
/** In its directory: the processes that `cluster up` has started. */
export const CLUSTER_FILE = "cluster.json";

export interface PlaceFlags {
  readonly gate?: readonly string[] | undefined;
  readonly manager?: readonly string[] | undefined;
  readonly dir?: string | undefined;
  readonly credentials?: string | undefined;
  readonly cluster: string;
  readonly environment: string;
  readonly near?: string | undefined;
}

export interface LocalProcess {
  readonly name: string;
  readonly role: string;
  readonly pid: number;
  /** A part of its command line, so that another process with its pid is not mistaken for it. */
  readonly mark: string;
}

interface LocalCluster {
  /** Pid of the process that started the others. */
  readonly pid: number;
  readonly gates?: readonly string[];
  /** The others; they outlive a killed parent. */
  readonly processes: readonly LocalProcess[];
  readonly managers: readonly string[];
  readonly credentials: string;
}

export function withPlace(command: Command): Command {
  return command
    .option("--gate <host:port>", "gates to ask; repeat or separate by commas", listed)
    .option("--manager <host:port>", "managers to ask, of a cluster without gates", listed)
    .option("--dir <dir>", `directory of a local cluster (${CLUSTER_DIR})`)
    .option("--credentials <file>", "a client's secret; HYPERSCALE_CREDENTIALS by default")
    .option("--cluster <name>", "its name", "hyperscale")
    .option("--environment <name>", "its environment", "default")
    .option(
      "--near <region>",
      "where this client is: gates of this region are asked before others",
    );
}

export function readLocalCluster(dir: string): LocalCluster | null {
  try {
    return JSON.parse(readFileSync(join(dir, CLUSTER_FILE), "utf8")) as LocalCluster;
  } catch {
    return null;
  }
}

/** Options with another flag, or with none. */
const GIVEN_AS: Readonly<Record<string, string>> = {
  as: "the name of the user",
  command: "the command line",
  datacenter: "--near",
  job: "JOB",
  key: "--idempotency-key",
  manifests: "the description of the workflows",
  node: "NODE",
  overrides: "what -e, --only, --seed and the flags of the load say together",
  tags: "what --tag says",
  target: "FILE|URL",
  thresholds: "--threshold",
};

/** Flag of a client option on the command line. */
export function flagOf(option: string): string {
  const hyphenated = option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return GIVEN_AS[option] ?? `--${hyphenated}`;
}

export function openCluster(flags: PlaceFlags, nameOf = flagOf): ClusterClient {
  return ClusterClient.open({ ...placeOf(flags), nameOf });
}

/** Returns addresses and secret; throws when they cannot be determined. */
export function placeOf(flags: PlaceFlags): Parameters<typeof ClusterClient.open>[0] {
  const { cluster, dir = CLUSTER_DIR, environment } = flags;
  const { env } = process;
  for (const flag of ["gate", "manager"] as const)
    if (flags[flag]?.length === 0)
      throw new UsageError(`--${flag} names no address; write it as host:port, or leave it out`);
  const named =
    flags.gate ??
    flags.manager ??
    listed(env["HYPERSCALE_GATES"] ?? env["HYPERSCALE_MANAGERS"] ?? "", []);
  const local = named.length > 0 && flags.dir === undefined ? null : readLocalCluster(dir);
  const { gates = [], managers = [] } = local ?? {};
  const found = named.length > 0 ? named : gates.length > 0 ? gates : managers;
  if (found.length === 0)
    throw new UsageError(
      `no local cluster found in ${dir}. Start one with "hyperscale cluster up", or name gates ` +
        "with --gate",
    );
  const file =
    flags.credentials ?? process.env["HYPERSCALE_CREDENTIALS"] ?? local?.credentials ?? null;
  if (file === null)
    throw new UsageError("--credentials is missing: the file of a client's secret");
  const datacenter = flags.near ?? env["HYPERSCALE_NEAR"] ?? "";
  return { managers: found, secret: secretIn(file), cluster, environment, datacenter };
}

function secretIn(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    throw new UsageError(`--credentials ${file}: cannot be read`);
  }
  const [secret] = parseSecrets(text);
  if (secret === undefined) throw new UsageError(`--credentials ${file}: holds no secret`);
  return secret;
}

/** The caller's mistake: the same request would be rejected again. */
export function isMistake(error: UsageError | ClusterError): boolean {
  if (error instanceof UsageError) return true;
  return error.reason === "invalid" || error.reason === "unknownJob";
}

/** Runs a command against a cluster; a rejection is one line and exit code 1, or 2 when it is the caller's mistake. */
export async function withCluster(
  command: string,
  flags: PlaceFlags,
  work: (client: ClusterClient) => Promise<void>,
): Promise<void> {
  let client: ClusterClient | undefined;
  try {
    client = openCluster(flags);
    await work(client);
  } catch (error) {
    if (!(error instanceof UsageError) && !(error instanceof ClusterError)) throw error;
    complain(`hyperscale ${command}: ${error.message}`);
    process.exitCode = isMistake(error) ? EXIT_USAGE : EXIT_FAILURE;
  } finally {
    await client?.close();
  }
}
