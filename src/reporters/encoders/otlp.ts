/**
 * OpenTelemetry's metrics as JSON: counters as cumulative sums, latencies as exponential histograms.
 * (opentelemetry-proto, metrics.proto; JSON by the mapping of protobuf: 64 bit integers are texts)
 */

import type { FigureUnit } from "../../core/run/results/figures.ts";
import type { Frame, Point } from "../reporter.ts";
import { EXPONENTIAL_SCALE, exponentialOf, ZERO_THRESHOLD_SECONDS } from "./exponential.ts";
import { SECONDS_PER_MS } from "./prometheus-names.ts";
import { valuesOf } from "./values.ts";

const CUMULATIVE = 2;
const UNITS: Readonly<Record<FigureUnit, string>> = {
  count: "1",
  bytes: "By",
  ms: "s",
  seconds: "s",
  "per second": "1/s",
  share: "1",
};

/** What identifies the sender, with the labels of the run as its attributes. */
export function otlpRequest(frame: Frame, points: readonly Point[]): unknown {
  const service = { "service.name": "hyperscale" };
  return {
    resourceMetrics: [
      {
        resource: { attributes: attributesOf({ ...service, ...frame.labels }) },
        scopeMetrics: [
          {
            scope: { name: "hyperscale" },
            metrics: points.flatMap((point) => metricsOf(frame, point)),
          },
        ],
      },
    ],
  };
}

function metricsOf(frame: Frame, point: Point): unknown[] {
  const prefix = frame.kind === "summary" ? "hyperscale.summary" : "hyperscale";
  const name = `${prefix}.${point.scope}.${point.figure.replace(/_ms(?=_|$)/, "")}`;
  const common = { name, unit: UNITS[point.unit] };
  const stamped = {
    attributes: attributesOf(point.labels),
    startTimeUnixNano: nanos(frame.runBeganMs),
    timeUnixNano: nanos(frame.atMs),
  };
  const seconds = point.unit === "ms" ? SECONDS_PER_MS : 1;
  if (point.kind === "counter" && frame.kind === "interval") {
    const dataPoints = [{ ...stamped, asDouble: point.total * seconds }];
    const sum = { dataPoints, aggregationTemporality: CUMULATIVE, isMonotonic: true };
    return [{ ...common, sum }];
  }
  if (point.kind === "distribution" && frame.kind === "interval" && point.total !== null) {
    const { cells, sumMs } = point.total;
    const { count, counts, indexes, zeroCount } = exponentialOf(cells);
    const offset = (indexes[0] ?? 0) - 1;
    const dense = new Array<number>((indexes.at(-1) ?? offset) - offset).fill(0);
    for (const [at, index] of indexes.entries()) dense[index - 1 - offset] = counts[at] ?? 0;
    const dataPoint = {
      ...{ ...stamped, count: String(count), sum: sumMs * SECONDS_PER_MS },
      ...{ scale: EXPONENTIAL_SCALE, zeroCount: String(zeroCount) },
      zeroThreshold: ZERO_THRESHOLD_SECONDS,
      positive: { offset, bucketCounts: dense.map(String) },
    };
    const histogram = { dataPoints: [dataPoint], aggregationTemporality: CUMULATIVE };
    return [{ ...common, exponentialHistogram: histogram }];
  }
  return valuesOf(point).map(({ name: figure, value }) => {
    const suffix = figure.slice(point.figure.length).replace("_", ".");
    const scaled = suffix === ".count" ? value : value * seconds;
    return {
      ...{ name: name + suffix, unit: suffix === ".count" ? "1" : common.unit },
      gauge: { dataPoints: [{ ...stamped, asDouble: scaled }] },
    };
  });
}

export function attributesOf(labels: Readonly<Record<string, string>>): unknown[] {
  return Object.entries(labels).map(([key, value]) => ({ key, value: { stringValue: value } }));
}

export function nanos(ms: number): string {
  return `${Math.round(ms)}000000`;
}
