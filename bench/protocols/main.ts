/**
 * `npm run bench:protocols`: CPU per operation of each protocol beside a peer, in one run.
 *
 *     npm run bench:protocols                  all whose servers are here
 *     npm run bench:protocols -- redis mysql   some
 *     npm run bench:protocols -- --rounds 7
 *
 * Both sides make the same calls over as many connections to the same server, in turns: ours, the peer's,
 * ours, … Counted is the time of this process alone (user and system), so that other load on the machine
 * disturbs little, and the server not at all. The median of the rounds counts.
 */

import { parseArgs } from "node:util";
import { type BenchCase, cases, type Side } from "./cases.ts";

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string", default: "5" } },
});
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 1) throw new Error("--rounds is a whole number");

/** Microseconds of CPU per operation. */
async function cost({ cpuMicros, run }: Side, operations: number): Promise<number> {
  const before = process.cpuUsage();
  await run(operations);
  const { system, user } = process.cpuUsage(before);
  return (cpuMicros?.() ?? system + user) / operations;
}

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? Number.NaN;

interface Row {
  readonly name: string;
  readonly ours: number;
  readonly peer: number;
}

async function measured({ name, operations, start }: BenchCase): Promise<Row> {
  const { ours, peer, stop } = await start();
  try {
    for (const side of [ours, peer]) await side.run(Math.ceil(operations / 2));
    const costs = { ours: [] as number[], peer: [] as number[] };
    for (let round = 0; round < rounds; round++) {
      costs.ours.push(await cost(ours, operations));
      costs.peer.push(await cost(peer, operations));
    }
    return { name, ours: median(costs.ours), peer: median(costs.peer) };
  } finally {
    await stop();
  }
}

process.stdout.write("| protocol | ours, µs | beside | µs | ratio | must |\n");
process.stdout.write("| --- | --- | --- | --- | --- | --- |\n");
for (const each of cases) {
  if (positionals.length > 0 && !positionals.some((word) => each.name.startsWith(word))) continue;
  if (each.absent !== null) {
    process.stdout.write(`| ${each.name} | | ${each.beside} | | skipped: ${each.absent} | |\n`);
    continue;
  }
  const { ours, peer } = await measured(each);
  const ratio = ours / peer;
  const verdict = ratio <= each.must ? "" : ", missed";
  process.stdout.write(
    `| ${each.name} | ${ours.toFixed(0)} | ${each.beside} | ${peer.toFixed(0)} ` +
      `| ${ratio.toFixed(2)} | ${each.must}${verdict} |\n`,
  );
}
process.exit(0);
