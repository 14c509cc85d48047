/**
 * `NAME=TARGET,setting=value,…` as given to `--report`, to the options of a workflow and to `run()`. Secrets are only
 * referenced, `env:NAME` or `file:PATH`; their values stay in this process and are removed from every text that leaves
 * a reporter.
 */

import { readFileSync } from "node:fs";
import { parseDuration } from "../core/base/duration.ts";
import { maskSecrets } from "../core/base/mask-credentials.ts";
import { didYouMean } from "../core/base/nearest.ts";
import { SECRET_BYTES_MAX } from "./limits.ts";

/** Shorter parts of a secret, such as "Bearer", are not secret. */
const SECRET_WORD_LENGTH_MIN = 8;

/** Settings of a reporter that can never work. */
export class ReporterError extends Error {
  override readonly name = "ReporterError";
}

export interface SettingDescription {
  readonly kind: "text" | "secret" | "duration" | "whole" | "choice" | "switch";
  readonly about: string;
  /** Without a default the setting is required, unless it is optional. */
  readonly default?: string;
  readonly optional?: true;
  readonly choices?: readonly string[];
}

export type Settings = Readonly<Record<string, SettingDescription>>;

type Value<Described extends SettingDescription> = Described["kind"] extends "duration" | "whole"
  ? number
  : Described["kind"] extends "switch"
    ? boolean
    : string;

/** Parsed settings of a reporter: durations in milliseconds. */
export type SettingValues<Described extends Settings> = {
  readonly [Name in keyof Described]: Described[Name] extends { readonly optional: true }
    ? Value<Described[Name]> | undefined
    : Value<Described[Name]>;
};

export interface ReportSpec {
  readonly name: string;
  readonly target: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** A comma begins a setting only where a name and an equals sign follow. */
export function parseReport(text: string): ReportSpec {
  const [, name, rest = ""] = /^([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(text) ?? [];
  if (name === undefined)
    throw new ReporterError(
      `report "${maskSecrets(text)}" is not NAME=TARGET, for example ndjson=points.ndjson`,
    );
  const [target = "", ...parts] = rest.split(/,(?=[a-z][A-Za-z]*=)/);
  const settings = Object.fromEntries(
    parts.map((part): [string, string] => {
      const at = part.indexOf("=");
      return [part.slice(0, at), part.slice(at + 1)];
    }),
  );
  return { name, target, settings };
}

/** Values of secret references, removed from every text. */
export class Secrets {
  readonly #values: string[] = [];
  readonly #env: Readonly<Record<string, string | undefined>>;

  constructor(env: Readonly<Record<string, string | undefined>>) {
    this.#env = env;
  }

  static isReference(text: string): boolean {
    return /^(env|file):/.test(text);
  }

  /** `where` opens the message when there is no such variable or file. */
  read(reference: string, where: string): string {
    const [, kind, name = ""] = /^(env|file):(.*)$/s.exec(reference) ?? [];
    const value = kind === "env" ? this.#env[name] : readSecretFile(name, where);
    if (value === undefined || value === "")
      throw new ReporterError(`${where}: the environment has no variable ${name}`);
    this.#values.push(value, ...secretParts(value));
    return value;
  }

  scrub(text: string): string {
    const bare = this.#values.reduce((sum, value) => sum.replaceAll(value, "***"), text);
    return maskSecrets(bare);
  }
}

/**
 * Parts of a secret that a server may repeat: the password of an address, the path of a hook, the token of a header.
 */
function secretParts(value: string): string[] {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(value)) return longWords(value.split(/[\s:=]+/));
  const [, password] = /^[^:]+:\/\/[^/?#]*?:([^/?#]*)@/.exec(value) ?? [];
  const [, path = "", query = ""] = /^[^:]+:\/\/[^/?#]*([^?#]*)\??([^#]*)/.exec(value) ?? [];
  const values = query.split("&").map((pair) => pair.slice(pair.indexOf("=") + 1));
  // The path of other addresses is the name of a database, which a message may show.
  const words = /^https?:/i.test(value) ? [path, ...path.split("/"), ...values] : values;
  const parts = [...(password === undefined ? [] : [password]), ...longWords(words)];
  return [...new Set(parts.flatMap((part) => [part, decoded(part)]))].sort(byLength);
}

function longWords(words: readonly string[]): string[] {
  return words.filter((word) => word.length >= SECRET_WORD_LENGTH_MIN);
}

/** Longer ones first: removing a part of one would leave the rest of it. */
function byLength(a: string, b: string): number {
  return b.length - a.length;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function readSecretFile(path: string, where: string): string {
  try {
    const bytes = readFileSync(path);
    if (bytes.length > SECRET_BYTES_MAX)
      throw new ReporterError(`${where}: ${path} is larger than ${SECRET_BYTES_MAX} bytes`);
    return bytes.toString("utf8").trim();
  } catch (error) {
    if (error instanceof ReporterError) throw error;
    throw new ReporterError(`${where}: cannot read ${path}: ${(error as Error).message}`);
  }
}

/** Returns the target; credentials only by reference. */
export function targetOf({ name, target }: ReportSpec, secrets: Secrets): string {
  if (Secrets.isReference(target)) return secrets.read(target, `report ${name}`);
  if (/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*@/i.test(target))
    throw new ReporterError(
      `report ${name}: credentials do not go on a command line; put the whole address into a ` +
        `variable and write ${name}=env:NAME`,
    );
  return target;
}

export function settingValues<Described extends Settings>(
  described: Described,
  { name, settings }: ReportSpec,
  secrets: Secrets,
): SettingValues<Described> {
  const stray = Object.keys(settings).find((given) => !(given in described));
  if (stray !== undefined)
    throw new ReporterError(
      `report ${name}: there is no setting "${stray}"${didYouMean(stray, Object.keys(described))}`,
    );
  const values = Object.entries(described).map(([setting, description]) => {
    const given = settings[setting] ?? description.default;
    const where = `report ${name}: ${setting}`;
    if (given !== undefined) return [setting, settingValue(given, description, where, secrets)];
    if (description.optional === true) return [setting, undefined];
    throw new ReporterError(`${where} is missing: ${description.about}`);
  });
  return Object.fromEntries(values) as SettingValues<Described>;
}

function settingValue(
  given: string,
  { choices = [], kind }: SettingDescription,
  where: string,
  secrets: Secrets,
): string | number | boolean {
  if (kind === "secret") {
    if (Secrets.isReference(given)) return secrets.read(given, where);
    throw new ReporterError(`${where} is a secret: write env:NAME or file:PATH instead of it`);
  }
  const text = Secrets.isReference(given) ? secrets.read(given, where) : given;
  if (kind === "duration") return durationMs(text, where);
  if (kind === "whole") {
    if (!/^\d{1,15}$/.test(text)) throw new ReporterError(`${where} must be a whole number`);
    return Number(text);
  }
  const allowed = kind === "switch" ? ["true", "false"] : choices;
  if ((kind === "switch" || kind === "choice") && !allowed.includes(text))
    throw new ReporterError(`${where} is one of ${allowed.join(", ")}`);
  return kind === "switch" ? text === "true" : text;
}

function durationMs(text: string, where: string): number {
  const parsed = parseDuration(text);
  if (!parsed.ok) throw new ReporterError(`${where}: ${parsed.problem}`);
  return parsed.ms;
}
