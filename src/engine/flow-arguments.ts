/** Validates the arguments of a flow's context functions: callers may write JavaScript. */

import { type Duration, parseDuration } from "../core/base/duration.ts";

export function misused(first: unknown, given: unknown): string {
  const name = typeof first === "string" ? `step("${first}", …)` : "step(…)";
  const got = given === null ? "null" : typeof given;
  return `${name} takes a described call, such as shop.get("/"), or a function; it got ${got}`;
}

export function millisecondsOf(value: Duration, what: string): number {
  if (typeof value === "number" && value >= 0) return value;
  const parsed = parseDuration(value);
  if (!parsed.ok) throw new TypeError(`${what}: ${parsed.problem}`);
  return parsed.ms;
}
