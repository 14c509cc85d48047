/**
 * Numbers for people. Every figure on the screen and in the end result goes through here, so that
 * one quantity always reads the same way: three significant digits, a thin unit, the same width for
 * the same order of magnitude. Exact counts are grouped by thousands and never abbreviated.
 */

const NONE = "–";

/** Latencies and other spans: 42 µs, 1.23 ms, 123 ms, 1.23 s, 2m05s, 1h03m. */
export function formatMs(ms: number): string {
  if (!Number.isFinite(ms)) return NONE;
  if (ms === 0) return "0 ms";
  if (ms < 0) return `-${formatMs(-ms)}`;
  if (ms < 0.9995) return `${threeDigits(ms * 1_000)} µs`;
  if (ms < 999.5) return `${threeDigits(ms)} ms`;
  if (ms < 59_950) return `${threeDigits(ms / 1_000)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${twoPlaces(seconds % 60)}s`;
  const hours = Math.floor(seconds / 3_600);
  return `${formatCompact(hours)}h${twoPlaces(Math.floor((seconds % 3_600) / 60))}m`;
}

/** A running clock: 00:12, 12:05, 1:02:03. */
export function formatClock(seconds: number): string {
  if (!Number.isFinite(seconds)) return "--:--";
  const whole = Math.max(0, Math.floor(seconds));
  const hours = Math.floor(whole / 3_600);
  const rest = `${twoPlaces(Math.floor((whole % 3_600) / 60))}:${twoPlaces(whole % 60)}`;
  return hours === 0 ? rest : `${hours < 1e6 ? hours : formatCompact(hours)}:${rest}`;
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

/** Short, for narrow places: 9,999, 12.3k, 123k, 1.23M. */
export function formatCompact(count: number): string {
  if (!Number.isFinite(count)) return NONE;
  if (count < 0) return `-${formatCompact(-count)}`;
  if (count < 9_999.5) return formatCount(count);
  return scaled(count, 1_000, ["", "k", "M", "G", "T"], "");
}

/** Per second: 0.21/s, 31.2/s, 1,031/s, 123k/s. */
export function formatRate(perSecond: number): string {
  return `${formatNumber(perSecond)}/s`;
}

/** A figure of no particular unit: small ones keep digits, large ones are short. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return NONE;
  if (value < 0) return `-${formatNumber(-value)}`;
  if (value === 0) return "0";
  if (value < 0.001) return value.toExponential(1);
  if (value < 99.95 && !Number.isInteger(value)) return threeDigits(value);
  return formatCompact(value);
}

/** Decimal units, as networks count: 812 B, 1.23 kB, 45.6 MB. */
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return NONE;
  if (bytes < 0) return `-${formatBytes(-bytes)}`;
  if (bytes < 999.5) return `${Math.round(bytes)} B`;
  return scaled(bytes, 1_000, ["B", "kB", "MB", "GB", "TB", "PB"], " ");
}

/** A share 0 … 1. Never rounds to 0 % or 100 % what is not exactly that. */
export function formatPercent(share: number): string {
  if (!Number.isFinite(share)) return NONE;
  const percent = share * 100;
  if (percent === 0) return "0 %";
  if (Math.abs(percent) < 0.01) return "<0.01 %";
  if (percent > 99.99 && percent < 100) return ">99.99 %";
  if (percent > 99 && percent < 100) return `${trimmed(Math.floor(percent * 100) / 100, 2)} %`;
  if (Math.abs(percent) >= 9_999.5) return `${formatCompact(percent)} %`;
  const digits = Math.abs(percent) < 1 ? 2 : Math.abs(percent) < 99.95 ? 1 : 0;
  return `${trimmed(percent, digits)} %`;
}

function scaled(value: number, base: number, units: readonly string[], gap: string): string {
  let scaledValue = value;
  let unit = 0;
  while (scaledValue >= base - 0.5 && unit < units.length - 1) {
    scaledValue /= base;
    unit += 1;
  }
  if (scaledValue >= 1e6) return `${scaledValue.toExponential(1)}${gap}${units[unit]}`;
  return `${threeDigits(scaledValue)}${gap}${units[unit]}`;
}

/** Keeps trailing zeros: figures below each other keep their places. */
function threeDigits(value: number): string {
  if (value < 0.0995) return value.toFixed(3);
  if (value < 9.995) return value.toFixed(2);
  if (value < 99.95) return value.toFixed(1);
  return value.toFixed(0);
}

function trimmed(value: number, digits: number): string {
  return String(Number(value.toFixed(digits)));
}

function twoPlaces(value: number): string {
  return String(value).padStart(2, "0");
}
