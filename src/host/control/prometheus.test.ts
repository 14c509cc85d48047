import { describe, expect, it } from "vitest";
import { formatMetrics, Histogram, metricFamily } from "./prometheus.ts";

const { counter, labelled, histogram, audit } = metricFamily("app_");

describe("metrics as text", () => {
  it("escapes the characters of labels and help texts", () => {
    const values = [['a "quoted"\nname\\', 1]] as const;
    const text = formatMetrics([
      labelled("gauge", "x", { help: "two\nlines", label: "name", values }),
    ]);
    expect(text).toBe(
      '# HELP app_x two\\nlines\n# TYPE app_x gauge\napp_x{name="a \\"quoted\\"\\nname\\\\"} 1\n',
    );
  });

  it("writes a counter", () => {
    expect(formatMetrics([counter("n_total", "n", 3)])).toBe(
      "# HELP app_n_total n\n# TYPE app_n_total counter\napp_n_total 3\n",
    );
  });

  it("reports how much of the audit log was written and how much was dropped", () => {
    const lines = formatMetrics(audit({ recorded: 5, dropped: 2 })).split("\n");
    expect(lines.filter((line) => line.startsWith("app_"))).toEqual([
      "app_audit_recorded_total 5",
      "app_audit_dropped_total 2",
    ]);
  });

  it("accumulates a histogram's buckets, including its bounds", () => {
    const seconds = new Histogram([0.1, 1]);
    for (const value of [0.05, 0.1, 0.5, 7]) seconds.add(value);
    const lines = formatMetrics([histogram("t_seconds", "t", seconds)]).split("\n");
    expect(lines.slice(2)).toEqual([
      'app_t_seconds_bucket{le="0.1"} 2',
      'app_t_seconds_bucket{le="1"} 3',
      'app_t_seconds_bucket{le="+Inf"} 4',
      "app_t_seconds_sum 7.65",
      "app_t_seconds_count 4",
      "",
    ]);
  });
});
