/** Times of a run as clock texts. */

/** 0:00, 1:30, 1:02:30; with fractions where the ticks need them. */
export function clockText(seconds: number, digits = 0): string {
  const unit = 10 ** digits;
  const rounded = Math.round(Math.abs(seconds) * unit) / unit;
  const whole = Math.floor(rounded + 1e-9);
  const pad = (value: number) => String(value).padStart(2, "0");
  const hours = Math.floor(whole / 3_600);
  const minutes = Math.floor((whole % 3_600) / 60);
  const head = hours > 0 ? `${hours}:${pad(minutes)}` : String(minutes);
  const rest = digits === 0 ? "" : (rounded - whole).toFixed(digits).slice(1);
  return `${seconds < 0 && rounded > 0 ? "-" : ""}${head}:${pad(whole % 60)}${rest}`;
}

/** As exact as windows of this width, which may begin at half a second. */
export function clockAt(seconds: number, windowSeconds: number): string {
  const isWhole = Math.abs(seconds - Math.round(seconds)) < 0.05;
  return clockText(seconds, windowSeconds < 1 || !isWhole ? 1 : 0);
}
