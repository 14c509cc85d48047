/**
 * `npm run bench:memory`: whether memory grows. The prepared flow at full rate for ten minutes; memory after the first
 * minute is compared with memory at the end. --minutes shortens it.
 */

import { parseArgs } from "node:util";
import { Measured, sleep } from "./processes.ts";
import { startTarget } from "./target.ts";
import { hyperscale } from "./tools.ts";

const MINUTE_MS = 60_000;
const SAMPLE_MS = 5_000;
const MUST_MIB = 24;
const AIM_MIB = 4;

/** The minimum of a minute's samples: what remains after collection, not what waits for it. */
async function leastMebibytes(run: Measured): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let waited = 0; waited < MINUTE_MS; waited += SAMPLE_MS) {
    await sleep(SAMPLE_MS);
    if (run.ended !== null) throw new Error(run.ended);
    least = Math.min(least, run.residentBytes() / 1_048_576);
  }
  return least;
}

const { values } = parseArgs({ options: { minutes: { type: "string", default: "10" } } });
const minutes = Number(values.minutes);
if (!(minutes >= 2)) {
  process.stderr.write("--minutes takes a number of at least 2\n");
  process.exit(2);
}
const target = await startTarget(undefined);
const command = hyperscale("prepared.mjs", target.url, { cores: 1 });
if ("skip" in command) {
  process.stderr.write(`not measured: ${command.skip}\n`);
  await target.close();
  process.exit(1);
}
const run = new Measured(command);
try {
  let first = 0;
  let last = 0;
  for (let minute = 1; minute <= minutes; minute++) {
    last = await leastMebibytes(run);
    if (minute === 1) first = last;
    process.stdout.write(
      `minute ${minute}: ${last.toFixed(1)} MiB, ${await target.count()} requests\n`,
    );
  }
  const growth = last - first;
  const verdict = growth <= AIM_MIB ? "aim" : growth <= MUST_MIB ? "reached" : "MISSED";
  process.stdout.write(
    `memory, minute ${minutes} minus minute 1: ${growth.toFixed(1)} MiB ` +
      `(must <= ${MUST_MIB}, aim <= ${AIM_MIB}): ${verdict}\n`,
  );
} finally {
  await run.kill();
  await target.close();
}
