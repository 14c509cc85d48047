/**
 * `npm run bench:protocols`: CPU per operation of each protocol beside its peers, in one run.
 *
 *     npm run bench:protocols                  all whose servers are available
 *     npm run bench:protocols -- redis mysql   some
 *     npm run bench:protocols -- --rounds 7
 *
 * All sides make the same calls over as many connections to the same server, in turns: ours, a peer's, the next one's,
 * ours, … Counts the CPU time of this process alone (user and system), or that of a peer program, so that other load on
 * the machine disturbs little, and the server not at all. The median of the rounds counts. Missing servers, programs
 * and packages are fetched into the folder that `npm run test:protocols` uses; those that cannot be are named in their
 * rows.
 */

import "../../test/reporters/fetching.ts";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import type { Comparison, Side } from "./comparison.ts";
import { drivers } from "./drivers.ts";
import { ownWire } from "./own-wire.ts";

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

interface Costs {
  readonly ours: number;
  /** In the order of the available peers. */
  readonly peers: readonly number[];
}

async function measured({ operations, start }: Comparison): Promise<Costs> {
  const { ours, peers, stop } = await start();
  const sides = [ours, ...peers];
  try {
    for (const side of sides) await side.run(Math.ceil(operations / 2));
    const costs = sides.map((): number[] => []);
    for (let round = 0; round < rounds; round++)
      for (const [at, side] of sides.entries()) costs[at]?.push(await cost(side, operations));
    const [our = Number.NaN, ...others] = costs.map(median);
    return { ours: our, peers: others };
  } finally {
    await stop();
  }
}

const row = (...cells: readonly string[]): boolean =>
  process.stdout.write(`| ${cells.join(" | ")} |\n`);

row("protocol", "ours, µs", "beside", "µs", "ratio", "must");
row(...Array.from({ length: 6 }, () => "---"));
for (const each of [...ownWire, ...drivers]) {
  if (positionals.length > 0 && !positionals.some((word) => each.name.startsWith(word))) continue;
  const costs = each.absent === null ? await measured(each) : null;
  const peerCosts = [...(costs?.peers ?? [])];
  for (const { absent, must, name } of each.peers) {
    const why = each.absent ?? absent;
    const peer = why === null ? peerCosts.shift() : undefined;
    if (costs === null || peer === undefined) {
      row(each.name, costs?.ours.toFixed(0) ?? "", name, "", `skipped: ${why}`, `${must}`);
      continue;
    }
    const ratio = costs.ours / peer;
    const verdict = ratio <= must ? "" : ", missed";
    const [our, its] = [costs.ours.toFixed(1), peer.toFixed(1)];
    row(each.name, our, name, its, ratio.toFixed(2), `${must}${verdict}`);
  }
}
const load = loadavg().map((value) => value.toFixed(1));
process.stdout.write(`\nload average at the end: ${load.join(", ")}\n`);
process.exit(0);
