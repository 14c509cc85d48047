import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { Random } from "../../base/random.ts";
import { Histogram } from "./histogram.ts";
import { STATUS_OTHER, StepRecorder, StepTotals, type WindowSink } from "./step-stats.ts";

const KINDS = 3;

function frameOf(recorder: StepRecorder): Uint8Array {
  const writer = new ByteWriter();
  recorder.writeChanges(writer);
  return writer.take();
}

const apply = (totals: StepTotals, frame: Uint8Array, window: WindowSink | null = null) =>
  totals.applyChanges(new ByteReader(frame), window);

/** Everything observable of totals, for comparison. */
function view(totals: StepTotals): unknown {
  const shape = (histogram: Histogram) => {
    const cells: [number, number][] = [];
    histogram.forEachCell((cell, count) => cells.push([cell, count]));
    return { cells, sum: Math.round(histogram.sum), min: histogram.min, max: histogram.max };
  };
  const { ok, failed, interrupted, bytesIn, bytesOut, latency, service, firstByte, connect, tls } =
    totals;
  const statuses = [...totals.statuses].sort(([a], [b]) => a - b);
  return {
    counts: { ok, failed: [...failed], interrupted, bytesIn, bytesOut, statuses },
    histograms: [latency, service, firstByte, connect, tls].map(shape),
  };
}

const call = fc.record({
  kind: fc.integer({ min: -1, max: KINDS - 1 }),
  status: fc.constantFrom(0, 200, 204, 404, 500, 599, 600, 1006, 70_000),
  latency: fc.integer({ min: 0, max: 10_000_000 }),
  service: fc.integer({ min: 0, max: 10_000_000 }),
  firstByte: fc.integer({ min: -1, max: 10_000_000 }),
  connect: fc.integer({ min: -1, max: 1_000 }),
  tls: fc.integer({ min: -1, max: 1_000 }),
  bytes: fc.nat(5_000),
});
type Call = typeof call extends fc.Arbitrary<infer Value> ? Value : never;

function record(recorder: StepRecorder, c: Call): void {
  recorder.record(
    c.kind,
    c.status,
    c.latency,
    c.service,
    c.firstByte,
    c.connect,
    c.tls,
    c.bytes,
    57,
  );
}

