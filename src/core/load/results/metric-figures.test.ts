import { expect, it } from "vitest";
import { metricFigures } from "./metric-figures.ts";
import type { MetricSummary } from "./model.ts";

const shown = (kind: MetricSummary["kind"], values: MetricSummary["values"]): string =>
  metricFigures({ name: "m", kind, tags: {}, values })
    .map(({ label, text }) => `${label} ${text}`)
    .join(", ");

it("uses the names and units of the rest of the results", () => {
  expect(shown("counter", { count: 1234, ratePerSecond: 61.728 })).toBe("count 1,234, rate 61.7/s");
  expect(shown("rate", { hits: 1, total: 4, rate: 0.25 })).toBe("hits 1, total 4, rate 25 %");
  expect(shown("trend", { count: 3, p99: 2.5, p99_9: 2.5 })).toBe("count 3, p99 2.50, p99.9 2.50");
  expect(shown("gauge", { last: -1.5, min: -1.5, max: 0 })).toBe("last -1.50, min -1.50, max 0");
});
