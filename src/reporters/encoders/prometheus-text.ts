/**
 * Points in Prometheus's text format, for the pushgateway, scrapes and GitLab. The text format has no native
 * histograms: a distribution becomes a summary with quantiles.
 */

import { QUANTILES, STEP_FIGURES } from "../../core/load/results/figures.ts";
import type { Distribution } from "../../core/load/results/model.ts";
import { formatMetrics, type Metric } from "../../host/control/prometheus.ts";
import type { Frame, Point } from "../reporter.ts";
import {
  inBaseUnit,
  prometheusLabels,
  prometheusName,
  SECONDS_PER_MS,
} from "./prometheus-names.ts";

const SENT_QUANTILES = [
  "p50",
  "p90",
  "p95",
  "p99",
  "p99_9",
] as const satisfies readonly (keyof Distribution)[];

type ValueMetric = Extract<Metric, { readonly type: "counter" | "gauge" }>;
type Sample = ValueMetric["samples"][number];
type Family = ValueMetric & { readonly samples: Sample[] };

/** A metric may occur in several frames: those of the running test, and its summary. */
export function prometheusMetrics(frames: readonly Frame[]): Metric[] {
  const families = new Map<string, Family>();
  for (const frame of frames)
    for (const point of frame.points)
      for (const { name, sample, type } of samplesOf(frame, point)) {
        const help = helpOf(frame, point);
        const family = families.get(name) ?? { name, type, help, samples: [] };
        families.set(name, family);
        family.samples.push(sample);
      }
  return [...families.values()];
}

export function prometheusText(frames: readonly Frame[]): string {
  return formatMetrics(prometheusMetrics(frames));
}

interface NamedSample {
  readonly name: string;
  readonly type: ValueMetric["type"];
  readonly sample: Sample;
}

function samplesOf(frame: Frame, point: Point): NamedSample[] {
  const name = prometheusName(point, frame.kind);
  const labels = (more: Readonly<Record<string, string>> = {}) =>
    Object.fromEntries(prometheusLabels(frame.labels, point.labels, more));
  switch (point.kind) {
    case "counter": {
      const type = frame.kind === "interval" ? "counter" : "gauge";
      const value = inBaseUnit(point.total, point.unit);
      return [{ name, type, sample: { labels: labels(), value } }];
    }
    case "gauge": {
      const value = inBaseUnit(point.value, point.unit);
      return [{ name, type: "gauge", sample: { labels: labels(), value } }];
    }
    case "distribution": {
      const { figures, sum } = point;
      const quantiles = figures.count === 0 ? [] : SENT_QUANTILES;
      const one = (value: number, more?: Readonly<Record<string, string>>) => ({
        ...{ name, type: "gauge" as const },
        sample: { labels: labels(more), value },
      });
      return [
        ...quantiles.map((figure) =>
          one(figures[figure] * SECONDS_PER_MS, { quantile: String(QUANTILES[figure]) }),
        ),
        ...(figures.count === 0
          ? []
          : [{ ...one(figures.max * SECONDS_PER_MS), name: `${name}_max` }]),
        { ...one(sum * SECONDS_PER_MS), name: `${name}_sum` },
        { ...one(figures.count), name: `${name}_count` },
      ];
    }
  }
}

const LABELS: ReadonlyMap<string, string> = new Map(
  Object.entries(STEP_FIGURES).map(([name, { label }]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    label,
  ]),
);

/** "Latency per step: From the intended start …", without the unit, which is in the name of the metric. */
function helpOf(frame: Frame, { figure, scope }: Point): string {
  const words = figure.replace(/_(ms|seconds)(?=_|$)/, "").replaceAll("_", " ");
  const label = LABELS.get(figure);
  const meaning = label === undefined ? "" : `: ${label.replace(/\.$/, "")}`;
  const whole = frame.kind === "summary" ? ", over the whole run" : "";
  return `${words.charAt(0).toUpperCase()}${words.slice(1)} per ${scope}${whole}${meaning}`;
}
