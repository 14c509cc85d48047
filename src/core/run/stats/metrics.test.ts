import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { MetricRecorder, MetricTotals, SERIES_MAX } from "./metrics.ts";

function frameOf(recorder: MetricRecorder): Uint8Array {
  const writer = new ByteWriter();
  recorder.writeChanges(writer);
  return writer.take();
}

describe("custom metrics", () => {
  it("count, gauge, rate and trend across cores", () => {
    const merged = new MetricTotals();
    for (const core of [0, 1]) {
      const recorder = new MetricRecorder();
      recorder.series("orders", "counter", { shop: `s${core}` }).add(3, 0);
      recorder.series("orders", "counter", { shop: "all" }).add(1.5, 0);
      recorder.series("queue", "gauge").add(10 - core * 20, 100 + core);
      recorder.series("hits", "rate").add(1, 0);
      recorder.series("hits", "rate").add(core, 0);
      for (let i = 1; i <= 100; i++) recorder.series("cart", "trend").add(i + core * 100, 0);
      const totals = new MetricTotals();
      const frame = frameOf(recorder);
      expect(totals.applyChanges(new ByteReader(frame))).toBe(true);
      expect(totals.applyChanges(new ByteReader(frame))).toBe(true);
      totals.mergeInto(merged);
    }
    expect(merged.find("orders")).toMatchObject({ kind: "counter", count: 9 });
    expect(merged.find("orders", { shop: "s1" })?.count).toBe(3);
    expect(merged.find("orders", { shop: "none" })).toBeNull();
    expect(merged.find("queue")).toMatchObject({ last: -10, min: -10, max: 10 });
    expect(merged.find("hits")).toMatchObject({ hits: 3, total: 4 });
    const trend = merged.find("cart")?.trend;
    expect(trend?.count).toBe(200);
    expect((trend?.quantile(0.5) ?? 0) / 1_000).toBeCloseTo(100, 0);
    expect((trend?.max ?? 0) / 1_000).toBe(200);
    expect(merged.list()).toHaveLength(6);
  });

  it("refuse what they cannot take", () => {
    const recorder = new MetricRecorder();
    expect(recorder.series("c", "counter").add(-1, 0)).toBe(false);
    expect(recorder.series("t", "trend").add(Number.NaN, 0)).toBe(false);
    expect(recorder.series("g", "gauge").add(-1, 0)).toBe(true);
    expect(recorder.changed).toBe(true);
    frameOf(recorder);
    expect(recorder.changed).toBe(false);
  });

  it("write only what changed, and tags in any order are one series", () => {
    const recorder = new MetricRecorder();
    const one = recorder.series("c", "counter", { a: "1", b: "2" });
    expect(recorder.series("c", "counter", { b: "2", a: "1" })).toBe(one);
    one.add(1, 0);
    recorder.series("d", "counter").add(1, 0);
    const long = frameOf(recorder).length;
    one.add(1, 0);
    expect(frameOf(recorder).length).toBeLessThan(long);
  });

  it("keep a bounded number of series and still count the rest", () => {
    const recorder = new MetricRecorder();
    for (let i = 0; i < SERIES_MAX + 500; i++)
      recorder.series("ids", "counter", { id: `${i}` }).add(1, 0);
    for (let i = 0; i < 300; i++) recorder.series(`name${i}`, "counter").add(1, 0);
    const totals = new MetricTotals();
    expect(totals.applyChanges(new ByteReader(frameOf(recorder)))).toBe(true);
    expect(totals.find("ids")?.count).toBe(SERIES_MAX + 500);
    expect(totals.find("ids", { overflow: "true" })?.count).toBe(500);
    expect(totals.find("name0")?.count).toBe(1);
    expect(totals.find("overflow")?.count).toBe(300 - 99);
    expect(totals.list().length).toBeLessThanOrEqual(SERIES_MAX + 101);
  });

  it("begin anew after a reset, and late frames of before change nothing", () => {
    const recorder = new MetricRecorder();
    const handle = recorder.series("c", "counter");
    handle.add(5, 0);
    const old = frameOf(recorder);
    recorder.reset();
    expect(recorder.changed).toBe(true);
    const totals = new MetricTotals();
    totals.applyChanges(new ByteReader(old));
    totals.applyChanges(new ByteReader(frameOf(recorder)));
    expect(totals.find("c")).toBeNull();
    totals.applyChanges(new ByteReader(old));
    expect(totals.find("c")).toBeNull();
    handle.add(2, 0);
    totals.applyChanges(new ByteReader(frameOf(recorder)));
    expect(totals.find("c")?.count).toBe(2);
  });

  it("cut names and tags that are data, so that a frame stays readable", () => {
    const recorder = new MetricRecorder();
    const long = "ü".repeat(5_000);
    for (const end of ["a", "b"])
      recorder.series(long + end, "counter", { [long]: long }).add(1, 0);
    const totals = new MetricTotals();
    expect(totals.applyChanges(new ByteReader(frameOf(recorder)))).toBe(true);
    expect(totals.list()).toHaveLength(1);
    expect(totals.list()[0]).toMatchObject({ name: "ü".repeat(256), count: 2 });
  });

  it("survive any bytes", () => {
    const recorder = new MetricRecorder();
    recorder.series("c", "counter", { a: "1" }).add(5, 0);
    recorder.series("t", "trend").add(5, 0);
    const sound = frameOf(recorder);
    fc.assert(
      fc.property(fc.nat(sound.length - 1), fc.nat(255), (at, byte) => {
        const totals = new MetricTotals();
        expect(totals.applyChanges(new ByteReader(sound.slice(0, at)))).toBe(false);
        expect(totals.list()).toEqual([]);
        const flipped = sound.slice();
        flipped[at] = byte;
        totals.applyChanges(new ByteReader(flipped));
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        new MetricTotals().applyChanges(new ByteReader(bytes));
      }),
    );
  });
});
