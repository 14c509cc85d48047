/**
 * Configuration of a worker: one JSON file, or the same as flags. All mistakes are reported at once, before a
 * connection is made or a byte is written. (CFG-1)
 */

import { dirname, resolve } from "node:path";
import { z } from "zod";
import type { Address } from "../../core/base/ids.ts";
import { LOG_THRESHOLDS, type LogThreshold } from "../../host/ports/log.ts";
import {
  apiTokens,
  label,
  type NodeApi,
  place,
  secretSource,
  tokenFiles,
} from "../../ledger/config.ts";
import { type ConfigResult, checkSchema, readConfigFile } from "../../ledger/config-file.ts";
import { readSettings, type SettingsOf } from "../../ledger/settings.ts";
import { parseAddress } from "../../wire/address.ts";

const MANAGERS_MAX = 7;
const CORES_MAX = 1_024;

const schema = z.strictObject({
  name: label,
  datacenter: label.default("dc1"),
  cluster: label.default("hyperscale"),
  environment: label.default("default"),
  /** All managers of the datacenter. */
  managers: z
    .array(z.strictObject({ name: label, address: place }))
    .min(1, "at least one manager")
    .max(MANAGERS_MAX),
  /** CPU cores that jobs may use. */
  cores: z.number().int().min(1).max(CORES_MAX),
  api: place.optional(),
  ...tokenFiles,
  dataDir: z.string().min(1, "a path"),
  /** Whom the code of jobs runs as, when the worker was started as root; "root" leaves it the worker's rights. */
  executorUser: z.string().min(1).optional(),
  secretFile: z.string().min(1).optional(),
  insecurePlaintext: z.boolean().default(false),
  settings: z.record(z.string(), z.unknown()).default({}),
  logLevel: z.enum(LOG_THRESHOLDS).default("info"),
});

export interface WorkerNodeConfig {
  readonly name: string;
  readonly datacenter: string;
  readonly cluster: string;
  readonly environment: string;
  readonly managers: readonly { readonly name: string; readonly address: Address }[];
  readonly cores: number;
  readonly api: NodeApi | null;
  readonly dataDir: string;
  readonly executorUser: string | undefined;
  readonly secretFile: string | null;
  readonly readSecrets: () => readonly string[];
  readonly settings: SettingsOf<"worker">;
  readonly logLevel: LogThreshold;
}

export function readWorkerConfig(file: string): ConfigResult<WorkerNodeConfig> {
  const advice = '"hyperscale worker init" writes an example';
  return readConfigFile(file, advice, checkWorkerConfig);
}

/** `file`: where the value is from, and where its paths begin. */
export function checkWorkerConfig(file: string, value: unknown): ConfigResult<WorkerNodeConfig> {
  const parsed = checkSchema(schema, file, value);
  if (!parsed.ok) return parsed;
  const { config: data } = parsed;
  const problems: string[] = [];
  const at = (path: string): string => resolve(dirname(file), path);
  const complain = (problem: string): number => problems.push(`${file}: ${problem}`);
  const readSecrets = secretSource(data, at, complain);
  const { settings: values } = data;
  const settings = readSettings("worker", { file, values }, process.env, problems);
  const api = data.api === undefined ? null : parseAddress(data.api);
  const tokens = apiTokens(data, at, complain);
  if (problems.length > 0) return { ok: false, problems };
  const config: WorkerNodeConfig = {
    name: data.name,
    datacenter: data.datacenter,
    cluster: data.cluster,
    environment: data.environment,
    managers: data.managers.map((one) => ({ name: one.name, address: one.address as Address })),
    cores: data.cores,
    api: api?.ok === true ? { host: api.host, port: api.port, ...tokens } : null,
    dataDir: at(data.dataDir),
    executorUser: data.executorUser,
    secretFile: data.secretFile === undefined ? null : at(data.secretFile),
    readSecrets,
    settings,
    logLevel: data.logLevel,
  };
  return { ok: true, config };
}
