/**
 * Configuration of a ledger node: one JSON file. Every mistake is reported at once, with its position in the file,
 * before a socket opens or a byte is written.
 */

import { existsSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { dirname, resolve } from "node:path";
import { z } from "zod";
import { errorText } from "../core/base/error-text.ts";
import { HLC_DRIFT_MS_MAX } from "../core/base/hlc.ts";
import { type Address, type NodeId, nodeId } from "../core/base/ids.ts";
import { MEMBERS_MAX } from "../core/ledger/group/messages.ts";
import { GATE_ID_CHARACTERS_MAX, REGION_CODE_CHARACTERS_MAX } from "../core/ledger/job/job-id.ts";
import { JOB_DCS_MAX } from "../core/ledger/job/limits.ts";
import type { Site } from "../core/ledger/job/placement.ts";
import {
  checkIdempotencyProfile,
  IDEMPOTENCY_PROFILES,
  type IdempotencyProfileName,
} from "../core/ledger/keys/config.ts";
import { CHECKPOINT_DEFAULTS } from "../core/ledger/log/checkpoint.ts";
import { LEDGER_NODE_DEFAULTS } from "../core/ledger/node/config.ts";
import type { LedgerNodeConfig } from "../core/ledger/node/types.ts";
import { keepOwnToken, ownToken, readTokenFile } from "../host/control/token.ts";
import { LOG_THRESHOLDS, type LogThreshold } from "../host/ports/log.ts";
import { formatAddress, parseAddress } from "../wire/address.ts";
import { PLAINTEXT, parseSecrets, secretsProblem } from "../wire/secret.ts";
import { PROTOCOL } from "../wire/version.ts";
import { type ConfigResult, checkSchema, readConfigFile } from "./config-file.ts";

const PEERS_MAX = 64;
const DAY_SECONDS = 86_400;
/** A lease shorter than this is lost to a single pause of the process. */
const LEASE_MS_MIN = 300;
const LEASE_MS_MAX = 600_000;

export const name = (charactersMax: number) =>
  z
    .string()
    .regex(
      /^[a-z0-9]+$/,
      "lower-case letters and digits only, as in n1: it becomes part of job ids",
    )
    .max(charactersMax, `at most ${charactersMax} characters`);
export const label = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,64}$/, "1 to 64 letters, digits, dots, dashes, underscores");
export const place = z.string().superRefine((text, context) => {
  const parsed = parseAddress(text, 0);
  const problem = !parsed.ok
    ? `"${text}" is not an address: write 127.0.0.1:7101`
    : isIP(parsed.host) === 0
      ? `"${parsed.host}" is a name: write the numeric address`
      : null;
  if (problem !== null) context.addIssue({ code: "custom", message: problem });
});
const seconds = z.number().positive();
const path = z.string().min(1, "a path");

/** Files with tokens of the control interface; without the first one the node makes its own. */
export const tokenFiles = {
  apiTokenFile: path.optional(),
  metricsTokenFile: path.optional(),
};

const schema = z.strictObject({
  name: name(GATE_ID_CHARACTERS_MAX),
  region: name(REGION_CODE_CHARACTERS_MAX),
  cluster: label.default("hyperscale"),
  environment: label.default("default"),
  bind: place,
  api: place,
  ...tokenFiles,
  peers: z
    .array(
      z.strictObject({
        name: name(GATE_ID_CHARACTERS_MAX),
        region: name(REGION_CODE_CHARACTERS_MAX),
        address: place,
      }),
    )
    .max(PEERS_MAX)
    .default([]),
  dataDir: path,
  secretFile: path.optional(),
  insecurePlaintext: z.boolean().default(false),
  tls: z
    .strictObject({ cert: path, key: path, ca: path, verifyHostname: z.boolean().default(true) })
    .optional(),
  replicas: z
    .number()
    .int()
    .min(1)
    .max(MEMBERS_MAX)
    .refine((count) => count % 2 === 1, "an odd number: an even one survives no loss more")
    .default(LEDGER_NODE_DEFAULTS.replicas),
  /** With fewer than three nodes: groups of one, or no jobs at all. */
  fewNodes: z.enum(["single", "refuse"]).default("single"),
  /** Where jobs may run; empty: anywhere. */
  datacenters: z.array(z.string().min(1)).max(JOB_DCS_MAX).default([]),
  leaseMs: z.number().int().min(LEASE_MS_MIN).max(LEASE_MS_MAX).default(10_000),
  requestTimeoutMs: z.number().int().min(100).max(120_000).default(5_000),
  /** After a start, times in the own log further ahead of the clock than this are ignored. */
  clockAheadMs: z
    .number()
    .int()
    .min(HLC_DRIFT_MS_MAX)
    .max(LEDGER_NODE_DEFAULTS.recoveredAheadMsMax)
    .default(LEDGER_NODE_DEFAULTS.recoveredAheadMsMax),
  idempotency: z.enum(["development", "production", "multiDatacenter"]).default("production"),
  checkpoint: z
    .strictObject({
      entries: z.number().int().min(1).default(CHECKPOINT_DEFAULTS.intervalEntries),
      seconds: seconds.default(CHECKPOINT_DEFAULTS.intervalMs / 1_000),
      keep: z.number().int().min(1).max(100).default(CHECKPOINT_DEFAULTS.keptMax),
    })
    .prefault({}),
  archive: z
    .strictObject({
      /** A finished job leaves memory this long after its end. */
      afterSeconds: seconds.default(DAY_SECONDS),
      /** How long it can be read and audited after that. */
      keepSeconds: seconds.default(30 * DAY_SECONDS),
    })
    .prefault({}),
  logLevel: z.enum(LOG_THRESHOLDS).default("info"),
});

