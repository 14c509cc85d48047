/** Prometheus remote write 1.0 with native histograms. (prompb/types.proto, prompb/remote.proto) */

import { QUANTILES } from "../../core/run/results/figures.ts";
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

/** Of a summary, whose latencies are also asked for without histograms. */
const SENT_QUANTILES = ["p50", "p75", "p90", "p95", "p99", "p99_9"] as const;

/** One time series each, as bytes of its message; `native`: distributions as native histograms. */
export function timeSeriesOf(frame: Frame, native: boolean): Protobuf[] {
  const known: KnownLabels = new Map();
  return frame.points.flatMap((point) => seriesOf(frame, point, native, known));
}

/** Points of one step have the same labels, but for their name: as bytes they are made once. */
type KnownLabels = Map<Point["labels"], Protobuf>;

export function writeRequest(series: readonly Protobuf[]): Buffer {
  const request = new Protobuf();
  for (const one of series) request.message(1, one);
  return request.finish();
}

function seriesOf(frame: Frame, point: Point, native: boolean, known: KnownLabels): Protobuf[] {
  const name = prometheusName(point, frame.kind);
  const labels = (): Protobuf => {
    const made = known.get(point.labels) ?? labelsOf(frame, point);
    known.set(point.labels, made);
    return made;
  };
  const gauge = (suffix: string, value: number, more?: Readonly<Record<string, string>>) =>
    named(name + suffix, more === undefined ? labels() : labelsOf(frame, point, more)).nested(
      2,
      (sample) => sample.double(1, value).varint(2, frame.atMs),
    );
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
          named(name, labels()).nested(4, (message) =>
            addHistogram(message, histogram, sumSeconds, frame.atMs),
          ),
        ];
      }
      if (figures.count === 0) return [gauge("_count", 0)];
      return [
        ...SENT_QUANTILES.map((figure) =>
          gauge("", figures[figure] * SECONDS_PER_MS, { quantile: String(QUANTILES[figure]) }),
        ),
        gauge("_max", figures.max * SECONDS_PER_MS),
        gauge("_sum", sum * SECONDS_PER_MS),
        gauge("_count", figures.count),
      ];
    }
  }
}

/** The name sorts before all small letters, as the receiver demands. */
function named(name: string, labels: Protobuf): Protobuf {
  return new Protobuf()
    .nested(1, (label) => label.text(1, "__name__").text(2, name))
    .fields(labels);
}

function labelsOf(frame: Frame, point: Point, more?: Readonly<Record<string, string>>): Protobuf {
  const labels = new Protobuf();
  for (const [label, value] of prometheusLabels(frame, point, more))
    labels.nested(1, (message) => message.text(1, label).text(2, value));
  return labels;
}

/** Counts of whole numbers: buckets as spans of neighbours, each count as its difference to the last. */
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
  /** From the end of the span before; of the first, its index. */
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