describe("frames of a step", () => {
  const frames = fc.array(fc.array(call, { maxLength: 30 }), { minLength: 1, maxLength: 8 });

  it("carry every record, and may come twice (MET-2)", () => {
    fc.assert(
      fc.property(frames, fc.boolean(), (batches, corrected) => {
        const recorder = new StepRecorder(KINDS, corrected);
        const [once, twice] = [new StepTotals(KINDS, corrected), new StepTotals(KINDS, corrected)];
        const expected = { latency: new Histogram(), service: new Histogram(), requests: 0 };
        for (const batch of batches) {
          for (const one of batch) {
            record(recorder, one);
            expected.latency.record(one.latency);
            expected.service.record(corrected ? one.service : one.latency);
            expected.requests++;
          }
          const frame = frameOf(recorder);
          expect(apply(once, frame)).toBe(true);
          expect(apply(twice, frame)).toBe(true);
          expect(apply(twice, frame)).toBe(true);
        }
        expect(view(twice)).toEqual(view(once));
        expect(once.requests).toBe(expected.requests);
        expect(once.latency.count).toBe(expected.requests);
        expect(once.latency.quantiles([0.5, 0.99])).toEqual(
          expected.latency.quantiles([0.5, 0.99]),
        );
        expect(once.service.quantiles([0.5, 0.99])).toEqual(
          expected.service.quantiles([0.5, 0.99]),
        );
        expect(once.latency.mean).toBeCloseTo(expected.latency.mean, 3);
        expect(once.bytesIn).toBe(batches.flat().reduce((sum, one) => sum + one.bytes, 0));
      }),
    );
  });

  it("give the window sink each record exactly once", () => {
    fc.assert(
      fc.property(frames, (batches) => {
        const recorder = new StepRecorder(KINDS, false);
        const totals = new StepTotals(KINDS, false);
        const seen = { requests: 0, failed: 0, latencies: 0 };
        const sink: WindowSink = {
          addRequests(requests, failed) {
            seen.requests += requests;
            seen.failed += failed;
          },
          addLatency(_cell, count) {
            seen.latencies += count;
          },
        };
        for (const batch of batches) {
          for (const one of batch) record(recorder, one);
          const frame = frameOf(recorder);
          apply(totals, frame, sink);
          apply(totals, frame, sink);
        }
        expect(seen).toEqual({
          requests: totals.requests,
          failed: totals.failedCount,
          latencies: totals.requests,
        });
      }),
    );
  });

  it("of an older generation are ignored after a reset, and what was held before is dropped", () => {
    const recorder = new StepRecorder(KINDS, false);
    const totals = new StepTotals(KINDS, false);
    recorder.record(0, 500, 9_000, 9_000, 1, 1, 1, 10, 10);
    const warmup = frameOf(recorder);
    apply(totals, warmup);
    expect(totals.requests).toBe(1);
    recorder.reset();
    recorder.record(-1, 200, 100, 100, 50, -1, -1, 5, 5);
    apply(totals, frameOf(recorder));
    apply(totals, warmup);
    expect(view(totals)).toMatchObject({
      counts: { ok: 1, failed: [0, 0, 0], bytesIn: 5, statuses: [[200, 1]] },
    });
    expect(totals.latency.max).toBe(100);
  });

  it("say whether there is anything new", () => {
    const recorder = new StepRecorder(KINDS, false);
    expect(recorder.changed).toBe(false);
    recorder.interrupted(2);
    expect(recorder.changed).toBe(true);
    const totals = new StepTotals(KINDS, false);
    apply(totals, frameOf(recorder));
    expect(recorder.changed).toBe(false);
    expect(totals.interrupted).toBe(2);
    expect(totals.requests).toBe(0);
  });

  it("keep one histogram when latency and service are the same", () => {
    const totals = new StepTotals(KINDS, false);
    expect(totals.service).toBe(totals.latency);
    expect(new StepTotals(KINDS, true).service).not.toBe(totals.latency);
  });

  it("bound the statuses a peer can invent", () => {
    const recorder = new StepRecorder(KINDS, false);
    for (let status = 1_000; status < 3_000; status++)
      recorder.record(-1, status, 1, 1, -1, -1, -1, 0, 0);
    const totals = new StepTotals(KINDS, false);
    expect(apply(totals, frameOf(recorder))).toBe(true);
    expect(totals.statuses.size).toBeLessThanOrEqual(65);
    expect(totals.statuses.get(STATUS_OTHER)).toBe(2_000 - 64);
  });

  it("that are damaged are refused without a trace", () => {
    const recorder = new StepRecorder(KINDS, true);
    recorder.record(-1, 200, 100, 90, 50, -1, -1, 5, 5);
    const sound = frameOf(recorder);
    fc.assert(
      fc.property(fc.nat(sound.length - 1), fc.nat(255), (at, byte) => {
        const totals = new StepTotals(KINDS, true);
        const cut = sound.slice(0, at);
        expect(apply(totals, cut)).toBe(false);
        expect(totals.requests).toBe(0);
        const flipped = sound.slice();
        flipped[at] = byte;
        apply(totals, flipped);
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const totals = new StepTotals(KINDS, false);
        if (!apply(totals, bytes)) expect(totals.requests).toBe(0);
      }),
    );
    expect(apply(new StepTotals(KINDS + 1, true), sound)).toBe(false);
    expect(apply(new StepTotals(KINDS, false), sound)).toBe(false);
  });
});

describe("sixteen executors with different latencies", () => {
  it("merge to the percentiles of all raw samples, within 0.1 %", () => {
    const random = new Random("sixteen");
    const merged = new StepTotals(KINDS, true);
    const raw: number[] = [];
    for (let executor = 0; executor < 16; executor++) {
      const recorder = new StepRecorder(KINDS, true);
      const totals = new StepTotals(KINDS, true);
      const own = random.fork(`executor ${executor}`);
      for (let i = 0; i < 20_000; i++) {
        const us = sample(own, executor);
        raw.push(us);
        recorder.record(-1, 200, us, us / 2, -1, -1, -1, 1, 1);
        if (i % 1_500 === 0) apply(totals, frameOf(recorder));
      }
      apply(totals, frameOf(recorder));
      totals.mergeInto(merged);
    }
    raw.sort((a, b) => a - b);
    expect(merged.requests).toBe(raw.length);
    for (const fraction of [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999]) {
      const exact = raw[Math.ceil(fraction * raw.length) - 1] ?? 0;
      expect(Math.abs(merged.latency.quantile(fraction) / exact - 1)).toBeLessThan(0.001);
    }
    expect(merged.latency.min).toBe(raw[0]);
    expect(merged.latency.max).toBe(raw.at(-1));
  });
});

/** Uniform, exponential, two humps, heavy tail: in turn, around 1 to 16 ms. */
function sample(random: Random, executor: number): number {
  const scale = 1_000 * (executor + 1);
  switch (executor % 4) {
    case 0:
      return Math.floor(scale * (0.5 + random.float()));
    case 1:
      return Math.floor(1_000 - scale * Math.log(1 - random.float()));
    case 2:
      return Math.floor(scale * (random.chance(0.5) ? 1 : 8) * (0.9 + 0.2 * random.float()));
    default:
      return Math.floor(scale / (1 - random.float()) ** 0.5);
  }
}
