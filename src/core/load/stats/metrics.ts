/**
 * Metrics that users define: counter, gauge, rate (a share of hits) and trend (a distribution), each
 * split into series by tags. They travel and merge like the numbers of steps: absolute values of
 * what changed.
 *
 * Trends keep values of zero and more with a resolution of a thousandth up to 2, and three
 * significant digits above.
 *
 * Tags come from user code and can explode (an id as a tag). `SERIES_MAX` series are kept; values of
 * later ones still count, under the tag `overflow=true` of their metric.
 */

import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { CellRecorder } from "./cell-recorder.ts";
import {
  clip,
  clipTags,
  NO_TAGS,
  readTags,
  type Tags,
  TEXT_BYTES_MAX,
  tagsKey,
  writeTags,
} from "./names.ts";
import { type CellChanges, readCellChanges, TrackedHistogram } from "./tracked-histogram.ts";

export const SERIES_MAX = 1_000;
/** Metrics (by name) that may have an overflow series of their own; the rest share one per kind. */
const OVERFLOWING_MAX = 100;
/** Trends record thousandths. */
const TREND_SCALE = 1_000;

const METRIC_KINDS = ["counter", "gauge", "rate", "trend"] as const;
type MetricKind = (typeof METRIC_KINDS)[number];

/** Total of one series, of one core or of all. */
export interface MetricTotal {
  readonly name: string;
  readonly kind: MetricKind;
  readonly tags: Tags;
  /** Counter: the sum. */
  count: number;
  /** Rate. */
  hits: number;
  total: number;
  /** Gauge; `at`: time of the last value. */
  last: number;
  min: number;
  max: number;
  at: number;
  /** Trend: in thousandths (`TREND_SCALE`). */
  readonly trend: TrackedHistogram;
  /** The first frame that reports the last change. */
  changedIn: number;
}

/** Changes of one series in one frame, decoded and validated. */
export interface MetricChanges extends Pick<MetricTotal, "name" | "kind" | "tags"> {
  /** Counter: sum. Gauge: last, min, max, time of the last. Rate: hits, total. Trend: none. */
  readonly values: readonly number[];
  readonly trend: CellChanges | null;
}

export class MetricTotals {
  readonly #series = new Map<string, MetricTotal>();
  readonly #overflow = new Map<string, MetricTotal>();

  list(): readonly MetricTotal[] {
    return [...this.#series.values(), ...this.#overflow.values()];
  }

  /** A series, created on first use; a shared one when there are too many. */
  totalOf(name: string, kind: MetricKind, tags: Tags): MetricTotal {
    const known = this.#series.get(keyOf(name, kind, tags));
    if (known !== undefined) return known;
    const [shortName, shortTags] = [clip(name), clipTags(tags)];
    const key = keyOf(shortName, kind, shortTags);
    const clipped = this.#series.get(key);
    if (clipped !== undefined) return clipped;
    if (this.#series.size >= SERIES_MAX || tagsKey(tags) === OVERFLOW_KEY)
      return this.#overflowOf(shortName, kind);
    const created = emptyTotal(shortName, kind, shortTags);
    this.#series.set(key, created);
    return created;
  }

  #overflowOf(name: string, kind: MetricKind): MetricTotal {
    const own = keyOf(name, kind, OVERFLOW);
    const held = this.#overflow.get(own);
    if (held !== undefined) return held;
    const shared = this.#overflow.size >= OVERFLOWING_MAX;
    const key = shared ? keyOf("overflow", kind, OVERFLOW) : own;
    let series = this.#overflow.get(key);
    if (series === undefined) {
      series = emptyTotal(shared ? "overflow" : name, kind, OVERFLOW);
      this.#overflow.set(key, series);
    }
    return series;
  }

  /** Series that changed after a frame. */
  write(writer: ByteWriter, since: number): void {
    const changed = this.list().filter(({ changedIn }) => changedIn > since);
    writer.varint(changed.length);
    for (const one of changed) {
      writer.text(one.name);
      writer.uint8(METRIC_KINDS.indexOf(one.kind));
      writeTags(writer, one.tags);
      if (one.kind === "trend") one.trend.write(writer, since);
      else for (const value of valuesOf(one)) writer.float64(value);
    }
  }

  /** Raises a series to the values of a frame, and the whole that this is a part of by the same differences. */
  raise({ kind, name, tags, trend, values }: MetricChanges, whole: MetricTotals, frame: number) {
    const [held, into] = [this.totalOf(name, kind, tags), whole.totalOf(name, kind, tags)];
    const [first = 0, second = 0, third = 0, at = 0] = values;
    into.changedIn = frame;
    switch (kind) {
      case "counter":
        into.count += Math.max(0, first - held.count);
        held.count = Math.max(held.count, first);
        break;
      case "rate":
        into.hits += Math.max(0, first - held.hits);
        into.total += Math.max(0, second - held.total);
        held.hits = Math.max(held.hits, first);
        held.total = Math.max(held.total, second);
        break;
      case "gauge":
        for (const one of [held, into]) latest(one, first, second, third, at);
        break;
      case "trend":
        if (trend !== null) held.trend.raise(trend, into.trend, frame);
    }
  }
}

const OVERFLOW: Tags = { overflow: "true" };
const OVERFLOW_KEY = tagsKey(OVERFLOW);

/** Undefined when the bytes are not what `write` wrote. */
export function readMetrics(reader: ByteReader): MetricChanges[] | undefined {
  const length = reader.varint();
  if (reader.failed || length > SERIES_MAX + OVERFLOWING_MAX + METRIC_KINDS.length)
    return undefined;
  const changes: MetricChanges[] = [];
  for (let i = 0; i < length; i++) {
    const one = readMetric(reader);
    if (one === undefined) return undefined;
    changes.push(one);
  }
  return changes;
}

function readMetric(reader: ByteReader): MetricChanges | undefined {
  const name = reader.text(TEXT_BYTES_MAX);
  const kind = METRIC_KINDS[reader.uint8()];
  const tags = readTags(reader);
  if (kind === undefined || tags === undefined) return undefined;
  if (kind === "trend") {
    const trend = readCellChanges(reader);
    return trend === undefined ? undefined : { name, kind, tags, values: [], trend };
  }
  const values = [reader.float64(), reader.float64(), reader.float64(), reader.float64()];
  if (reader.failed || values.some(Number.isNaN)) return undefined;
  return { name, kind, tags, values, trend: null };
}

/** Merged over all series of a name whose tags include the given ones; null when there is none. */
export function findMetric(
  all: readonly MetricTotals[],
  name: string,
  tags: Tags = NO_TAGS,
): MetricTotal | null {
  let found: MetricTotal | null = null;
  for (const one of all.flatMap((totals) => totals.list())) {
    if (one.name !== name || (found !== null && found.kind !== one.kind)) continue;
    if (Object.entries(tags).some(([key, value]) => one.tags[key] !== value)) continue;
    found ??= emptyTotal(name, one.kind, tags);
    found.count += one.count;
    found.hits += one.hits;
    found.total += one.total;
    latest(found, one.last, one.min, one.max, one.at);
    found.trend.histogram.merge(one.trend.histogram);
  }
  return found;
}

/** One series on its core. Keep the handle: adding to it costs no lookup. */
class MetricSeries {
  readonly #total: MetricTotal;
  /** Current values; the total is as of the last fold. */
  readonly #now: MetricTotal;
  readonly #trend: CellRecorder | null;
  #changed = false;

