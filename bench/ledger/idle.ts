/**
 * `npm run bench:idle`: the cost of idle jobs. Three ledger nodes in virtual time, messages through the real codec; CPU
 * of the process per simulated second and node, without requests: while the groups are awake, and once they sleep.
 *
 *     npm run bench:idle -- 10000 100000
 */

import type { LedgerRequest } from "../../src/core/ledger/node/messages.ts";
import { TestCluster } from "../../src/core/ledger/node/testing/cluster.ts";

const REGIONS = ["use1", "euw1", "apse1"];
const BATCH_JOBS = 500;
/** Longer than the last job's idle time, and than the anti-entropy comparison of nodes. */
const FALL_ASLEEP_MS = 130_000;
const AWAKE_MS = 6_000;
const ASLEEP_MS = 120_000;
const SHARE_MAX = 2;

/** Per node, in percent of a core. */
function shareOf(cluster: TestCluster, simulatedMs: number): number {
  const before = process.cpuUsage();
  cluster.run(simulatedMs);
  const { user, system } = process.cpuUsage(before);
  return (100 * (user + system)) / 1_000 / simulatedMs / REGIONS.length;
}

function measure(jobs: number): void {
  const cluster = new TestCluster(REGIONS);
  cluster.run(1_000);
  const baseline = shareOf(cluster, ASLEEP_MS);
  const submit: LedgerRequest = {
    ...{ kind: "submit", key: "", spec: new Uint8Array(256), assignedDcs: ["dc1"] },
  };
  for (let made = 0; made < jobs; made += BATCH_JOBS) {
    for (let at = 0; at < BATCH_JOBS; at++) cluster.request((made + at) % REGIONS.length, submit);
  }
  cluster.run(1_000);
  const awake = shareOf(cluster, AWAKE_MS);
  cluster.run(FALL_ASLEEP_MS);
  const asleep = shareOf(cluster, ASLEEP_MS);
  const percent = (share: number): string => `${share.toFixed(2)} %`;
  process.stdout.write(
    `${jobs} idle jobs: awake ${percent(awake)}, asleep ${percent(asleep)} of a core per node ` +
      `(must: at most ${SHARE_MAX} %; without jobs ${percent(baseline)})\n`,
  );
}

const counts = process.argv.slice(2).map(Number);
for (const jobs of counts.length > 0 ? counts : [10_000]) measure(jobs);
