/**
 * OpenTelemetry's metrics as JSON: counters as cumulative sums, latencies as exponential histograms.
 * (opentelemetry-proto, metrics.proto; JSON by the mapping of protobuf: 64 bit integers are texts)
 */

import type { FigureUnit } from "../../core/load/results/figures.ts";
import type { Frame, Point } from "../reporter.ts";
import { EXPONENTIAL_SCALE, exponentialOf, ZERO_THRESHOLD_SECONDS } from "./exponential.ts";
import { SECONDS_PER_MS } from "./prometheus-names.ts";
import { remembered } from "./remembered.ts";
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

/**
 * Encodes a request as JSON. The resource identifies the sender, with the labels of the run as attributes. Written by
 * hand for speed: attributes of a step are the same in every frame, and buckets are many.
 */
export function otlpRequest(frame: Frame, points: readonly Point[]): string {
  const service = { "service.name": "hyperscale" };
  const resource = { attributes: attributesOf({ ...service, ...frame.labels }) };
  const metrics = points.flatMap((point) => metricsOf(frame, point)).join(",");
  const scope = `{"scope":{"name":"hyperscale"},"metrics":[${metrics}]}`;
  return `{"resourceMetrics":[{"resource":${JSON.stringify(resource)},"scopeMetrics":[${scope}]}]}`;
}

const attributesText = remembered((_, labels) => JSON.stringify(attributesOf(labels)));

function metricsOf(frame: Frame, point: Point): string[] {
  const prefix = frame.kind === "summary" ? "hyperscale.summary" : "hyperscale";
  const name = `${prefix}.${point.scope}.${point.figure.replace(/_ms(?=_|$)/, "")}`;
  const common = `{"name":${JSON.stringify(name)},"unit":"${UNITS[point.unit]}"`;
  const times = `"startTimeUnixNano":"${nanos(frame.runBeganMs)}","timeUnixNano":"${nanos(frame.atMs)}"`;
  const stamped = `{"attributes":${attributesText(frame.labels, point.labels)},${times}`;
  const seconds = point.unit === "ms" ? SECONDS_PER_MS : 1;
  if (point.kind === "counter" && frame.kind === "interval") {
    const dataPoints = `"dataPoints":[${stamped},"asDouble":${point.total * seconds}}]`;
    const kind = `"aggregationTemporality":${CUMULATIVE},"isMonotonic":true`;
    return [`${common},"sum":{${dataPoints},${kind}}}`];
  }
  if (point.kind === "distribution" && frame.kind === "interval" && point.total !== null) {
    const { cells, sumMs } = point.total;
    const { count, counts, indexes, zeroCount } = exponentialOf(cells);
    const offset = (indexes[0] ?? 0) - 1;
    const dense = new Array<number>((indexes.at(-1) ?? offset) - offset).fill(0);
    for (const [at, index] of indexes.entries()) dense[index - 1 - offset] = counts[at] ?? 0;
    const moments = `"count":"${count}","sum":${sumMs * SECONDS_PER_MS}`;
    const zero = `"zeroCount":"${zeroCount}","zeroThreshold":${ZERO_THRESHOLD_SECONDS}`;
    const buckets = dense.length === 0 ? "" : `"${dense.join('","')}"`;
    const positive = `"positive":{"offset":${offset},"bucketCounts":[${buckets}]}`;
    const dataPoint = `${stamped},${moments},"scale":${EXPONENTIAL_SCALE},${zero},${positive}}`;
    const kind = `"aggregationTemporality":${CUMULATIVE}`;
    return [`${common},"exponentialHistogram":{"dataPoints":[${dataPoint}],${kind}}}`];
  }
  return valuesOf(point).map(({ name: figure, value }) => {
    const suffix = figure.slice(point.figure.length).replace("_", ".");
    const scaled = suffix === ".count" ? value : value * seconds;
    const unit = suffix === ".count" ? "1" : UNITS[point.unit];
    const named = `{"name":${JSON.stringify(name + suffix)},"unit":"${unit}"`;
    return `${named},"gauge":{"dataPoints":[${stamped},"asDouble":${scaled}}]}}`;
  });
}

export function attributesOf(labels: Readonly<Record<string, string>>): unknown[] {
  return Object.entries(labels).map(([key, value]) => ({ key, value: { stringValue: value } }));
}

export function nanos(ms: number): string {
  return `${Math.round(ms)}000000`;
}
