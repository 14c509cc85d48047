/** Figures as people read them, the same in the HTML report, JUnit and `compare`. */

const NARROW_SPACE = "\u202f";

/** 12 345 with thin spaces: the same in every locale, and never mistaken for a decimal. */
export function formatCount(value: number): string {
  const digits = Math.round(value).toString();
  return digits.replace(/\B(?=(\d{3})+$)/g, NARROW_SPACE);
}

/** Three significant digits, no exponent: 0.042, 1.23, 45.6, 789, 12 345. */
export function formatNumber(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1_000) return (value < 0 ? "-" : "") + formatCount(size);
  if (size < 0.0005) return value < 0 ? "-0" : "0";
  const decimals = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return String(Number(value.toFixed(decimals)));
}

/** 0.42 ms, 12.3 ms, 4.21 s, 2.5 min. */
export function formatMs(ms: number): string {
  if (ms < 1_000) return `${formatNumber(ms)} ms`;
  if (ms < 60_000) return `${formatNumber(ms / 1_000)} s`;
  return `${formatNumber(ms / 60_000)} min`;
}

export function formatSeconds(seconds: number): string {
  if (seconds < 60) return formatMs(seconds * 1_000);
  const whole = Math.round(seconds);
  if (whole < 3_600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} min`;
}

export function formatRate(perSecond: number): string {
  return `${formatNumber(perSecond)}/s`;
}

/** A share of one as per cent. A part that is not the whole never reads as 100 %, nor as 0 %. */
export function formatPercent(share: number): string {
  const percent = share * 100;
  if (percent > 0 && percent < 0.001) return "<0.001 %";
  if (percent > 99.99 && percent < 100) return ">99.99 %";
  return `${Number(percent.toFixed(percent > 99 ? 2 : percent >= 10 ? 1 : percent >= 1 ? 2 : 3))} %`;
}

export function formatBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1_000;
    unit++;
  }
  return `${formatNumber(value)} ${units[unit]}`;
}
