/** The right side of a threshold: numbers with the units that make sense for the left side. */

import { parseDuration } from "../../base/duration.ts";
import { formatMs, formatNumber, formatPercent, formatRate } from "./format.ts";
import type { ThresholdUnit } from "./threshold.ts";

export type ValueKind = "duration" | "share" | "perSecond" | "number" | "any";

type ValueResult =
  | {
      readonly ok: true;
      readonly value: number;
      readonly unit: ThresholdUnit;
      readonly text: string;
    }
  | { readonly ok: false; readonly problem: string };

const NUMBER = "-?\\d+(?:\\.\\d+)?(?:e[+-]?\\d{1,3})?";
const PLAIN: ThresholdUnit = { kind: "plain", scale: 1 };
const MS: ThresholdUnit = { kind: "duration", scale: 1 };

export function parseValue(text: string, kind: ValueKind): ValueResult {
  const match = new RegExp(`^(${NUMBER})\\s*(%|/s|)$`, "i").exec(text);
  if (match === null) return parseTime(text, kind);
  const [, digits = "", unit = ""] = match;
  const amount = Number(digits);
  if (!Number.isFinite(amount)) return refuse(`"${text}" is too large`);
  if (unit === "%") {
    if (kind === "share" || kind === "any") {
      return {
        ok: true,
        value: amount / 100,
        unit: { kind: "percent", scale: 0.01 },
        text: `${digits}%`,
      };
    }
    return refuse(`"${text}" is a percentage, but ${expected(kind)}`);
  }
  if (unit === "/s") {
    if (kind === "perSecond" || kind === "any") {
      return {
        ok: true,
        value: amount,
        unit: { kind: "perSecond", scale: 1 },
        text: `${digits}/s`,
      };
    }
    return refuse(`"${text}" is a rate per second, but ${expected(kind)}`);
  }
  if (kind === "share" && amount > 1) {
    return refuse(`a share lies between 0 and 1; did you mean ${digits}%?`);
  }
  if (kind === "duration") {
    if (amount === 0) return { ok: true, value: 0, unit: MS, text: `${digits}ms` };
    return refuse(`"${text}" has no unit; write ${digits}ms or ${digits}s`);
  }
  if (kind === "perSecond") {
    return { ok: true, value: amount, unit: { kind: "perSecond", scale: 1 }, text: `${digits}/s` };
  }
  return { ok: true, value: amount, unit: PLAIN, text: digits };
}

function parseTime(text: string, kind: ValueKind): ValueResult {
  const looksLikeTime = /^\d+(?:\.\d+)?(?:us|ms|s|m|h|d)/.test(text);
  if (kind !== "duration" && kind !== "any") {
    const what = looksLikeTime ? "a duration" : "not a number";
    return refuse(`"${text}" is ${what}, but ${expected(kind)}`);
  }
  if (kind === "any" && !looksLikeTime) {
    return refuse(`"${text}" is not a value; use a number, a percentage, or a duration`);
  }
  const duration = parseDuration(text);
  if (!duration.ok) return duration;
  const single = /^\d+(?:\.\d+)?(us|ms|s|m|h|d)$/.exec(text);
  const unitMs = parseDuration(`1${single?.[1] ?? "ms"}`);
  const scale = unitMs.ok ? unitMs.ms : 1;
  return { ok: true, value: duration.ms, unit: { kind: "duration", scale }, text };
}

function refuse(problem: string): ValueResult {
  return { ok: false, problem };
}

function expected(kind: ValueKind): string {
  switch (kind) {
    case "duration":
      return 'this is a time: write for example "200ms"';
    case "share":
      return 'this is a share: write for example "1%" or "0.01"';
    case "perSecond":
      return 'this is a rate: write for example "1000/s"';
    case "number":
      return "this is a plain number";
    case "any":
      return "a number was expected";
  }
}

/** For people: "312 ms", "1.4 %", "980/s", "12". */
function showValue(value: number, { kind }: ThresholdUnit): string {
  switch (kind) {
    case "duration":
      return formatMs(value);
    case "percent":
      return formatPercent(value);
    case "perSecond":
      return formatRate(value);
    case "plain":
      return formatNumber(value);
  }
}

/**
 * The measured value beside its limit. A value that differs from the limit must not read like it: "200 ms" does not
 * explain why `latency.p99 < 200ms` failed, "200.04 ms" does.
 */
export function showActual(actual: number, limit: number, unit: ThresholdUnit): string {
  const limitText = showValue(limit, unit);
  let text = showValue(actual, unit);
  for (let digits = 4; digits <= DIGITS_MAX && actual !== limit; digits++) {
    if (text !== limitText) return text;
    const exact = exactText(actual, digits, unit);
    if (exact !== exactText(limit, digits, unit)) text = exact;
  }
  return text;
}

/** As many as a double has. */
const DIGITS_MAX = 17;

function exactText(value: number, digits: number, { kind }: ThresholdUnit): string {
  const shown = Number((kind === "percent" ? value * 100 : value).toPrecision(digits));
  return `${shown}${{ duration: " ms", percent: " %", perSecond: "/s", plain: "" }[kind]}`;
}
