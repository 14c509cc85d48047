/** The right side of a threshold: numbers with the units that make sense for the left side. */

import { formatDuration, parseDuration } from "../../base/duration.ts";
import type { ThresholdUnit } from "./threshold.ts";

export type ValueKind = "duration" | "share" | "perSecond" | "number" | "any";

export type ValueResult =
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
  if (kind === "duration") return { ok: true, value: amount, unit: MS, text: `${digits}ms` };
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
export function showValue(value: number, unit: ThresholdUnit): string {
  switch (unit.kind) {
    case "duration":
      return formatDuration(value).replace(/(\d)([a-z]+)$/, "$1 $2");
    case "percent":
      return `${digits(value * 100)} %`;
    case "perSecond":
      return `${digits(value)}/s`;
    case "plain":
      return digits(value);
  }
}

function digits(value: number): string {
  if (Number.isInteger(value)) return String(value);
  const whole = Math.abs(value);
  return String(Number(value.toPrecision(whole >= 1_000 ? Math.ceil(Math.log10(whole + 1)) : 4)));
}
