import { describe, expect, it } from "vitest";
import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { findMetric, MetricRecorder, MetricTotals, readMetrics, SERIES_MAX } from "./metrics.ts";

function frameOf(totals: MetricTotals, since: number): Uint8Array {
  const writer = new ByteWriter();
  totals.write(writer, since);
  return writer.take();
}

function raise(part: MetricTotals, bytes: Uint8Array, whole: MetricTotals): void {
  const changes = readMetrics(new ByteReader(bytes));
  expect(changes).toBeDefined();
  for (const one of changes ?? []) part.raise(one, whole, 1);
}

function recording(): { readonly totals: MetricTotals; readonly recorder: MetricRecorder } {
  const totals = new MetricTotals();
  return { totals, recorder: new MetricRecorder(totals) };
}

describe("custom metrics", () => {
  it("count, gauge, rate and trend across cores, and may arrive twice", () => {
    const merged = new MetricTotals();
    for (const core of [0, 1]) {
      const { recorder, totals } = recording();
      recorder.series("orders", "counter", { shop: `s${core}` }).add(3, 0);
      recorder.series("orders", "counter", { shop: "all" }).add(1.5, 0);
      recorder.series("queue", "gauge").add(10 - core * 20, 100 + core);
      recorder.series("hits", "rate").add(1, 0);
      recorder.series("hits", "rate").add(core, 0);
      for (let i = 1; i <= 100; i++) recorder.series("cart", "trend").add(i + core * 100, 0);
      recorder.fold(1);
      const part = new MetricTotals();
      raise(part, frameOf(totals, 0), merged);
      raise(part, frameOf(totals, 0), merged);
    }
    const find = (name: string, tags?: Record<string, string>) => findMetric([merged], name, tags);
    expect(find("orders")).toMatchObject({ kind: "counter", count: 9 });
    expect(find("orders", { shop: "s1" })?.count).toBe(3);
    expect(find("orders", { shop: "none" })).toBeNull();
    expect(find("queue")).toMatchObject({ last: -10, min: -10, max: 10 });
    expect(find("hits")).toMatchObject({ hits: 3, total: 4 });
    const trend = find("cart")?.trend.histogram;
    expect(trend?.count).toBe(200);
    expect((trend?.quantile(0.5) ?? 0) / 1_000).toBeCloseTo(100, 0);
    expect((trend?.max ?? 0) / 1_000).toBe(200);
    expect(merged.list()).toHaveLength(6);
  });

  it("reject invalid values", () => {
    const { recorder, totals } = recording();
    expect(recorder.series("c", "counter").add(-1, 0)).toBe(false);
    expect(recorder.series("t", "trend").add(Number.NaN, 0)).toBe(false);
    recorder.fold(1);
    expect(totals.list().every(({ changedIn }) => changedIn === 0)).toBe(true);
    expect(recorder.series("g", "gauge").add(-1, 0)).toBe(true);
  });

  it("are sent only when they changed, and tags in any order are one series", () => {
    const { recorder, totals } = recording();
    const one = recorder.series("c", "counter", { a: "1", b: "2" });
    expect(recorder.series("c", "counter", { b: "2", a: "1" })).toBe(one);
    one.add(1, 0);
    recorder.series("d", "counter").add(1, 0);
    recorder.fold(1);
    const long = frameOf(totals, 0).length;
    one.add(1, 0);
    recorder.fold(2);
    expect(frameOf(totals, 1).length).toBeLessThan(long);
    expect(frameOf(totals, 2)).toEqual(Uint8Array.of(0));
  });

  it("keep a bounded number of series and still count the rest", () => {
    const { recorder, totals } = recording();
    for (let i = 0; i < SERIES_MAX + 500; i++)
      recorder.series("ids", "counter", { id: `${i}` }).add(1, 0);
    for (let i = 0; i < 300; i++) recorder.series(`name${i}`, "counter").add(1, 0);
    recorder.fold(1);
    const merged = new MetricTotals();
    raise(new MetricTotals(), frameOf(totals, 0), merged);
    expect(findMetric([merged], "ids")?.count).toBe(SERIES_MAX + 500);
    expect(findMetric([merged], "ids", { overflow: "true" })?.count).toBe(500);
    expect(findMetric([merged], "name0")?.count).toBe(1);
    expect(findMetric([merged], "overflow")?.count).toBe(300 - 99);
    expect(merged.list().length).toBeLessThanOrEqual(SERIES_MAX + 101);
  });

  it("truncate names and tags that contain data, so that a frame stays readable", () => {
    const { recorder, totals } = recording();
    const long = "ü".repeat(5_000);
    for (const end of ["a", "b"])
      recorder.series(long + end, "counter", { [long]: long }).add(1, 0);
    recorder.fold(1);
    expect(readMetrics(new ByteReader(frameOf(totals, 0)))).toMatchObject([
      { name: "ü".repeat(256), values: [2, 0, 0, 0] },
    ]);
  });
});
