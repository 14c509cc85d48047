/**
 * Metrics that users define: counter, gauge, rate (a share of hits) and trend (a distribution), each
 * split into series by tags. They travel like the numbers of steps: frames of absolute values of
 * what changed, held per core by the coordinator and merged there.
 *
 * Trends keep values of zero and more with a resolution of a thousandth up to 2, and three
 * significant digits above.
 *
 * Tags come from user code and can explode (an id as a tag). A core keeps `SERIES_MAX` series;
 * values of later ones still count, under the tag `overflow=true` of their metric.
 */

import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { applyCellChanges, CellRecorder, readCellChanges } from "./cell-recorder.ts";
import { Histogram } from "./histogram.ts";
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

export const SERIES_MAX = 1_000;
/** Metrics (by name) that may have an overflow series of their own; the rest share one per kind. */
const OVERFLOWING_MAX = 100;
/** Trends record thousandths. */
const TREND_SCALE = 1_000;

const METRIC_KINDS = ["counter", "gauge", "rate", "trend"] as const;
type MetricKind = (typeof METRIC_KINDS)[number];

/** One series on its core. Keep the handle: adding to it costs no lookup. */
class MetricSeries {
  readonly name: string;
  readonly kind: MetricKind;
  readonly tags: Tags;
  /** Counter: sum. Gauge: last, min, max, time of the last. Rate: hits, total. */
  readonly #values = new Float64Array(4);
  readonly #trend: CellRecorder | null;
  #changed = false;

  constructor(name: string, kind: MetricKind, tags: Tags) {
    this.name = name;
    this.kind = kind;
    this.tags = tags;
    this.#trend = kind === "trend" ? new CellRecorder() : null;
    this.reset();
  }

  reset(): void {
    this.#values.fill(0);
    if (this.kind === "gauge") {
      this.#values.set([0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1]);
    }
    this.#trend?.reset();
    this.#changed = false;
  }

  get changed(): boolean {
    return this.#changed;
  }

  /**
   * A rate takes 1 (hit) or 0; counters and trends take zero or more; a gauge any number. False, and
   * nothing recorded, for anything else.
   */
  add(value: number, nowMs: number): boolean {
    if (!Number.isFinite(value) || (value < 0 && this.kind !== "gauge")) return false;
    const values = this.#values;
    switch (this.kind) {
      case "counter":
        values[0] = (values[0] ?? 0) + value;
        break;
      case "gauge":
        values[0] = value;
        values[1] = Math.min(values[1] ?? value, value);
        values[2] = Math.max(values[2] ?? value, value);
        values[3] = nowMs;
        break;
      case "rate":
        values[0] = (values[0] ?? 0) + (value > 0 ? 1 : 0);
        values[1] = (values[1] ?? 0) + 1;
        break;
      case "trend":
        this.#trend?.record(value * TREND_SCALE);
        break;
    }
    this.#changed = true;
    return true;
  }

  writeChanges(writer: ByteWriter): void {
    writer.text(this.name);
    writer.uint8(METRIC_KINDS.indexOf(this.kind));
    writeTags(writer, this.tags);
    if (this.#trend === null) for (const value of this.#values) writer.float64(value);
    else this.#trend.writeChanges(writer);
    this.#changed = false;
  }
}

export class MetricRecorder {
  readonly #series = new Map<string, MetricSeries>();
  readonly #overflow = new Map<string, MetricSeries>();
  #generation = 0;
  #reset = false;

  get changed(): boolean {
    return this.#reset || this.#all().some((one) => one.changed);
  }

