/**
 * One tenant asks for a hundred times its share. The others wait as if it asked for its share: they hold fewer cores
 * than it does, so that each core that becomes free is theirs first. Waiting counts from the first attempt to submit.
 */

import type { LoadPlan } from "../../../src/core/run/plan/load.ts";
import type { SimClient } from "../client.ts";
import { plainJob } from "../jobs.ts";
import { Bench } from "./bench.ts";
import { atMost, type Figure, mean, told } from "./figure.ts";

const TENANTS = 5;
const CORES = 8;
const LOAD_MS = 2_000;
/** Of all tenants together at their shares: what eight cores finish of such jobs, with set-up and tear-down. */
const JOBS_PER_SECOND = 2.6;
const FLOOD_CLIENTS = 10;
const LOOK_MS = 50;
const WARM_UP_MS = 5_000;
const LOAD: LoadPlan = {
  ...{ kind: "vus", stages: [{ durationMs: LOAD_MS, from: 1, to: 1 }] },
};

/** How long jobs of the others wait, on average, when the first tenant asks for so many times its share. */
function waiting(gates: number, times: number, forMs: number): { waitMs: number; jobs: number } {
  const bench = new Bench(2, {
    ...{ gates, managers: 1, workers: 4, coresPerWorker: CORES / 4 },
    ...{ clients: TENANTS + FLOOD_CLIENTS, gateCostMs: 0.5, managerCostMs: 0.5 },
  });
  const { world } = bench;
  const random = world.random.fork("tenants");
  const waited: number[] = [];
  const begun = new Map<string, number>();
  const beginAt = world.now + WARM_UP_MS;
  const until = beginAt + forMs;
  let count = 0;
  const submit = (client: SimClient, key: string, tenant: string, triesAgain: boolean): void => {
    const bundle = triesAgain ? key : tenant;
    const plan = plainJob(key, { load: LOAD, cores: 1, tenant, bundle });
    bench.submit(client, plan, (answer) => {
      if (answer?.kind === "accepted" || !triesAgain) return;
      const retryMs = answer?.kind === "refused" ? (answer.retryAfterMs ?? 0) : 0;
      client.lifetime.after(200 + retryMs, "step", () => submit(client, key, tenant, true));
    });
  };
  const arrive = (tenant: number, perSecond: number): void => {
    if (world.now >= until) return;
    const key = `${tenant}-${++count}`;
    const isOther = tenant > 0;
    const clientAt = isOther ? tenant : TENANTS + random.below(FLOOD_CLIENTS);
    if (isOther && world.now >= beginAt) begun.set(key, world.now);
    submit(bench.client(clientAt), key, `tenant-${tenant}`, isOther);
    const gapMs = (-Math.log(1 - random.float()) * 1_000) / perSecond;
    world.schedule(world.now + gapMs, "step", 0, () => arrive(tenant, perSecond));
  };
  const share = JOBS_PER_SECOND / TENANTS;
  for (let tenant = 0; tenant < TENANTS; tenant++)
    arrive(tenant, tenant === 0 ? share * times : share);
  const look = (): void => {
    for (const [key, at] of begun) {
      if (bench.truth.job(key).cores.length === 0) continue;
      waited.push(world.now - at);
      begun.delete(key);
    }
    world.schedule(world.now + LOOK_MS, "check", 0, look);
  };
  look();
  bench.run(until - world.now);
  // Those that still wait have waited at least so long.
  for (const at of begun.values()) waited.push(world.now - at);
  return { waitMs: mean(waited), jobs: waited.length };
}

export const tenants: Figure = (scale) => {
  const forMs = Math.max(20_000, 120_000 * scale);
  return [0, 1].flatMap((gates) => {
    const where = gates === 0 ? "at managers" : "through a gate";
    const alone = waiting(gates, 1, forMs);
    const flooded = waiting(gates, 100, forMs);
    const text = `${alone.waitMs.toFixed(0)} -> ${flooded.waitMs.toFixed(0)} ms (${flooded.jobs} jobs)`;
    return [
      told(`waiting of the others ${where}`, text),
      atMost(`of that when all have their share, ${where}`, flooded.waitMs / alone.waitMs, 1.2),
    ];
  });
};
