/**
 * Every setting of gates, managers and workers in one table: name, variable, default, unit and roles. A value comes
 * from the environment, else from `settings` of the configuration, else from here. All mistakes are reported at once,
 * and each node logs its effective settings. (CFG-1, CFG-2, CFG-3)
 *
 * Values that two nodes must agree on are not settings: limits of the wire and of the logs are defined beside what they
 * bound.
 */

import { formatDuration, parseDuration } from "../core/base/duration.ts";
import { MINOR_MIN, PROTOCOL } from "../wire/version.ts";

export type SettingRole = "gate" | "manager" | "worker";

interface Setting {
  readonly roles: readonly SettingRole[];
  /** Durations are kept in milliseconds. */
  readonly unit: "duration" | "bytes" | "count";
  readonly value: number;
  readonly least: number;
  readonly most: number;
  /** Purpose of the setting, and when to change it. */
  readonly about: string;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const MIB = 1_048_576;
const GIB = 1_024 * MIB;

const ALL_LEDGERS = ["gate", "manager"] as const;
const ALL = ["gate", "manager", "worker"] as const;

export const SETTINGS = {
  protocolMinor: {
    ...{ roles: ALL, unit: "count", value: PROTOCOL.minor, least: MINOR_MIN, most: PROTOCOL.minor },
    about:
      "Speaks this minor version of the protocol. The old one keeps an upgrade reversible until all nodes are new.",
  },
  lease: {
    ...{ roles: ALL_LEDGERS, unit: "duration", value: 3 * SECOND, least: 300, most: 10 * MINUTE },
    about:
      "A dead leader is replaced after this. Longer over slow networks; safety does not rest on it.",
  },
  clockAhead: {
    ...{
      roles: ALL_LEDGERS,
      unit: "duration",
      value: 24 * HOUR,
      least: 10 * SECOND,
      most: 24 * HOUR,
    },
    about:
      "A start waits until its clock has passed the times in its own log, but ignores those further ahead than this.",
  },
  blobStore: {
    ...{ roles: ALL_LEDGERS, unit: "bytes", value: 10 * GIB, least: MIB, most: 1_024 * GIB },
    about: "Files of jobs and results on disk; the longest unused go, needed ones never.",
  },
  stopDeadline: {
    ...{ roles: ALL_LEDGERS, unit: "duration", value: 20 * SECOND, least: SECOND, most: HOUR },
    about: "SIGTERM lets others lead and waits so long for what is under way.",
  },
  workerTimeout: {
    ...{
      roles: ["manager"],
      unit: "duration",
      value: 3 * SECOND,
      least: SECOND,
      most: 10 * MINUTE,
    },
    about: "A worker that is silent for so long is lost. Longer than any pause of its machine.",
  },
  deadWorkerReap: {
    ...{
      roles: ["manager"],
      unit: "duration",
      value: 15 * MINUTE,
      least: SECOND,
      most: 720 * HOUR,
    },
    about: "A lost worker is shown for so long, then forgotten.",
  },
  loadTimeout: {
    ...{ roles: ["manager"], unit: "duration", value: MINUTE, least: SECOND, most: HOUR },
    about:
      "From the order to open a core until it has loaded the job, fetching the files included.",
  },
  lostShareWait: {
    ...{ roles: ["manager"], unit: "duration", value: MINUTE, least: SECOND, most: HOUR },
    about:
      "The share of a lost worker waits so long for cores that become free; then its job goes on without.",
  },
  orderRetry: {
    ...{ roles: ["manager"], unit: "duration", value: SECOND, least: 50, most: MINUTE },
    about: "An order to a worker without an answer is sent again after this.",
  },
  orderTimeout: {
    ...{ roles: ["manager"], unit: "duration", value: 20 * SECOND, least: SECOND, most: HOUR },
    about: "A worker that lives and answers nothing about a job for so long is lost to this job.",
  },
  proposeRetry: {
    ...{ roles: ["manager"], unit: "duration", value: 500, least: 50, most: MINUTE },
    about: "An entry that was not committed is proposed again after this.",
  },
  processesPerCore: {
    ...{ roles: ["manager"], unit: "count", value: 4, least: 1, most: 8 },
    about: "Executor processes per core of a worker, for workflows that run side by side.",
  },
  queuedPerCore: {
    ...{ roles: ["manager"], unit: "count", value: 50, least: 1, most: 10_000 },
    about:
      "Requests, cores to open and news that may wait at a worker, for each of its cores, before it gets no more.",
  },
  stuckJob: {
    ...{
      roles: ["manager"],
      unit: "duration",
      value: 2 * MINUTE,
      least: 10 * SECOND,
      most: 720 * HOUR,
    },
    about:
      "A job of which nothing advances for so long is timed out: no call, no step, no moment of its plan.",
  },
  gateSilence: {
    ...{ roles: ["manager"], unit: "duration", value: 5 * MINUTE, least: SECOND, most: 24 * HOUR },
    about: "A job that is overdue and that no gate decides on is timed out here after this.",
  },
  coresPerTenant: {
    ...{ roles: ["manager"], unit: "count", value: 0, least: 0, most: 65_536 },
    about: "Cores that jobs of one tenant may hold at once; 0: as many as there are.",
  },
  coresPerJob: {
    ...{ roles: ["manager"], unit: "count", value: 0, least: 0, most: 65_536 },
    about: "Cores that one job may hold; 0: as many as there are.",
  },
  waitingPerTenant: {
    ...{ roles: ["manager"], unit: "count", value: 0, least: 0, most: 1_000 },
    about: "Jobs of one tenant that may wait for cores; 0: as many as the queue holds.",
  },
  askTimeout: {
    ...{ roles: ["gate"], unit: "duration", value: 3 * SECOND, least: 100, most: 5 * MINUTE },
    about: "A manager that has not answered is asked again, or another, after this.",
  },
  capacityInterval: {
    ...{ roles: ["gate"], unit: "duration", value: SECOND, least: 100, most: MINUTE },
    about: "How often datacenters are asked what room they have.",
  },
  datacenterSilence: {
    ...{ roles: ["gate"], unit: "duration", value: 5 * SECOND, least: SECOND, most: 10 * MINUTE },
    about: "A datacenter that has told nothing for so long gets no new jobs.",
  },
  observeInterval: {
    ...{ roles: ["gate"], unit: "duration", value: 200, least: 50, most: 10 * SECOND },
    about: "How often a job that runs is asked after in its datacenter.",
  },
  startLead: {
    ...{ roles: ["gate"], unit: "duration", value: 250, least: 10, most: 10 * SECOND },
    about:
      "From the decision to begin to the beginning. Longer than an order takes to every datacenter.",
  },
  queuedElsewhere: {
    ...{ roles: ["gate"], unit: "duration", value: 10 * SECOND, least: SECOND, most: HOUR },
    about: "A job that waits for cores goes to a datacenter with free ones after this.",
  },
  datacenterLost: {
    ...{ roles: ["gate"], unit: "duration", value: MINUTE, least: SECOND, most: HOUR },
    about: "A datacenter that is silent for so long after its plan is over is given up.",
  },
  allStuck: {
    ...{
      roles: ["gate"],
      unit: "duration",
      value: 3 * MINUTE,
      least: 10 * SECOND,
      most: 720 * HOUR,
    },
    about: "A job that advances in none of its datacenters for so long is timed out.",
  },
  wakeInterval: {
    ...{ roles: ["gate"], unit: "duration", value: 5 * SECOND, least: SECOND, most: MINUTE },
    about: "How often jobs without a leader here are looked after.",
  },
  isolation: {
    ...{ roles: ["worker"], unit: "duration", value: MINUTE, least: SECOND, most: 24 * HOUR },
    about: "Load ends when no manager has answered for so long: nobody could stop it.",
  },
  drainDeadline: {
    ...{ roles: ["worker"], unit: "duration", value: 30 * SECOND, least: SECOND, most: 24 * HOUR },
    about: "SIGTERM waits so long for the jobs that run here; then other workers get what is left.",
  },
  cache: {
    ...{ roles: ["worker"], unit: "bytes", value: 2 * GIB, least: MIB, most: 1_024 * GIB },
    about: "Files of jobs on disk; the longest unused go.",
  },
} as const satisfies Readonly<Record<string, Setting>>;

type SettingName = keyof typeof SETTINGS;
export type SettingsOf<Role extends SettingRole> = {
  readonly [Name in SettingName as Role extends (typeof SETTINGS)[Name]["roles"][number]
    ? Name
    : never]: number;
};

/** `workerTimeout` is HYPERSCALE_WORKER_TIMEOUT. */
export function variableOf(name: string): string {
  return `HYPERSCALE_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

export function settingsOfRole(role: SettingRole): readonly (readonly [string, Setting])[] {
  return Object.entries<Setting>(SETTINGS).filter(([, { roles }]) => roles.includes(role));
}

/** `file`: the configuration that contains `values`. */
export function readSettings<Role extends SettingRole>(
  role: Role,
  { file, values }: { readonly file: string; readonly values: Readonly<Record<string, unknown>> },
  env: Readonly<Record<string, string | undefined>>,
  problems: string[],
): SettingsOf<Role> {
  const own = settingsOfRole(role);
  for (const name of Object.keys(values))
    if (!own.some(([known]) => known === name))
      problems.push(`${file}: settings.${name}: a ${role} has no such setting`);
  const found = own.map(([name, setting]) => {
    const variable = variableOf(name);
    const fromEnvironment = env[variable];
    const given = fromEnvironment ?? values[name];
    if (given === undefined) return [name, setting.value] as const;
    const place = fromEnvironment === undefined ? `${file}: settings.${name}` : variable;
    const read = readValue(setting, given);
    if (typeof read === "number") return [name, read] as const;
    problems.push(`${place}: ${read}`);
    return [name, setting.value] as const;
  });
  return Object.fromEntries(found) as SettingsOf<Role>;
}

/** A number, or what is wrong. */
function readValue(setting: Setting, given: unknown): number | string {
  const { least, most, unit } = setting;
  const value =
    unit === "duration" ? durationOf(given) : unit === "bytes" ? bytesOf(given) : countOf(given);
  if (typeof value === "string") return value;
  if (value >= least && value <= most) return value;
  return `${textOf(unit, value)} is not between ${textOf(unit, least)} and ${textOf(unit, most)}`;
}

/** A plain number is seconds. (CFG-2) */
function durationOf(given: unknown): number | string {
  const seconds = typeof given === "string" ? Number(given) : given;
  if (typeof seconds === "number" && !Number.isNaN(seconds) && given !== "")
    return seconds * SECOND;
  const parsed = parseDuration(given);
  return parsed.ok ? parsed.ms : parsed.problem;
}

const UNITS: Readonly<Record<string, number>> = { "": 1, KiB: 1_024, MiB: MIB, GiB: GIB };

function bytesOf(given: unknown): number | string {
  const [, amount = "", unit = ""] = /^(\d+)\s*(KiB|MiB|GiB)?$/.exec(String(given)) ?? [];
  if (amount === "") return `"${String(given)}" is not a size: write bytes, or 512MiB, or 2GiB`;
  return Number(amount) * (UNITS[unit] ?? 1);
}

function countOf(given: unknown): number | string {
  const value = Number(given);
  return given !== "" && Number.isInteger(value)
    ? value
    : `"${String(given)}" is not a whole number`;
}

/** As people write it. */
export function textOf(unit: Setting["unit"], value: number): string {
  if (unit === "duration") return formatDuration(value);
  if (unit === "count") return String(value);
  const size = Object.entries(UNITS).findLast(([, bytes]) => value % bytes === 0);
  return size === undefined ? String(value) : `${value / size[1]}${size[0]}`;
}

/** Effective settings of a node, for its log. Contains no secret. (CFG-3) */
export function effectiveSettings(
  role: SettingRole,
  values: Readonly<Record<string, number>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    settingsOfRole(role).map(([name, { unit, value }]) => [
      name,
      textOf(unit, values[name] ?? value),
    ]),
  );
}