  series(name: string, kind: MetricKind, tags: Tags = NO_TAGS): MetricSeries {
    const known = this.#series.get(keyOf(name, kind, tags));
    if (known !== undefined) return known;
    const [shortName, shortTags] = [clip(name), clipTags(tags)];
    const key = keyOf(shortName, kind, shortTags);
    const clipped = this.#series.get(key);
    if (clipped !== undefined) return clipped;
    if (this.#series.size >= SERIES_MAX) return this.#overflowOf(shortName, kind);
    const created = new MetricSeries(shortName, kind, shortTags);
    this.#series.set(key, created);
    return created;
  }

  writeChanges(writer: ByteWriter): void {
    const changed = this.#all().filter((one) => one.changed);
    writer.varint(this.#generation);
    writer.varint(changed.length);
    for (const one of changed) one.writeChanges(writer);
    this.#reset = false;
  }

  /** All series begin anew; handles stay good. */
  reset(): void {
    for (const one of this.#all()) one.reset();
    this.#generation++;
    this.#reset = true;
  }

  #overflowOf(name: string, kind: MetricKind): MetricSeries {
    const own = keyOf(name, kind, OVERFLOW);
    const held = this.#overflow.get(own);
    if (held !== undefined) return held;
    const shared = this.#overflow.size >= OVERFLOWING_MAX;
    const key = shared ? keyOf("overflow", kind, OVERFLOW) : own;
    let series = this.#overflow.get(key);
    if (series === undefined) {
      series = new MetricSeries(shared ? "overflow" : name, kind, OVERFLOW);
      this.#overflow.set(key, series);
    }
    return series;
  }

  #all(): MetricSeries[] {
    return [...this.#series.values(), ...this.#overflow.values()];
  }
}

const OVERFLOW: Tags = { overflow: "true" };

/** What is known of one series, of one core or merged. */
export interface MetricTotal {
  readonly name: string;
  readonly kind: MetricKind;
  readonly tags: Tags;
  /** Counter: the sum. */
  count: number;
  /** Rate. */
  hits: number;
  total: number;
  /** Gauge; `at` is the time of the last. */
  last: number;
  min: number;
  max: number;
  at: number;
  /** Trend: in thousandths (`TREND_SCALE`). */
  readonly trend: Histogram;
}

export class MetricTotals {
  readonly #totals = new Map<string, MetricTotal>();
  #generation = 0;

  list(): readonly MetricTotal[] {
    return [...this.#totals.values()];
  }

  /** Merged over all series of a name whose tags include the given ones; null when there is none. */
  find(name: string, tags: Tags = NO_TAGS): MetricTotal | null {
    let found: MetricTotal | null = null;
    for (const one of this.#totals.values()) {
      if (one.name !== name || (found !== null && found.kind !== one.kind)) continue;
      if (Object.entries(tags).some(([key, value]) => one.tags[key] !== value)) continue;
      found ??= emptyTotal(name, one.kind, tags);
      merge(found, one);
    }
    return found;
  }

  /** False, and nothing changed, when the bytes are not a frame of metrics. */
  applyChanges(reader: ByteReader): boolean {
    const generation = reader.varint();
    const length = reader.varint();
    if (reader.failed || length > SERIES_MAX + OVERFLOWING_MAX + METRIC_KINDS.length) return false;
    const updates: (() => void)[] = [];
    for (let i = 0; i < length; i++) {
      const update = this.#readSeries(reader);
      if (update === undefined) return false;
      updates.push(update);
    }
    if (reader.failed) return false;
    if (generation < this.#generation) return true;
    if (generation > this.#generation) this.#totals.clear();
    this.#generation = generation;
    for (const update of updates) update();
    return true;
  }

  mergeInto(other: MetricTotals): void {
    for (const one of this.#totals.values())
      merge(other.#totalOf(one.name, one.kind, one.tags), one);
  }

  #readSeries(reader: ByteReader): (() => void) | undefined {
    const name = reader.text(TEXT_BYTES_MAX);
    const kind = METRIC_KINDS[reader.uint8()];
    const tags = readTags(reader);
    if (kind === undefined || tags === undefined) return undefined;
    if (kind === "trend") {
      const changes = readCellChanges(reader);
      if (changes === undefined) return undefined;
      return () => applyCellChanges(this.#totalOf(name, kind, tags).trend, changes, null);
    }
    const values = [reader.float64(), reader.float64(), reader.float64(), reader.float64()];
    if (reader.failed || values.some(Number.isNaN)) return undefined;
    return () => replace(this.#totalOf(name, kind, tags), values);
  }

  #totalOf(name: string, kind: MetricKind, tags: Tags): MetricTotal {
    const key = keyOf(name, kind, tags);
    let total = this.#totals.get(key);
    if (total === undefined) {
      total = emptyTotal(name, kind, tags);
      this.#totals.set(key, total);
    }
    return total;
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
    trend: new Histogram(),
  };
}

/** Absolute values of the same core: counts never fall, a gauge's last is the latest. */
function replace(
  held: MetricTotal,
  [first = 0, second = 0, third = 0, at = 0]: readonly number[],
): void {
  if (held.kind === "counter") held.count = Math.max(held.count, first);
  if (held.kind === "rate") {
    held.hits = Math.max(held.hits, first);
    held.total = Math.max(held.total, second);
  }
  if (held.kind !== "gauge") return;
  held.min = Math.min(held.min, second);
  held.max = Math.max(held.max, third);
  if (at < held.at) return;
  held.last = first;
  held.at = at;
}

function merge(into: MetricTotal, from: MetricTotal): void {
  into.count += from.count;
  into.hits += from.hits;
  into.total += from.total;
  into.min = Math.min(into.min, from.min);
  into.max = Math.max(into.max, from.max);
  if (from.at > into.at) {
    into.last = from.last;
    into.at = from.at;
  }
  into.trend.merge(from.trend);
}
