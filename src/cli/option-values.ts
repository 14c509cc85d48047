/** Parsers of option values, and accumulators for those that may be repeated. */

import { InvalidArgumentError } from "commander";
import { parseDuration } from "../core/base/duration.ts";

/** Each value as it is; it may contain commas. */
export function repeated(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** Names without commas: repeated, or separated by commas. */
export function listed(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...value.split(",").filter((part) => part !== "")];
}

/** `NAME=value`, repeatable. */
export function variables(
  pair: string,
  before: readonly (readonly [string, string])[] = [],
): readonly (readonly [string, string])[] {
  const [, name, value] = /^([^=\s]+)=(.*)$/s.exec(pair) ?? [];
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError("write it as NAME=value");
  return [...before, [name, value]];
}

export function wholeNumberFrom(min: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (Number.isSafeInteger(value) && value >= min) return value;
    throw new InvalidArgumentError(`write a whole number of at least ${min}`);
  };
}

/** A duration in milliseconds, above zero. */
export function someTime(text: string): number {
  const parsed = parseDuration(text);
  if (!parsed.ok) throw new InvalidArgumentError(parsed.problem);
  if (parsed.ms > 0) return parsed.ms;
  throw new InvalidArgumentError("must be more than zero");
}
