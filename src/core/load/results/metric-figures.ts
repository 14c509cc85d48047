/** The values of a custom metric as text, the same wherever they are shown. */

import { formatNumber, formatPercent, formatRate } from "./format.ts";
import type { MetricSummary } from "./model.ts";

interface MetricFigure {
  readonly label: string;
  readonly text: string;
}

/** In the order of the summary; percentiles are named with a point there. */
export function metricFigures({ kind, values }: MetricSummary): MetricFigure[] {
  return Object.entries(values).map(([name, value]) => {
    if (name === "ratePerSecond") return { label: "rate", text: formatRate(value) };
    const share = kind === "rate" && name === "rate";
    const text = share ? formatPercent(value) : formatNumber(value);
    return { label: name.replace("_", "."), text };
  });
}
