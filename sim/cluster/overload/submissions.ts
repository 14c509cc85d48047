/**
 * A gate that is offered ten times the jobs it can accept. Its capacity is measured with more and more clients that
 * each wait for their answer before they submit again; ten times as many clients, which return at their retry time, are
 * the flood. Beside them others query and cancel jobs.
 */

import type { LoadPlan } from "../../../src/core/load/plan/load.ts";
import type { SimClient } from "../client.ts";
import { plainJob } from "../jobs.ts";
import { Bench } from "./bench.ts";
import { atLeast, atMost, type Figure, quantile, told } from "./figure.ts";

/** A single call. */
const SHORT: LoadPlan = { kind: "perUser", vus: 1, iterations: 1, durationMsMax: 10_000 };
const GATE_COST_MS = 10;
const OTHERS = 4;
const ASK_EVERY_MS = 2_000;
const WARM_UP_MS = 15_000;

interface Offered {
  readonly perSecond: number;
  readonly accepted: number;
  readonly p99Ms: number;
  readonly refused: number;
  /** Cancels and queries: sent, and served. */
  readonly asked: number;
  readonly served: number;
  readonly attempts: number;
}

function offer(programs: number, forMs: number): Offered {
  const bench = new Bench(1, {
    ...{ gates: 1, managers: 1, workers: 4, coresPerWorker: 64, clients: programs + OTHERS },
    ...{ gateCostMs: GATE_COST_MS, managerCostMs: 0.02 },
  });
  const { world } = bench;
  const tookMs: number[] = [];
  const counts = { jobs: 0, refused: 0, asked: 0, served: 0, attempts: 0 };
  const jobs: string[] = [];
  const beginAt = world.now + WARM_UP_MS;
  const until = beginAt + forMs;
  const random = world.random.fork("programs");
  const submits = (client: SimClient, key: string): void => {
    if (world.now >= until) return;
    const plan = plainJob(key, { load: SHORT, cores: 1, tenant: null, bundle: "flood" });
    const isCounted = world.now >= beginAt;
    if (isCounted) counts.attempts++;
    bench.submit(client, plan, (answer, ms) => {
      if (answer?.kind === "accepted") {
        jobs.push(answer.job);
        if (isCounted) tookMs.push(ms);
        submits(client, `job-${++counts.jobs}`);
        return;
      }
      if (isCounted) counts.refused++;
      const retryMs = answer?.kind === "refused" ? (answer.retryAfterMs ?? 0) : 0;
      client.lifetime.after(200 + retryMs, "step", () => submits(client, key));
    });
  };
  for (let at = 0; at < programs; at++) {
    const client = bench.client(at);
    client.lifetime.after(random.float() * 2_000, "step", () =>
      submits(client, `job-${++counts.jobs}`),
    );
  }
  for (let at = 0; at < OTHERS; at++) {
    const client = bench.client(programs + at);
    const asks = (): void => {
      if (world.now >= until) return;
      const job = jobs[Math.floor(random.float() * jobs.length)];
      client.lifetime.after(ASK_EVERY_MS, "step", asks);
      if (job === undefined || world.now < beginAt) return;
      counts.asked++;
      const control = { kind: "cancel", reason: "enough" } as const;
      const request = random.chance(0.5)
        ? ({ kind: "status", job } as const)
        : ({ kind: "control", job, by: client.name, control } as const);
      bench.ask(client, request, (answer) => {
        const isShed =
          answer === null ||
          (answer.kind === "refused" &&
            ["overloaded", "rateLimited", "retry"].includes(answer.reason));
        if (!isShed) counts.served++;
      });
    };
    asks();
  }
  bench.run(until - world.now + 10_000);
  const { asked, attempts, refused, served } = counts;
  return {
    perSecond: (1_000 * tookMs.length) / forMs,
    ...{ accepted: tookMs.length, p99Ms: quantile(tookMs, 0.99), refused, asked, served, attempts },
  };
}

export const submissions: Figure = (scale) => {
  const forMs = Math.max(20_000, 60_000 * scale);
  const alone = [8, 16].map((programs) => ({ programs, ...offer(programs, forMs) }));
  const best = alone.reduce((one, other) => (other.perSecond > one.perSecond ? other : one));
  const flood = offer(10 * best.programs, forMs);
  return [
    ...alone.map((one) => told(`  ${one.programs} programs`, JSON.stringify(one))),
    told("  flood", JSON.stringify(flood)),
    atLeast("accepted of what it can take", flood.perSecond / best.perSecond, 0.9),
    atMost("p99 of accepted, of that at capacity", flood.p99Ms / best.p99Ms, 2),
    atLeast("cancels and questions served", flood.served / flood.asked, 1, 4),
  ];
};
