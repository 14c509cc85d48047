/** Round numbers for axes. */

const STEPS = [1, 2, 2.5, 5, 10];

/** 0, 500, 1,000, 1,500: from zero to the first at or above the highest value, at most `most` steps. */
export function linearTicks(highest: number, most: number): number[] {
  const top = highest > 0 && Number.isFinite(highest) ? highest : 1;
  const rough = top / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = (STEPS.find((one) => one * power >= rough * (1 - 1e-9)) ?? 10) * power;
  const count = Math.max(1, Math.ceil(top / step - 1e-9));
  return Array.from({ length: count + 1 }, (_, at) => Number((at * step).toPrecision(12)));
}

/** 1, 2, 5, 10, 20 … between two values; only powers of ten where that would crowd, else the ends. */
export function logTicks(low: number, high: number, most: number): number[] {
  const ticks = (steps: readonly number[]): number[] => {
    const found: number[] = [];
    const first = Math.floor(Math.log10(low));
    for (let power = first; power <= Math.ceil(Math.log10(high)); power++) {
      for (const step of steps) {
        const tick = Number((step * 10 ** power).toPrecision(1));
        if (tick >= low * 0.999 && tick <= high * 1.001) found.push(tick);
      }
    }
    return found;
  };
  const candidates = [[1, 2, 5], [1, 3], [1]].map(ticks);
  const fitting = candidates.find(({ length }) => length <= most) ?? candidates.at(-1) ?? [];
  return fitting.length >= 2 ? fitting : [low, high];
}
