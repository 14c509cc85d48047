/**
 * `npm run chaos:ledger`: three processes under faults for some minutes; exits non-zero on a violation.
 * With `--wipe`, rounds in which a node loses its disk and joins again under its old name.
 */

import { parseArgs } from "node:util";
import { CALM_RATE_MIN, runChaos } from "../processes/ledger/chaos.ts";
import { wipeRound } from "../processes/ledger/wipe.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "3" },
    seed: { type: "string" },
    wipe: { type: "boolean", default: false },
    rounds: { type: "string", default: "10" },
  },
});
const minutes = Number(values.minutes);
const seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed);
const rounds = Number(values.rounds);
if (!(minutes > 0) || !Number.isInteger(seed) || !(rounds > 0)) {
  process.stderr.write(
    "usage: npm run chaos:ledger -- --minutes 3 --seed 42\n" +
      "       npm run chaos:ledger -- --wipe --rounds 10 --seed 42\n",
  );
  process.exit(2);
}
const started = performance.now();
const say = (text: string): void => {
  const at = ((performance.now() - started) / 1_000).toFixed(1).padStart(6);
  process.stdout.write(`${at} s  ${text}\n`);
};
if (values.wipe) {
  let [keys, problems] = [0, 0];
  for (let round = 0; round < rounds; round++) {
    const result = await wipeRound(seed + round);
    keys += result.keys;
    problems += result.problems.length;
    for (const problem of result.problems) say(`VIOLATION in round ${seed + round}: ${problem}`);
    if ((round + 1) % 10 === 0) say(`${round + 1} rounds, ${keys} keys, ${problems} violations`);
  }
  say(`${rounds} disks lost, ${keys} keys: ${problems} with two jobs or lost; seed ${seed}`);
  process.exit(problems === 0 ? 0 : 1);
}
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
