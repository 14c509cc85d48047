/** `npm run chaos:ledger`: three processes under faults for some minutes; exits non-zero on a violation. */

import { parseArgs } from "node:util";
import { CALM_RATE_MIN, runChaos } from "../processes/ledger/chaos.ts";

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "3" }, seed: { type: "string" } },
});
const minutes = Number(values.minutes);
const seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed);
if (!(minutes > 0) || !Number.isInteger(seed)) {
  process.stderr.write("usage: npm run chaos:ledger -- --minutes 3 --seed 42\n");
  process.exit(2);
}
const started = performance.now();
const say = (text: string): void => {
  const at = ((performance.now() - started) / 1_000).toFixed(1).padStart(6);
  process.stdout.write(`${at} s  ${text}\n`);
};
say(`three processes, ${minutes} minutes, seed ${seed}`);
const result = await runChaos({ minutes, seed, say });
const slow = result.calmRates.filter((rate) => rate < CALM_RATE_MIN);
const faults = Object.entries(result.faults).map(([name, count]) => `${count} ${name}`);
const calm = result.calmRates.map((rate) => Math.round(rate));
process.stdout.write(
  `
operations     ${result.operations} on ${result.jobs} jobs: ${result.acknowledged} answered, ${result.unknown} unknown
faults         ${faults.join(", ")}
latency        p50 ${result.p50Ms} ms, p99 ${result.p99Ms} ms over everything
unavailable    ${result.unavailableMsMax} ms at the longest, for one job
calm           ${Math.min(...calm)} to ${Math.max(...calm)} operations/s; at least ${CALM_RATE_MIN} are needed
`,
);
for (const skipped of result.skipped) process.stdout.write(`skipped        ${skipped}\n`);
for (const problem of result.problems.slice(0, 20))
  process.stdout.write(`VIOLATION      ${problem}\n`);
const counts = slow.length === 0;
const word =
  result.problems.length > 0
    ? `${result.problems.length} violations`
    : counts
      ? "every acknowledged event once, in order; strong reads linearizable; replicas equal"
      : `no violation, but ${slow.length} calms were too slow: the run does not count`;
process.stdout.write(
  `verdict        ${word}\nreplay         npm run chaos:ledger -- --minutes ${minutes} --seed ${seed}\n`,
);
process.exit(result.problems.length === 0 && counts ? 0 : 1);
