/**
 * One tenant asks for a hundred times its share. Every tenant keeps more jobs in the cluster than its share of the
 * cores can run, and submits another one for each that finishes; the first keeps three, as the others do, or three
 * hundred. The others wait equally long either way: they have no more cores than it has, so that each core that becomes
 * free is theirs in turn. Waiting counts from the first attempt to submit until a core has the job.
 *
 * Less than its share would show nothing: a tenant that finds idle cores does not wait, and with a tenant that asks for
 * all remaining cores there are none.
 */

import type { LoadPlan } from "../../../src/core/load/plan/load.ts";
import type { SimClient } from "../client.ts";
import { plainJob } from "../jobs.ts";
import { Bench } from "./bench.ts";
import { atLeast, atMost, type Figure, mean, quantile, told } from "./figure.ts";

const TENANTS = 5;
const CORES = 8;
const LOAD_MS = 2_000;
/** Jobs that a tenant keeps in the cluster; its share is 1.6 cores. */
const KEPT = 3;
const TIMES = 100;
const FLOOD_CLIENTS = 10;
const LOOK_MS = 20;
/** By then its three hundred jobs have been submitted. */
const WARM_UP_MS = 10_000;
const FIRST = "tenant-0";
const LOAD: LoadPlan = {
  ...{ kind: "vus", stages: [{ durationMs: LOAD_MS, from: 1, to: 1 }] },
};

interface Waits {
  readonly meanMs: number;
  readonly p99Ms: number;
  readonly jobs: number;
  /** Jobs of the first tenant that ran, of all that did. */
  readonly share: number;
}

/** How long jobs of the others wait when the first tenant keeps `times` as many jobs. */
function waiting(gates: number, times: number, forMs: number): Waits {
  const bench = new Bench(2, {
    ...{ gates, managers: 1, workers: 4, coresPerWorker: CORES / 4 },
    ...{ clients: TENANTS + FLOOD_CLIENTS, gateCostMs: 0.5, managerCostMs: 0.5 },
  });
  const { truth, world } = bench;
  const beginAt = world.now + WARM_UP_MS;
  const waitedMs: number[] = [];
  /** Jobs of the others by key: when submitted, and whether a core has it. */
  const open = new Map<string, { readonly tenant: number; readonly at: number; runs: boolean }>();
  let [ofFirst, count] = [0, 0];
  const submit = (client: SimClient, key: string, tenant: string, bundle: string): void =>
    bench.submit(client, plainJob(key, { load: LOAD, cores: 1, tenant, bundle }), (answer) => {
      if (answer?.kind === "accepted") return;
      const retryMs = answer?.kind === "refused" ? (answer.retryAfterMs ?? 0) : 0;
      client.lifetime.after(200 + retryMs, "step", () => submit(client, key, tenant, bundle));
    });
  const submitOther = (tenant: number): void => {
    const key = `${tenant}-${++count}`;
    open.set(key, { tenant, at: world.now, runs: false });
    submit(bench.client(tenant), key, `tenant-${tenant}`, key);
  };
  const isOver = (key: string): boolean => truth.job(key).teardowns.size > 0;
  const endedOfFirst = (): number => truth.job(FIRST).teardowns.get("first") ?? 0;
  const look = (): void => {
    for (; ofFirst - endedOfFirst() < KEPT * times; ofFirst++)
      submit(bench.client(TENANTS + (ofFirst % FLOOD_CLIENTS)), `first-${ofFirst}`, FIRST, FIRST);
    for (const [key, one] of open) {
      if (!one.runs && truth.job(key).cores.length > 0) {
        one.runs = true;
        if (one.at >= beginAt) waitedMs.push(world.now - one.at);
      }
      if (!isOver(key)) continue;
      open.delete(key);
      submitOther(one.tenant);
    }
    world.schedule(world.now + LOOK_MS, "check", 0, look);
  };
  for (let tenant = 1; tenant < TENANTS; tenant++)
    for (let kept = 0; kept < KEPT; kept++) submitOther(tenant);
  look();
  bench.run(WARM_UP_MS + forMs);
  // Jobs that still wait have waited at least this long.
  for (const { at, runs } of open.values())
    if (!runs && at >= beginAt) waitedMs.push(world.now - at);
  return {
    ...{ meanMs: mean(waitedMs), p99Ms: quantile(waitedMs, 0.99), jobs: waitedMs.length },
    share: endedOfFirst() / (endedOfFirst() + count - open.size),
  };
}

export const tenants: Figure = (scale) => {
  const forMs = Math.max(20_000, 120_000 * scale);
  return [0, 1].flatMap((gates) => {
    const where = gates === 0 ? "at managers" : "through a gate";
    const alone = waiting(gates, 1, forMs);
    const flooded = waiting(gates, TIMES, forMs);
    const text = ({ jobs, meanMs, p99Ms, share }: Waits): string =>
      `mean ${meanMs.toFixed(0)}, p99 ${p99Ms.toFixed(0)} ms of ${jobs} jobs; share of the first ${share.toFixed(2)}`;
    return [
      told(`waiting of the others ${where}, all ask for their share`, text(alone)),
      told(`the same, the first asks for ${TIMES} times its share`, text(flooded)),
      atMost(`waiting, of that at their shares, ${where}`, flooded.meanMs / alone.meanMs, 1.2),
      atLeast(
        `jobs of the others that ran, of those then, ${where}`,
        flooded.jobs / alone.jobs,
        0.8,
      ),
    ];
  });
};
