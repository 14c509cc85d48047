/**
 * `npm run chaos:wal`: 1,000 kills of a writing process at random moments; every entry it had called
 * durable must be there afterwards, byte for byte.
 *
 *     npm run chaos:wal                          1,000 kills, about 5 minutes
 *     npm run chaos:wal -- --kills 100 --seed 7
 */

import { parseArgs } from "node:util";
import { killRepeatedly } from "../processes/log/kill.ts";

const { values } = parseArgs({
  options: { kills: { type: "string", default: "1000" }, seed: { type: "string", default: "1" } },
});
const kills = Number(values.kills);
const seed = Number(values.seed);
if (!Number.isInteger(kills) || kills < 1 || !Number.isInteger(seed)) {
  process.stderr.write("chaos:wal: --kills and --seed are whole numbers\n");
  process.exit(2);
}
const started = performance.now();
const report = await killRepeatedly(kills, seed, (done) => {
  if (done % 25 === 0) process.stderr.write(`${done} of ${kills} kills, nothing lost\n`);
});
const seconds = ((performance.now() - started) / 1_000).toFixed(0);
process.stdout.write(
  `${report.kills} kills (seed ${seed}) in ${seconds} s: ${report.acknowledged} entries acknowledged, ` +
    `none lost or changed; ${report.torn} torn tails, ${report.early} kills before the log was open\n`,
);
