/**
 * Configuration of a gate: one JSON file, or the same as flags. All mistakes are reported at once, before a socket
 * opens or a byte is written. (CFG-1)
 */

import { z } from "zod";
import type { Address } from "../../core/base/ids.ts";
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

const NAME_CHARACTERS_MAX = 16;
const DATACENTERS_MAX = 256;
const MANAGERS_MAX = 7;
const REPORTS_MAX = 16;

const named = z.strictObject({ name: name(NAME_CHARACTERS_MAX), address: place });

const schema = z.strictObject({
  name: name(NAME_CHARACTERS_MAX),
  /** Where the gate is; it begins the ids of its jobs. */
  region: name(NAME_CHARACTERS_MAX).default("gates"),
  cluster: label.default("hyperscale"),
  environment: label.default("default"),
  bind: place,
  api: place,
  ...tokenFiles,
  peers: z.array(named).max(64).default([]),
  datacenters: z
    .array(
      z.strictObject({
        name: name(NAME_CHARACTERS_MAX),
        managers: z.array(named).min(1, "at least one manager").max(MANAGERS_MAX),
      }),
    )
    .min(1, "at least one datacenter")
    .max(DATACENTERS_MAX),
  dataDir: z.string().min(1, "a path"),
  secretFile: z.string().min(1).optional(),
  clientSecretFile: z.string().min(1).optional(),
  codeFrom,
  insecurePlaintext: z.boolean().default(false),
  /** Targets for the metrics of all jobs, in the form of `--report`; `{job}` is the id of the job. */
  reports: z.array(z.string().min(1)).max(REPORTS_MAX).default([]),
  settings: z.record(z.string(), z.unknown()).default({}),
  logLevel: z.string().optional(),
});

export interface GateNodeConfig {
  readonly codeFrom: CodeFrom;
  readonly ledger: LedgerConfig;
  readonly datacenters: readonly {
    readonly name: string;
    readonly managers: readonly { readonly name: string; readonly address: Address }[];
  }[];
  readonly settings: SettingsOf<"gate">;
  readonly reports: readonly string[];
}

export function readGateConfig(file: string): ConfigResult<GateNodeConfig> {
  return readConfigFile(file, '"hyperscale gate init" writes an example', checkGateConfig);
}

/** `file`: where the value is from, and where its paths begin. */
export function checkGateConfig(file: string, value: unknown): ConfigResult<GateNodeConfig> {
  const parsed = checkSchema(schema, file, value);
  if (!parsed.ok) return parsed;
  const { settings: values, clientSecretFile, ...others } = parsed.config;
  const { codeFrom: senders, datacenters, peers, region, reports, ...rest } = others;
  const problems = datacenters
    .filter((one, at) => datacenters.findIndex((other) => other.name === one.name) !== at)
    .map((twice) => `${file}: datacenters: "${twice.name}" is listed twice`);
  const settings = readSettings("gate", { file, values }, process.env, problems);
  const read = checkLedgerConfig(file, {
    ...rest,
    leaseMs: settings.lease,
    clockAheadMs: settings.clockAhead,
    region,
    peers: peers.map((peer) => ({ ...peer, region })),
    datacenters: datacenters.map((one) => one.name),
  });
  if (!read.ok) return { ok: false, problems: [...problems, ...read.problems] };
  const readClientSecrets = clientSecrets(file, clientSecretFile, problems);
  if (problems.length > 0) return { ok: false, problems };
  const { protocolMinor } = settings;
  const own = { role: "gate", service: "gate", readClientSecrets, protocolMinor } as const;
  const ledger = { ...read.config, ...own };
  const places = datacenters.map(({ managers, ...one }) => ({
    ...one,
    managers: managers.map(({ address, ...manager }) => ({
      ...manager,
      address: address as Address,
    })),
  }));
  return {
    ok: true,
    config: { ledger, codeFrom: senders, datacenters: places, settings, reports },
  };
}
