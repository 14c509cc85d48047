/** Prometheus remote write 1.0 with native histograms. (prompb/types.proto, prompb/remote.proto) */

import { QUANTILES } from "../../core/load/results/figures.ts";
import type { Frame, Point } from "../reporter.ts";
import {
  EXPONENTIAL_SCALE,
  type ExponentialHistogram,
  exponentialOf,
  ZERO_THRESHOLD_SECONDS,
} from "./exponential.ts";
import {
  inBaseUnit,
  prometheusLabels,
  prometheusName,
  SECONDS_PER_MS,
} from "./prometheus-names.ts";
import { Protobuf } from "./protobuf.ts";
import { remembered } from "./remembered.ts";

/** Quantiles of a summary, for readers without histograms. */
const SENT_QUANTILES = ["p50", "p75", "p90", "p95", "p99", "p99_9"] as const;

/** Estimate: a request of many points has some tens of kilobytes. */
const BYTES_PER_POINT = 256;

interface WriteRequest {
  readonly body: Buffer;
  readonly series: number;
}

/** Splits a frame into requests of at most `most` time series; `native`: distributions as native histograms. */
export function writeRequests(frame: Frame, native: boolean, most: number): WriteRequest[] {
  const requests: WriteRequest[] = [];
  let [request, series] = [new Protobuf(frame.points.length * BYTES_PER_POINT), 0];
  const flush = (): void => {
    requests.push({ body: request.finish(), series });
    [request, series] = [new Protobuf(), 0];
  };
  for (const point of frame.points)
    for (const write of seriesOf(frame, point, native)) {
      if (series === most) flush();
      request.nested(1, write);
      series++;
    }
  if (series > 0) flush();
  return requests;
}

type WriteSeries = (series: Protobuf) => void;

function seriesOf(frame: Frame, point: Point, native: boolean): WriteSeries[] {
  const name = prometheusName(point, frame.kind);
  const gauge = (suffix: string, value: number, quantile = ""): WriteSeries => {
    return (series) => {
      addName(series, name + suffix);
      series.fields(labelsOf(frame.labels, point.labels, quantile));
      series.nested(2, (sample) => sample.double(1, value).varint(2, frame.atMs));
    };
  };
  switch (point.kind) {
    case "counter":
      return [gauge("", inBaseUnit(point.total, point.unit))];
    case "gauge":
      return [gauge("", inBaseUnit(point.value, point.unit))];
    case "distribution": {
      const { figures, sum, total } = point;
      if (native && frame.kind === "interval") {
        if (total === null) return [];
        const histogram = exponentialOf(total.cells);
        const sumSeconds = total.sumMs * SECONDS_PER_MS;
        return [
          (series) => {
            addName(series, name);
            series.fields(labelsOf(frame.labels, point.labels));
            series.nested(4, (message) => addHistogram(message, histogram, sumSeconds, frame.atMs));
          },
        ];
      }
      if (figures.count === 0) return [gauge("_count", 0)];
      return [
        ...SENT_QUANTILES.map((figure) =>
          gauge("", figures[figure] * SECONDS_PER_MS, String(QUANTILES[figure])),
        ),
        gauge("_max", figures.max * SECONDS_PER_MS),
        gauge("_sum", sum * SECONDS_PER_MS),
        gauge("_count", figures.count),
      ];
    }
  }
}

/** The name sorts before all lower-case letters, as the receiver demands. */
function addName(series: Protobuf, name: string): void {
  series.nested(1, (label) => label.text(1, "__name__").text(2, name));
}

/** Labels as bytes, with a quantile if there is one. */
const labelsOf = remembered((run, own, quantile) => {
  const labels = new Protobuf();
  for (const [label, value] of prometheusLabels(run, own, { quantile }))
    labels.nested(1, (message) => message.text(1, label).text(2, value));
  return labels.finish();
});

/** Integer counts: buckets as spans of neighbours, each count as its delta to the previous one. */
function addHistogram(
  message: Protobuf,
  { count, counts, indexes, zeroCount }: ExponentialHistogram,
  sumSeconds: number,
  atMs: number,
): void {
  message
    .varint(1, count)
    .double(3, sumSeconds)
    .zigzag(4, EXPONENTIAL_SCALE)
    .double(5, ZERO_THRESHOLD_SECONDS)
    .varint(6, zeroCount);
  for (const { length, offset } of spansOf(indexes))
    message.nested(11, (span) => span.zigzag(1, offset).varint(2, length));
  const deltas = counts.map((one, at) => one - (counts[at - 1] ?? 0));
  message.packedZigzag(12, deltas).varint(15, atMs);
}

interface Span {
  /** From the end of the previous span; for the first, its index. */
  readonly offset: number;
  length: number;
}

function spansOf(indexes: readonly number[]): Span[] {
  const spans: Span[] = [];
  let next = 0;
  for (const index of indexes) {
    const last = spans.at(-1);
    if (last !== undefined && index === next) last.length++;
    else spans.push({ offset: last === undefined ? index : index - next, length: 1 });
    next = index + 1;
  }
  return spans;
}