  constructor(total: MetricTotal) {
    this.#total = total;
    this.#now = { ...total };
    this.#trend = total.kind === "trend" ? new CellRecorder() : null;
  }

  /**
   * A rate takes 1 (hit) or 0; counters and trends take zero or more; a gauge any number. Returns false and records
   * nothing for anything else.
   */
  add(value: number, nowMs: number): boolean {
    const total = this.#now;
    if (!Number.isFinite(value) || (value < 0 && total.kind !== "gauge")) return false;
    switch (total.kind) {
      case "counter":
        total.count += value;
        break;
      case "gauge":
        latest(total, value, value, value, nowMs);
        break;
      case "rate":
        total.hits += value > 0 ? 1 : 0;
        total.total++;
        break;
      case "trend":
        this.#trend?.record(value * TREND_SCALE);
        break;
    }
    this.#changed = true;
    return true;
  }

  fold(frame: number): void {
    if (!this.#changed) return;
    this.#changed = false;
    const { at, count, hits, last, max, min, total } = this.#now;
    Object.assign(this.#total, { at, count, hits, last, max, min, total, changedIn: frame });
    this.#trend?.fold(this.#total.trend, frame);
  }
}

export class MetricRecorder {
  readonly #totals: MetricTotals;
  readonly #series = new Map<MetricTotal, MetricSeries>();

  constructor(totals: MetricTotals) {
    this.#totals = totals;
  }

  series(name: string, kind: MetricKind, tags: Tags = NO_TAGS): MetricSeries {
    const total = this.#totals.totalOf(name, kind, tags);
    let series = this.#series.get(total);
    if (series === undefined) {
      series = new MetricSeries(total);
      this.#series.set(total, series);
    }
    return series;
  }

  /** Marks the values added since the last fold to be reported by this frame. */
  fold(frame: number): void {
    for (const series of this.#series.values()) series.fold(frame);
  }
}

function keyOf(name: string, kind: MetricKind, tags: Tags): string {
  return `${kind} ${name} ${tagsKey(tags)}`;
}

function emptyTotal(name: string, kind: MetricKind, tags: Tags): MetricTotal {
  return {
    name,
    kind,
    tags,
    count: 0,
    hits: 0,
    total: 0,
    last: 0,
    min: Number.POSITIVE_INFINITY,
    max: Number.NEGATIVE_INFINITY,
    at: -1,
    trend: new TrackedHistogram(),
    changedIn: 0,
  };
}

function valuesOf({ at, count, hits, kind, last, max, min, total }: MetricTotal): number[] {
  if (kind === "gauge") return [last, min, max, at];
  return kind === "counter" ? [count, 0, 0, 0] : [hits, total, 0, 0];
}

function latest(held: MetricTotal, last: number, min: number, max: number, at: number): void {
  held.min = Math.min(held.min, min);
  held.max = Math.max(held.max, max);
  if (at < held.at) return;
  held.last = last;
  held.at = at;
}