type ConfigFile = z.infer<typeof schema>;

interface PeerConfig {
  readonly name: NodeId;
  readonly region: string;
  readonly address: Address;
}

interface Listen {
  readonly host: string;
  readonly port: number;
}

/** The control interface of a node. */
export interface NodeApi extends Listen {
  readonly token: string;
  /** Whether the token is the node's own: it is kept in the data directory. */
  readonly isOwnToken: boolean;
  /** Token that opens `/metrics` on addresses other than loopback. */
  readonly metricsToken: string | null;
}

export interface LedgerConfig {
  readonly file: string;
  /** Role in greetings: nodes of the job ledger are gates, those below a manager are managers. */
  readonly role: "gate" | "manager";
  /** The command that starts it. */
  readonly service: "ledger" | "manager" | "gate";
  /** Secrets accepted from clients; null: clients are not accepted. */
  readonly readClientSecrets: (() => readonly string[]) | null;
  /** Minor version of the protocol that it speaks. */
  readonly protocolMinor: number;
  readonly name: NodeId;
  readonly region: string;
  readonly cluster: string;
  readonly environment: string;
  readonly bind: Listen;
  readonly api: NodeApi;
  readonly peers: readonly PeerConfig[];
  readonly dataDir: string;
  readonly readSecrets: () => readonly string[];
  /** Null in plaintext. */
  readonly secretFile: string | null;
  readonly tls: ConfigFile["tls"] | null;
  readonly node: LedgerNodeConfig;
  readonly checkpoint: { readonly entries: number; readonly ms: number; readonly keep: number };
  readonly archiveKeepMs: number;
  readonly logLevel: LogThreshold;
}

export function readLedgerConfig(file: string): ConfigResult<LedgerConfig> {
  const advice = '"hyperscale ledger init --nodes 3 --dir D" writes examples';
  return readConfigFile(file, advice, checkLedgerConfig);
}

/** `file`: where the value is from, and where its paths begin. */
export function checkLedgerConfig(file: string, value: unknown): ConfigResult<LedgerConfig> {
  const parsed = checkSchema(schema, file, value);
  if (!parsed.ok) return parsed;
  const problems: string[] = [];
  const config = assemble(file, parsed.config, (text) => problems.push(`${file}: ${text}`));
  return problems.length === 0 ? { ok: true, config } : { ok: false, problems };
}

function assemble(
  file: string,
  data: ConfigFile,
  complain: (problem: string) => void,
): LedgerConfig {
  const at = (path: string): string => resolve(dirname(file), path);
  const names = [data.name, ...data.peers.map((peer) => peer.name)];
  const twice = names.find((one, index) => names.indexOf(one) !== index);
  if (twice === data.name) complain(`peers: "${twice}" is this node itself; list only the others`);
  else if (twice !== undefined) complain(`peers: "${twice}" is listed twice`);
  if (data.fewNodes === "refuse" && names.length < Math.min(3, data.replicas)) {
    complain(`peers: ${names.length} nodes are too few for ${data.replicas} replicas`);
  }
  for (const problem of checkIdempotencyProfile(IDEMPOTENCY_PROFILES[data.idempotency])) {
    complain(`idempotency: ${problem}`);
  }
  const { tls } = data;
  for (const key of ["cert", "key", "ca"] as const) {
    if (tls !== undefined && !existsSync(at(tls[key])))
      complain(`tls.${key}: ${tls[key]}: no such file`);
  }
  return {
    file,
    role: "gate",
    service: "ledger",
    readClientSecrets: null,
    protocolMinor: PROTOCOL.minor,
    name: nodeId(data.name),
    region: data.region,
    cluster: data.cluster,
    environment: data.environment,
    bind: listen(data.bind),
    api: { ...listen(data.api), ...apiTokens(data, at, complain) },
    peers: data.peers.map((peer) => ({
      name: nodeId(peer.name),
      region: peer.region,
      address: peer.address as Address,
    })),
    dataDir: at(data.dataDir),
    readSecrets: secretSource(data, at, complain),
    secretFile: data.secretFile === undefined ? null : at(data.secretFile),
    tls:
      tls === undefined ? null : { ...tls, cert: at(tls.cert), key: at(tls.key), ca: at(tls.ca) },
    node: nodeConfig(data),
    checkpoint: {
      entries: data.checkpoint.entries,
      ms: data.checkpoint.seconds * 1_000,
      keep: data.checkpoint.keep,
    },
    archiveKeepMs: data.archive.keepSeconds * 1_000,
    logLevel: data.logLevel,
  };
}

