/**
 * `npm run chaos:membership`: every scenario with a large cluster of real processes.
 *
 *     npm run chaos:membership -- --size 32 --profile lan
 */

import { parseArgs } from "node:util";
import { AgentCluster, freshNet } from "../../bench/swim/agents.ts";
import {
  killOne,
  leaveOne,
  type Outcome,
  partition,
  restartAll,
  seconds,
  stopOne,
  TwoNetworks,
} from "../processes/cluster/scenarios.ts";

const { values } = parseArgs({
  options: {
    size: { type: "string", default: "32" },
    profile: { type: "string", default: "lan" },
  },
});
const size = Number(values.size);
const { profile } = values;

const rows: Outcome[] = [];
async function play(scenario: () => Promise<Outcome>): Promise<void> {
  const outcome = await scenario();
  rows.push(outcome);
  const { what, detectedMs, agreedMs } = outcome;
  const detected = detectedMs === null ? "" : `, known to all after ${seconds(detectedMs)}`;
  process.stdout.write(`${what}${detected}; all agree after ${seconds(agreedMs)}\n`);
}

process.stdout.write(`${size} agents, profile ${profile}, Node ${process.version}\n`);
const cluster = new AgentCluster({ net: freshNet(), size, profile });
try {
  await cluster.startAll();
  await play(() => killOne(cluster, 5));
  await play(() => leaveOne(cluster, 6));
  await play(() => stopOne(cluster, 7, 3_000));
  await play(() => stopOne(cluster, 8, 20_000));
  await play(() => restartAll(cluster));
} finally {
  await cluster.stop();
}
if (TwoNetworks.possible()) await play(() => partition(size, profile, 30_000));
else process.stdout.write("skipped: partition (no network namespaces on this machine)\n");
process.stdout.write(`${rows.length} scenarios, membership agreed after each\n`);
