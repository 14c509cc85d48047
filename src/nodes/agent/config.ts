/** Configuration of an agent. All mistakes are reported at once, before a socket opens. (CFG-1) */

import { existsSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { errorText } from "../../core/base/error-text.ts";
import { type Address, NODE_ID_BYTES_MAX, ROLES, type Role } from "../../core/base/ids.ts";
import { VOTERS_MAX } from "../../core/membership/election/messages.ts";
import { type ProfileName, SWIM_PROFILES } from "../../core/membership/swim/config.ts";
import { ownToken, readTokenFile } from "../../host/control/token.ts";
import { LOG_THRESHOLDS, type LogThreshold } from "../../host/ports/log.ts";
import { DEFAULT_PORT, formatAddress, parseAddress } from "../../wire/address.ts";
import { PLAINTEXT, parseSecrets, secretsProblem } from "../../wire/secret.ts";

/** As written on a command line. */
export interface AgentOptions {
  readonly name: string;
  readonly bind: string;
  readonly advertise?: string | undefined;
  readonly join: readonly string[];
  readonly dns: readonly string[];
  readonly role: string;
  readonly datacenter: string;
  readonly cluster: string;
  readonly environment: string;
  readonly profile: string;
  readonly api?: string | undefined;
  readonly apiTokenFile?: string | undefined;
  readonly metricsTokenFile?: string | undefined;
  readonly secretFile?: string | undefined;
  readonly insecurePlaintext: boolean;
  readonly dataDir?: string | undefined;
  readonly voters: readonly string[];
  readonly priority: number;
  readonly tlsCert?: string | undefined;
  readonly tlsKey?: string | undefined;
  readonly tlsCa?: string | undefined;
  readonly tlsVerifyHostname: boolean;
  readonly logLevel: string;
}

interface Endpoint {
  readonly host: string;
  readonly port: number;
}

interface AgentApi extends Endpoint {
  readonly token: string;
  /** Whether the token is the agent's own: it is kept in the data directory. */
  readonly isOwnToken: boolean;
  /** Token that opens `/metrics` on addresses other than loopback. */
  readonly metricsToken: string | null;
}

export interface AgentConfig {
  readonly name: string;
  readonly bind: Endpoint;
  readonly address: Address;
  /** Addresses of the configuration; hosts may be names. */
  readonly seeds: readonly Endpoint[];
  /** Names resolved by DNS periodically: a headless service, or `_service._proto.domain` for SRV. */
  readonly dnsNames: readonly string[];
  readonly role: Role;
  readonly datacenter: string;
  readonly cluster: string;
  readonly environment: string;
  readonly profile: ProfileName;
  readonly api: AgentApi | null;
  /** Reloads the secrets; throws if they are unusable. The first seals, all open. */
  readonly readSecrets: () => readonly string[];
  /** Null when they come from the environment. */
  readonly secretFile: string | null;
  readonly dataDir: string;
  readonly voters: readonly string[];
  readonly priority: number;
  readonly tls: {
    readonly cert: string;
    readonly key: string;
    readonly ca: string;
    readonly verifyHostname: boolean;
  } | null;
  readonly logLevel: LogThreshold;
}

type AgentConfigResult =
  | { readonly ok: true; readonly config: AgentConfig }
  | { readonly ok: false; readonly problems: readonly string[] };

const NAME = /^[A-Za-z0-9._-]+$/;
const PRIORITY_MAX = 10;

export function readAgentConfig(
  options: AgentOptions,
  env: Readonly<Record<string, string | undefined>>,
): AgentConfigResult {
  const problems: string[] = [];
  const complain = (problem: string | null): void => {
    if (problem !== null) problems.push(problem);
  };
  complain(nameProblem("--name", options.name));
  complain(nameProblem("--datacenter", options.datacenter));
  complain(nameProblem("--cluster", options.cluster));
  complain(nameProblem("--environment", options.environment));
  const role = pick("--role", options.role, ROLES, problems);
  const profiles = Object.keys(SWIM_PROFILES) as ProfileName[];
  const profile = pick("--profile", options.profile, profiles, problems);
  const logLevel = pick("--log-level", options.logLevel, LOG_THRESHOLDS, problems);
  const bind = endpoint("--bind", options.bind, DEFAULT_PORT, problems);
  if (bind !== null && isIP(bind.host) === 0) {
    complain(`--bind ${options.bind}: give a numeric address of this machine`);
  }
  const advertised = endpoint(
    "--advertise",
    options.advertise ?? options.bind,
    bind?.port,
    problems,
  );
  if (advertised !== null && isUnspecified(advertised.host)) {
    complain(
      `--bind ${options.bind} means every interface: say with --advertise where others find us`,
    );
  }
  const dataDir = options.dataDir ?? `.hyperscale/agent-${options.name}`;
  const api = readApi(options, dataDir, problems);
  const readSecrets = secretSource(options, env, problems);
  const tls = readTls(options, problems);
  complain(voterProblem(options));
  if (!Number.isInteger(options.priority) || Math.abs(options.priority) > PRIORITY_MAX) {
    complain(`--priority: a whole number from -${PRIORITY_MAX} to ${PRIORITY_MAX}`);
  }
  const seeds = options.join
    .map((text) => endpoint("--join", text, bind?.port ?? DEFAULT_PORT, problems))
    .filter((seed) => seed !== null);
  for (const name of options.dns) {
    if (!/^[A-Za-z0-9._-]+(?::\d{1,5})?$/.test(name)) complain(`--dns ${name}: not a DNS name`);
  }
  if (problems.length > 0 || bind === null || advertised === null) return { ok: false, problems };
  const config: AgentConfig = {
    name: options.name,
    bind,
    address: formatAddress(advertised.host, advertised.port),
    seeds,
    dnsNames: options.dns,
    role,
    datacenter: options.datacenter,
    cluster: options.cluster,
    environment: options.environment,
    profile,
    api,
    readSecrets,
    secretFile: options.secretFile ?? null,
    dataDir,
    voters: options.voters,
    priority: options.priority,
    tls,
    logLevel,
  };
  return { ok: true, config };
}

/**
 * Source of the secrets. With --insecure-plaintext alone there are none; with both, the word "plaintext" may be listed
 * in the file like a secret, which is how a cluster moves from one to the other.
 */
function secretSource(
  options: AgentOptions,
  env: Readonly<Record<string, string | undefined>>,
  problems: string[],
): () => readonly string[] {
  const fromEnv = env["HYPERSCALE_SECRET"] ?? env["MERCURY_SYNC_AUTH_SECRET"];
  const previous = env["HYPERSCALE_SECRET_PREVIOUS"] ?? env["MERCURY_SYNC_AUTH_SECRET_PREVIOUS"];
  const { secretFile: file, insecurePlaintext } = options;
  if (file === undefined && fromEnv === undefined) {
    if (!insecurePlaintext) {
      problems.push(
        "no secret: give --secret-file F or HYPERSCALE_SECRET (make one with " +
          '"hyperscale keygen"), or --insecure-plaintext for development',
      );
    }
    return () => [PLAINTEXT];
  }
  const read = (): readonly string[] => {
    const secrets =
      file === undefined
        ? [fromEnv, previous].filter((secret) => secret !== undefined && secret !== "")
        : parseSecrets(readFileSync(file, "utf8"));
    const switchName = insecurePlaintext ? null : "--insecure-plaintext";
    const problem = secretsProblem(secrets as readonly string[], switchName);
    if (problem !== null) throw new Error(problem);
    return secrets as readonly string[];
  };
  try {
    read();
  } catch (error) {
    const missing = file !== undefined && !existsSync(file);
    const problem = errorText(error);
    problems.push(
      missing
        ? `--secret-file ${file}: no such file; make one with "hyperscale keygen > ${file}"`
        : problem,
    );
  }
  return read;
}

function readApi(options: AgentOptions, dataDir: string, problems: string[]): AgentApi | null {
  if (options.api === undefined) return null;
  const at = endpoint("--api", options.api, DEFAULT_PORT + 1, problems);
  if (at === null) return null;
  const { apiTokenFile: file, metricsTokenFile: metricsFile } = options;
  try {
    const token = file === undefined ? ownToken(dataDir) : readTokenFile(file);
    const metricsToken = metricsFile === undefined ? null : readTokenFile(metricsFile);
    return { ...at, token, isOwnToken: file === undefined, metricsToken };
  } catch (error) {
    problems.push(`--api-token-file, --metrics-token-file: ${errorText(error)}`);
    return null;
  }
}

function readTls(options: AgentOptions, problems: string[]): AgentConfig["tls"] {
  const { tlsCert: cert, tlsKey: key, tlsCa: ca, tlsVerifyHostname: verifyHostname } = options;
  if (cert === undefined && key === undefined && ca === undefined) return null;
  if (cert === undefined || key === undefined || ca === undefined) {
    problems.push("mutual TLS needs all of --tls-cert, --tls-key and --tls-ca");
    return null;
  }
  for (const file of [cert, key, ca]) {
    if (!existsSync(file)) problems.push(`${file}: no such file`);
  }
  return { cert, key, ca, verifyHostname };
}

function voterProblem({ voters, name }: AgentOptions): string | null {
  if (voters.length === 0) return null;
  if (voters.length > VOTERS_MAX) return `--voters names ${voters.length}; at most ${VOTERS_MAX}`;
  if (new Set(voters).size !== voters.length) return "--voters names a member twice";
  const wrong = voters.find((voter) => nameProblem("", voter) !== null);
  if (wrong !== undefined) return `--voters: "${wrong}" is not a member's name`;
  return voters.includes(name) ? null : `--voters does not name this member ("${name}")`;
}

function nameProblem(option: string, value: string): string | null {
  if (NAME.test(value) && value.length <= NODE_ID_BYTES_MAX) return null;
  return `${option} "${value}": 1 to ${NODE_ID_BYTES_MAX} letters, digits, dots, dashes, underscores`;
}

function pick<Word extends string>(
  option: string,
  value: string,
  words: readonly Word[],
  problems: string[],
): Word {
  const word = words.find((known) => known === value);
  if (word === undefined) problems.push(`${option} "${value}": one of ${words.join(", ")}`);
  return word ?? (words[0] as Word);
}

function endpoint(
  option: string,
  text: string,
  defaultPort: number | undefined,
  problems: string[],
): Endpoint | null {
  const parsed = parseAddress(text, defaultPort);
  if (parsed.ok) return { host: parsed.host, port: parsed.port };
  problems.push(`${option}: ${parsed.problem}`);
  return null;
}

function isUnspecified(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}
