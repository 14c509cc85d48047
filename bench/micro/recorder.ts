/**
 * CPU cost of `StepRecorder.record` (fetching the value included) and of writing a frame.
 * Run: npx tsx bench/micro/recorder.ts
 */

import { ByteWriter } from "../../src/core/base/bytes.ts";
import { Random } from "../../src/core/base/random.ts";
import { StepRecorder } from "../../src/core/run/stats/step-stats.ts";

const ROUNDS = 200;
/** About what one core records between two frames at full rate. */
const RECORDS_PER_FRAME = 5_000;
const FRAMES_PER_ROUND = 20;
const VALUES = 1 << 16;

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

function measure(name: string, corrected: boolean): void {
  const values = latencies();
  const recorder = new StepRecorder(10, corrected);
  const writer = new ByteWriter(1 << 16);
  const recordNs: number[] = [];
  const frameUs: number[] = [];
  let frameBytes = 0;
  for (let round = 0; round < ROUNDS; round++) {
    let spent = cpuUs();
    recordMany(recorder, values, RECORDS_PER_FRAME * FRAMES_PER_ROUND);
    recordNs.push(((cpuUs() - spent) * 1_000) / (RECORDS_PER_FRAME * FRAMES_PER_ROUND));
    recorder.writeChanges(writer);
    for (let frame = 0; frame < FRAMES_PER_ROUND; frame++) {
      recordMany(recorder, values, RECORDS_PER_FRAME);
      writer.clear();
      spent = cpuUs();
      recorder.writeChanges(writer);
      frameUs.push(cpuUs() - spent);
      frameBytes = writer.length;
    }
  }
  const median = (list: number[]): number => list.sort((a, b) => a - b)[list.length >> 1] ?? 0;
  process.stdout.write(
    `${name}: ${median(recordNs).toFixed(1)} ns per record (best ${Math.min(...recordNs).toFixed(1)}); ` +
      `${median(frameUs).toFixed(0)} µs and ${frameBytes} bytes per frame\n`,
  );
}

measure("closed model (latency, first byte)", false);
measure("open model (latency, service, first byte)", true);
