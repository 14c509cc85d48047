// A stall of 1 s in 10 s at a constant 1000/s: are p99 and p99.9 within 2 % of the analytical answer?
//   npx tsx tools/check-stall.ts

import { analytical, runThroughStall, type StallPlan } from "../test/e2e/stall.ts";

const plan: StallPlan = { rate: 1_000, seconds: 10, stallMs: 1_000 };
const TOLERANCE = 0.02;

const open = await runThroughStall(plan, ["--rate", String(plan.rate)]);
const step = open.workflows[0]?.steps[0];
const rows = [
  { name: "p99", measured: step?.latencyMs.p99 ?? 0, expected: analytical(plan, 99) },
  { name: "p99.9", measured: step?.latencyMs.p99_9 ?? 0, expected: analytical(plan, 99.9) },
];
process.stdout.write(
  `${step?.requests} requests, ${open.generator.reason ?? "the generator kept up"}\n`,
);
let failed = false;
for (const { expected, measured, name } of rows) {
  const off = measured / expected - 1;
  failed ||= Math.abs(off) > TOLERANCE;
  process.stdout.write(
    `${name.padEnd(6)} ${measured.toFixed(1)} ms, analytical ${expected.toFixed(1)} ms, ` +
      `off by ${(off * 100).toFixed(2)} %\n`,
  );
}
const closed = await runThroughStall({ ...plan, rate: 100 }, ["--vus", "4"]);
process.stdout.write(
  `closed: p99 ${closed.workflows[0]?.steps[0]?.latencyMs.p99} ms; ${closed.notes[0]}\n`,
);
process.exitCode = failed ? 1 : 0;
