/**
 * Numbers for people. The terminal, the report page, JUnit, `compare`, `ping`, threshold texts and the
 * tables of the command line all write their figures here, so that one run reads the same everywhere.
 *
 * - Measured figures have three significant digits and a unit: `1.23 ms`, `45.6 MB`, `31.2/s`. From
 *   one upwards they keep trailing zeros, so that figures below each other keep their places.
 * - Counts are exact and grouped by thousands: `1,234,567`.
 * - A larger value never reads as a smaller one, and what is not exactly 0 % or 100 % never reads as
 *   that.
 * - The compact forms are for narrow places: chart axes, live panels, bars.
 *
 * Files for machines (summary.json, CSV) hold plain numbers and do not come here. Durations of a plan
 * are written by `formatDuration` of core/base, in the notation in which users write them.
 */

import type { CheckSummary } from "./model.ts";

const NONE = "–";
/** Beyond a year the minutes are left out. */
const HOURS_EXACT_MAX = 9_999;

/** Latencies and other measured times: 42.0 µs, 1.23 ms, 123 ms, 1.23 s, 2m05s, 1h03m. */
export function formatMs(ms: number, digits: 2 | 3 = 3): string {
  if (!Number.isFinite(ms)) return NONE;
  if (ms === 0) return "0 ms";
  if (ms < 0) return `-${formatMs(-ms, digits)}`;
  // From here on the text would be a full thousand of its unit, or a full minute.
  const full = digits === 3 ? 999.5 : 995;
  if (ms < full / 1_000) return `${significant(ms * 1_000, digits)} µs`;
  if (ms < full) return `${significant(ms, digits)} ms`;
  if (ms < (digits === 3 ? 59_950 : 59_500)) return `${significant(ms / 1_000, digits)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${twoPlaces(seconds % 60)}s`;
  const hours = Math.floor(seconds / 3_600);
  if (hours > HOURS_EXACT_MAX) return `${formatCompact(hours)}h`;
  return `${formatCount(hours)}h${twoPlaces(Math.floor((seconds % 3_600) / 60))}m`;
}

/** Durations and times of a run, which are known in seconds: 0 s, 30.0 s, 2m05s. */
export function formatSeconds(seconds: number): string {
  return seconds === 0 ? "0 s" : formatMs(seconds * 1_000);
}

/** A running clock: 00:12, 12:05, 1:02:03. */
export function formatClock(seconds: number): string {
  if (!Number.isFinite(seconds)) return "--:--";
  const whole = Math.max(0, Math.floor(seconds));
  const hours = Math.floor(whole / 3_600);
  const rest = `${twoPlaces(Math.floor((whole % 3_600) / 60))}:${twoPlaces(whole % 60)}`;
  if (hours > HOURS_EXACT_MAX) return `${formatCompact(hours)}h`;
  return hours === 0 ? rest : `${hours}:${rest}`;
}

/** Exact, grouped: 1,234,567. */
export function formatCount(count: number): string {
  if (!Number.isFinite(count)) return NONE;
  if (Math.abs(count) >= 1e15) return count.toExponential(2);
  const digits = String(Math.round(Math.abs(count)));
  let grouped = "";
  for (let end = digits.length; end > 0; end -= 3) {
    const part = digits.slice(Math.max(0, end - 3), end);
    grouped = grouped === "" ? part : `${part},${grouped}`;
  }
  return count < 0 && digits !== "0" ? `-${grouped}` : grouped;
}

/** A count with its noun: 1 core, 2 cores. */
export function formatCounted(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** A compact count: 9,999, 12.3k, 123k, 1.23M. */
export function formatCompact(count: number): string {
  if (!Number.isFinite(count)) return NONE;
  if (count <= -9_999.5) return `-${formatCompact(-count)}`;
  if (count < 9_999.5) return formatCount(count);
  return scaled(count, ["", "k", "M", "G", "T"], "");
}

/** A number without a unit: 0.0042, 1.23, 45.6, 789, 12,345. */
export function formatNumber(value: number): string {
  return numberText(value, formatCount);
}

/** The compact form: 12,345 is 12.3k. */
export function formatCompactNumber(value: number): string {
  return numberText(value, formatCompact);
}

/** Per second: 0.214/s, 31.2/s, 1,031/s, 123,456/s. */
export function formatRate(perSecond: number): string {
  return `${formatNumber(perSecond)}/s`;
}

/** The compact form: 123k/s. */
export function formatCompactRate(perSecond: number): string {
  return `${formatCompactNumber(perSecond)}/s`;
}

/** Decimal units, as networks count: 812 B, 1.23 kB, 45.6 MB. */
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return NONE;
  if (bytes <= -999.5) return `-${formatBytes(-bytes)}`;
  if (bytes < 999.5) return `${formatCount(bytes)} B`;
  return scaled(bytes, ["B", "kB", "MB", "GB", "TB", "PB"], " ");
}

