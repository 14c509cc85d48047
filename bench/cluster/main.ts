/**
 * `npm run bench:cluster`: results of a cluster in one table: on processes of this machine where it can show them, else
 * by the CPU time of the same machines in one process.
 *
 *     npm run bench:cluster                        everything
 *     npm run bench:cluster -- --rounds 10 start   these rows
 */

import { parseArgs } from "node:util";
import { cpu } from "./cpu.ts";
import { gateFrames } from "./gate-frames.ts";
import { jobs } from "./jobs.ts";
import { losses } from "./losses.ts";
import { managerFrames } from "./manager-frames.ts";
import { messages } from "./messages.ts";
import { rolling } from "./rolling.ts";
import { type Measurement, type Seen, tableOf } from "./row.ts";
import { scale } from "./scale.ts";
import { start } from "./start.ts";

const MEASUREMENTS: readonly Measurement[] = [
  cpu,
  start,
  ...losses,
  rolling,
  managerFrames,
  gateFrames,
  ...messages,
  jobs,
  scale,
];

const { positionals: only, values } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string", default: "5" } },
});
const rounds = Number(values.rounds);
const known = MEASUREMENTS.flatMap(({ rows }) => rows);
const unknown = only.filter((name) => !known.some((row) => row.name === name));
if (!Number.isInteger(rounds) || rounds < 1 || unknown.length > 0) {
  process.stderr.write(
    "usage: npm run bench:cluster -- [--rounds 5] [ROW]...\n" +
      `rows: ${known.map(({ name }) => name).join(", ")}\n`,
  );
  process.exit(2);
}

const isWanted = ({ name }: { readonly name: string }): boolean =>
  only.length === 0 || only.includes(name);
const began = performance.now();
const say = (text: string): void => {
  const at = ((performance.now() - began) / 1_000).toFixed(0).padStart(5);
  process.stderr.write(`${at} s  ${text}\n`);
};
const findings = new Map<string, Seen>();
for (const { measure, rows } of MEASUREMENTS) {
  if (!rows.some(isWanted)) continue;
  for (const [name, seen] of await measure(rounds, say)) findings.set(name, seen);
}
const shown = known.filter(isWanted);
process.stdout.write(`${tableOf(shown, findings)}\n`);
const missed = shown.some(({ name }) => findings.get(name)?.holds === false);
process.exit(missed ? 1 : 0);
