/** Parsers of single options: an invalid value gets a message that names the option. */

import { type Duration, parseDuration } from "../core/base/duration.ts";
import { parseShare, type Share } from "../core/base/share.ts";
import { DefinitionError } from "./errors.ts";

export const VUS_MAX = 1_000_000;
export const RATE_MAX = 10_000_000;

export function milliseconds(value: Duration, name: string, where: string): number {
  const parsed = parseDuration(value);
  if (!parsed.ok) throw new DefinitionError(`${where}: ${name}: ${parsed.problem}`);
  return parsed.ms;
}

export function required(value: Duration | undefined, name: string, where: string): number {
  if (value === undefined)
    throw new DefinitionError(`${where}: ${name} is missing; write for example ${name}: "30s"`);
  const ms = milliseconds(value, name, where);
  if (ms <= 0) throw new DefinitionError(`${where}: ${name} must be more than zero`);
  return ms;
}

export function oneOf<Value extends string>(
  value: Value,
  allowed: readonly Value[],
  name: string,
  where: string,
): Value {
  if (allowed.includes(value)) return value;
  throw new DefinitionError(
    `${where}: ${name} is "${String(value)}"; it must be one of ${allowed.join(", ")}`,
  );
}

export function whole(value: unknown, name: string, where: string, most: number): number {
  if (value === undefined)
    throw new DefinitionError(`${where}: ${name} is missing; write for example ${name}: 10`);
  if (typeof value !== "number" || !Number.isInteger(value) || value < 1 || value > most) {
    const shown = typeof value === "string" ? `"${value}"` : String(value);
    throw new DefinitionError(
      `${where}: ${name} is ${shown}; it must be a whole number of at least 1`,
    );
  }
  return value;
}

/** True means all, false none. */
export function share(value: unknown, name: string, where: string): number {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value === "number" && value >= 0 && value <= 1) return value;
  throw new DefinitionError(
    `${where}: ${name} is ${String(value)}; it must be true, or a share from 0 to 1 such as 0.1`,
  );
}

export function shareOf(value: Share, name: string, where: string): number {
  const parsed = parseShare(value);
  if (parsed !== null) return parsed;
  throw new DefinitionError(
    `${where}: ${name} is ${String(value)}; it must be a share such as "5%" or 0.05`,
  );
}

/** Per second as a number, or as text with its unit. */
export type Rate = number | `${number}/${"s" | "m" | "min" | "h"}`;

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, min: 60, h: 3_600 };

/** Leaves anything but a rate unchanged, for the check of numbers. */
export function perSecond(value: unknown): unknown {
  if (typeof value !== "string") return value;
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)\/(s|m|min|h)$/.exec(value) ?? [];
  return amount === undefined ? `"${value}"` : Number(amount) / (SECONDS[unit] ?? 1);
}

export function positive(value: unknown, name: string, where: string, most: number): number {
  if (typeof value !== "number" || !Number.isFinite(value) || value <= 0 || value > most) {
    throw new DefinitionError(
      `${where}: ${name} is ${String(value)}; it must be a number above 0 (per second), or text such as "300/s"`,
    );
  }
  return value;
}

export function atLeastZero(value: unknown, name: string, where: string): number {
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0 || value > RATE_MAX) {
    throw new DefinitionError(
      `${where}: ${name} is ${String(value)}; it must be a number of at least 0`,
    );
  }
  return value;
}