function listen(text: string): Listen {
  const parsed = parseAddress(text);
  return parsed.ok ? { host: parsed.host, port: parsed.port } : { host: "", port: 0 };
}

/** Times scale with the lease: a short one on a bench is renewed and taken over as often as it must. */
function nodeConfig(data: ConfigFile): LedgerNodeConfig {
  const { vsr } = LEDGER_NODE_DEFAULTS;
  const { leaseMs } = data;
  const upTo = (normal: number, share: number): number =>
    Math.max(1, Math.min(normal, Math.floor(leaseMs * share)));
  const renewMs = upTo(vsr.renewMs, 0.3);
  const idempotency: IdempotencyProfileName = data.idempotency;
  return {
    ...LEDGER_NODE_DEFAULTS,
    idempotency: IDEMPOTENCY_PROFILES[idempotency].authority,
    gateCache: IDEMPOTENCY_PROFILES[idempotency].gate,
    replicas: data.replicas,
    fewGates: data.fewNodes,
    datacenters: data.datacenters,
    requestTimeoutMs: data.requestTimeoutMs,
    routeRetryMs: Math.min(
      LEDGER_NODE_DEFAULTS.routeRetryMs,
      Math.floor(data.requestTimeoutMs / 4),
    ),
    retentionMs: data.archive.afterSeconds * 1_000,
    recoveredAheadMsMax: data.clockAheadMs,
    vsr: {
      ...vsr,
      leaseMs,
      renewMs,
      leaseMarginMs: upTo(vsr.leaseMarginMs, 0.05),
      retransmitMs: Math.min(vsr.retransmitMs, renewMs),
      rankDelayMs: upTo(vsr.rankDelayMs, 0.25),
      viewChangeTimeoutMs: upTo(vsr.viewChangeTimeoutMs, 1),
      viewChangeBackoffMs: upTo(vsr.viewChangeBackoffMs, 0.2),
    },
  };
}

/** Called when the data directory is there: a node that refuses to start changes nothing on its disk. */
export function keepTokenOf(dataDir: string, { host, isOwnToken, port, token }: NodeApi): void {
  if (isOwnToken) keepOwnToken(dataDir, token, formatAddress(host, port));
}

export function apiTokens(
  data: Pick<ConfigFile, "apiTokenFile" | "metricsTokenFile" | "dataDir">,
  at: (path: string) => string,
  complain: (problem: string) => void,
): Pick<NodeApi, "token" | "isOwnToken" | "metricsToken"> {
  const read = (name: string, source: () => string): string => {
    try {
      return source();
    } catch (error) {
      complain(`${name}: ${errorText(error)}`);
      return "";
    }
  };
  const { apiTokenFile: file, metricsTokenFile: metricsFile } = data;
  const own = (): string => ownToken(at(data.dataDir));
  const token = read("apiTokenFile", file === undefined ? own : () => readTokenFile(at(file)));
  const metricsToken =
    metricsFile === undefined
      ? null
      : read("metricsTokenFile", () => readTokenFile(at(metricsFile)));
  if (metricsToken === token) complain("metricsTokenFile: holds the token of apiTokenFile");
  return { token, isOwnToken: file === undefined, metricsToken };
}

export function secretSource(
  data: Pick<ConfigFile, "secretFile" | "insecurePlaintext">,
  at: (path: string) => string,
  complain: (problem: string) => void,
): () => readonly string[] {
  if (data.secretFile === undefined) {
    if (!data.insecurePlaintext) {
      complain(
        'secretFile: is missing; make one with "hyperscale keygen > cluster.key", ' +
          "or say insecurePlaintext: true for development",
      );
    }
    return () => [PLAINTEXT];
  }
  const file = at(data.secretFile);
  const read = (): readonly string[] => {
    const secrets = parseSecrets(readFileSync(file, "utf8"));
    const switchName = data.insecurePlaintext ? null : "insecurePlaintext: true";
    const problem = secretsProblem(secrets, switchName);
    if (problem !== null) throw new Error(`${file}: ${problem}`);
    return secrets;
  };
  if (!existsSync(file)) {
    complain(`secretFile: ${file}: no such file; make one with "hyperscale keygen > ${file}"`);
    return read;
  }
  try {
    read();
  } catch (error) {
    complain(`secretFile: ${errorText(error)}`);
  }
  return read;
}

/** All nodes of the ledger, in the same order on every node. */
export function sitesOf(config: LedgerConfig): readonly Site[] {
  const self = { node: config.name, region: config.region };
  const others = config.peers.map((peer) => ({ node: peer.name, region: peer.region }));
  return [self, ...others].sort((a, b) => (a.node < b.node ? -1 : 1));
}