/** A share 0 … 1, or more: 0 %, <0.001 %, 0.42 %, 5.17 %, 45.6 %, 99.87 %, >99.99 %, 251 %. */
export function formatPercent(share: number): string {
  if (!Number.isFinite(share)) return NONE;
  if (share < 0) return `-${formatPercent(-share)}`;
  const percent = share * 100;
  if (percent > 0 && percent < 0.001) return "<0.001 %";
  if (percent > 99.99 && percent < 100) return ">99.99 %";
  // Downwards: 99.996 must not become 100, and the digits near the whole are the ones of interest.
  if (percent > 99 && percent < 100) return `${Math.floor(percent * 100) / 100} %`;
  if (percent >= 99) return `${formatCompact(percent)} %`;
  if (percent < 0.995) return `${Number(percent.toPrecision(2))} %`;
  return `${Number(percent.toFixed(percent < 9.995 ? 2 : 1))} %`;
}

/** Share of a check's runs that passed, where any of them counts. */
export function formatChecked({ failed, passed, warmup = 0 }: CheckSummary): string {
  if (passed + failed > 0) return formatPercent(passed / (passed + failed));
  return warmup > 0 ? "only in the warm-up" : "never ran";
}

/** The compact form, whole: 0 %, <1 %, 42 %, >99 %, 100 %, 251 %. */
export function formatCompactPercent(share: number): string {
  if (!Number.isFinite(share)) return NONE;
  if (share < 0) return `-${formatCompactPercent(-share)}`;
  const percent = share * 100;
  if (percent > 0 && percent < 1) return "<1 %";
  if (percent > 99 && percent < 100) return ">99 %";
  return `${formatCompact(percent)} %`;
}

/** Ticks of an axis are round numbers: "5 ms" rather than "5.00 ms". */
export function asTick(text: string): string {
  return text.replace(/\.(\d*?)0+(?!\d)/, (_, kept: string) => (kept === "" ? "" : `.${kept}`));
}

function numberText(value: number, large: (value: number) => string): string {
  if (!Number.isFinite(value)) return NONE;
  if (value < 0) return `-${numberText(-value, large)}`;
  if (value === 0) return "0";
  if (value < 0.0009995) return value.toExponential(1);
  if (value < 0.9995) return String(Number(value.toPrecision(3)));
  return value < 99.95 && !Number.isInteger(value) ? significant(value, 3) : large(value);
}

function scaled(value: number, units: readonly string[], gap: string): string {
  let scaledValue = value;
  let unit = 0;
  while (scaledValue >= 999.5 && unit < units.length - 1) {
    scaledValue /= 1_000;
    unit += 1;
  }
  if (scaledValue >= 1e6) return `${scaledValue.toExponential(1)}${gap}${units[unit]}`;
  return `${significant(scaledValue, 3)}${gap}${units[unit]}`;
}

/** Keeps trailing zeros. Never more than three decimals. */
function significant(value: number, digits: 2 | 3): string {
  if (digits === 2) return value < 9.95 ? value.toFixed(1) : String(Number(value.toPrecision(2)));
  if (value < 0.0995) return value.toFixed(3);
  if (value < 9.995) return value.toFixed(2);
  return value.toFixed(value < 99.95 ? 1 : 0);
}

function twoPlaces(value: number): string {
  return String(value).padStart(2, "0");
}

/** "1 VU", "64 VUs". */
export function virtualUsers(count: number): string {
  return `${formatCompact(count)} VU${count === 1 ? "" : "s"}`;
}
