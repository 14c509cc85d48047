/**
 * Durations as people write them: one or more of number + unit, "250ms", "30s", "1m30s", "1.5h".
 * A bare number is milliseconds. (C30-13)
 */

import { assertNever } from "./assert.ts";

export type Duration = string | number;

type DurationResult =
  | { readonly ok: true; readonly ms: number }
  | { readonly ok: false; readonly problem: string };

type Unit = "us" | "ms" | "s" | "m" | "h" | "d";

/** Longest span we accept: a year, so that deadlines stay far inside exact integers. */
export const DURATION_MS_MAX = 366 * 24 * 3_600_000;

export function parseDuration(value: unknown): DurationResult {
  if (typeof value === "number") return checked(value, String(value));
  if (typeof value !== "string")
    return refuse(`a duration is text such as "30s", not ${typeof value}`);
  const text = value.trim();
  if (text === "") return refuse('a duration is empty; write for example "30s"');
  if (!/^(?:\d+(?:\.\d+)?(?:us|ms|s|m|h|d))+$/.test(text)) {
    const hint = /^\d+(?:\.\d+)?$/.test(text) ? `; did you mean "${text}s"?` : ".";
    return refuse(
      `"${value}" is not a duration${hint} Use number + ms, s, m or h: "250ms", "30s", "1m30s"`,
    );
  }
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(us|ms|s|m|h|d)/g)) {
    total += Number(amount) * unitMs(unit as Unit);
  }
  return checked(total, text);
}

function checked(ms: number, text: string): DurationResult {
  if (!Number.isFinite(ms) || ms < 0)
    return refuse(`${text} is not a duration: it must be zero or more`);
  if (ms > DURATION_MS_MAX) return refuse(`${text} is longer than a year`);
  return { ok: true, ms };
}

function refuse(problem: string): DurationResult {
  return { ok: false, problem };
}

function unitMs(unit: Unit): number {
  switch (unit) {
    case "us":
      return 0.001;
    case "ms":
      return 1;
    case "s":
      return 1_000;
    case "m":
      return 60_000;
    case "h":
      return 3_600_000;
    case "d":
      return 86_400_000;
    default:
      return assertNever(unit);
  }
}

/**
 * A duration of a plan, in the notation `parseDuration` reads: 0.42ms, 12.3ms, 4.21s, 2m05s, 1h03m.
 * Measured times are written by core/load/results/format.ts.
 */
export function formatDuration(ms: number): string {
  if (ms < 1) return `${round(ms, 3)}ms`;
  if (ms < 1_000) return `${round(ms, ms < 10 ? 2 : ms < 100 ? 1 : 0)}ms`;
  if (ms < 60_000) return `${round(ms / 1_000, ms < 10_000 ? 2 : 1)}s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${pad(seconds % 60)}s`;
  return `${Math.floor(seconds / 3_600)}h${pad(Math.floor((seconds % 3_600) / 60))}m`;
}

function round(value: number, digits: number): string {
  return String(Number(value.toFixed(digits)));
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}
