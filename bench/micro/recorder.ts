/**
 * CPU cost of `StepRecorder.record` (fetching the value included), of a frame with and without the windows in it, and
 * of merging one.
 * Run: npx tsx bench/micro/recorder.ts
 */

import { ByteWriter } from "../../src/core/base/bytes.ts";
import { Random } from "../../src/core/base/random.ts";
import { FrameMerger } from "../../src/core/load/stats/frame-merger.ts";
import { StatsRecorder } from "../../src/core/load/stats/stats-recorder.ts";
import { StepRecorder, StepTotals } from "../../src/core/load/stats/step-stats.ts";

const ROUNDS = 60;
/** About what one core records between two frames at full rate. */
const RECORDS_PER_FRAME = 5_000;
const FRAMES_PER_ROUND = 20;
const VALUES = 1 << 16;
const KINDS = 10;

/** Log-normal around 0.8 ms with a tail of one in a hundred: a healthy target nearby. */
function latencies(): Float64Array {
  const random = new Random("recorder");
  return Float64Array.from({ length: VALUES }, () => {
    const normal = random.float() + random.float() + random.float() + random.float() - 2;
    return 800 * Math.exp(normal) * (random.chance(0.01) ? 20 : 1);
  });
}

function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function recordMany(recorder: StepRecorder, values: Float64Array, count: number): void {
  for (let i = 0; i < count; i++) {
    const latency = values[i & (VALUES - 1)] ?? 0;
    recorder.record(-1, 200, latency, latency, latency * 0.8, -1, -1, 238, 57);
  }
}

const median = (list: number[]): number => list.sort((a, b) => a - b)[list.length >> 1] ?? 0;

function measureRecord(name: string, corrected: boolean): void {
  const values = latencies();
  const recorder = new StepRecorder(KINDS, corrected);
  const totals = new StepTotals(KINDS, corrected);
  const writer = new ByteWriter(1 << 16);
  const recordNs: number[] = [];
  const frameUs: number[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    const spent = cpuUs();
    recordMany(recorder, values, RECORDS_PER_FRAME * FRAMES_PER_ROUND);
    recordNs.push(((cpuUs() - spent) * 1_000) / (RECORDS_PER_FRAME * FRAMES_PER_ROUND));
    recorder.fold(totals, round * FRAMES_PER_ROUND);
    for (let i = 1; i <= FRAMES_PER_ROUND; i++) {
      const frame = round * FRAMES_PER_ROUND + i;
      recordMany(recorder, values, RECORDS_PER_FRAME);
      writer.clear();
      const before = cpuUs();
      recorder.fold(totals, frame);
      totals.tally.write(writer, frame - 1);
      frameUs.push(cpuUs() - before);
    }
  }
  process.stdout.write(
    `${name}: ${median(recordNs).toFixed(1)} ns per record (best ${Math.min(...recordNs).toFixed(1)}); ` +
      `totals alone ${median(frameUs).toFixed(0)} µs per 100 ms\n`,
  );
}

/** Work of a core and its receiver ten times per second, windows and acknowledgement included. */
function measureFrames(name: string, corrected: boolean): void {
  const values = latencies();
  const shape = { errorKinds: KINDS, corrected };
  const recorder = new StatsRecorder(shape);
  const merger = new FrameMerger(shape);
  const step = recorder.step(recorder.stepNumber("home", "http"));
  const [sendUs, receiveUs]: [number[], number[]] = [[], []];
  let bytes = 0;
  for (let window = 1; window <= ROUNDS * FRAMES_PER_ROUND; window++) {
    recordMany(step, values, RECORDS_PER_FRAME);
    let before = cpuUs();
    recorder.seal(window, { users: 64, target: 64, cpuMs: 90, lagMsMax: 1 });
    const moment = { measuredMs: window * 100, warmingUp: false, target: 64, arrivalsWaiting: 0 };
    const frame = recorder.frame(moment, false);
    sendUs.push(cpuUs() - before);
    bytes = frame.length;
    before = cpuUs();
    recorder.acknowledged(merger.receive(0, frame).held);
    receiveUs.push(cpuUs() - before);
  }
  process.stdout.write(
    `${name}: ${median(sendUs).toFixed(0)} µs and ${bytes} bytes to write a frame with its window, ` +
      `${median(receiveUs).toFixed(0)} µs to take it in\n`,
  );
}

for (const [name, corrected] of [
  ["closed model (latency, first byte)", false],
  ["open model (latency, service, first byte)", true],
] as const) {
  measureRecord(name, corrected);
  measureFrames(name, corrected);
}
