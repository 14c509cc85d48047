/**
 * Configuration of a manager: one JSON file, or the same as flags. All mistakes are reported at once, before a socket
 * opens or a byte is written. (CFG-1)
 */

import { z } from "zod";
import type { CodeFrom } from "../../core/cluster/node/askers.ts";
import { clientSecrets, codeFrom } from "../../ledger/client-secrets.ts";
import {
  checkLedgerConfig,
  type LedgerConfig,
  label,
  name,
  place,
  tokenFiles,
} from "../../ledger/config.ts";
import { type ConfigResult, checkSchema, readConfigFile } from "../../ledger/config-file.ts";
import { readSettings, type SettingsOf } from "../../ledger/settings.ts";

/** Names become parts of job ids and group names. */
const NAME_CHARACTERS_MAX = 16;

const schema = z.strictObject({
  name: name(NAME_CHARACTERS_MAX),
  datacenter: name(NAME_CHARACTERS_MAX).default("dc1"),
  cluster: label.default("hyperscale"),
  environment: label.default("default"),
  bind: place,
  api: place,
  ...tokenFiles,
  peers: z
    .array(z.strictObject({ name: name(NAME_CHARACTERS_MAX), address: place }))
    .max(6)
    .default([]),
  dataDir: z.string().min(1, "a path"),
  secretFile: z.string().min(1).optional(),
  clientSecretFile: z.string().min(1).optional(),
  codeFrom,
  insecurePlaintext: z.boolean().default(false),
  settings: z.record(z.string(), z.unknown()).default({}),
  logLevel: z.string().optional(),
});

export interface ManagerNodeConfig {
  readonly codeFrom: CodeFrom;
  readonly ledger: LedgerConfig;
  readonly datacenter: string;
  readonly settings: SettingsOf<"manager">;
}

export function readManagerConfig(file: string): ConfigResult<ManagerNodeConfig> {
  const advice = '"hyperscale manager init" writes an example';
  return readConfigFile(file, advice, checkManagerConfig);
}

/** `file`: where the value is from, and where its paths begin. */
export function checkManagerConfig(file: string, value: unknown): ConfigResult<ManagerNodeConfig> {
  const parsed = checkSchema(schema, file, value);
  if (!parsed.ok) return parsed;
  const { codeFrom: senders, settings: values, ...others } = parsed.config;
  const { clientSecretFile, datacenter, peers, ...rest } = others;
  const node = peers.map((peer) => ({ ...peer, region: datacenter }));
  const problems: string[] = [];
  const settings = readSettings("manager", { file, values }, process.env, problems);
  const own = {
    ...{ region: datacenter, peers: node },
    ...{ leaseMs: settings.lease, clockAheadMs: settings.clockAhead },
  };
  const read = checkLedgerConfig(file, { ...rest, ...own });
  if (!read.ok) return { ok: false, problems: [...problems, ...read.problems] };
  const readClientSecrets = clientSecrets(file, clientSecretFile, problems);
  if (problems.length > 0) return { ok: false, problems };
  const { protocolMinor } = settings;
  const role = { role: "manager", service: "manager", readClientSecrets, protocolMinor } as const;
  const ledger = { ...read.config, ...role };
  return { ok: true, config: { ledger, codeFrom: senders, datacenter, settings } };
}
