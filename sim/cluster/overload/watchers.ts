/** A thousand clients watch a job every two seconds; one in a hundred reads nothing that it is sent. */

import { ENDED_STATUSES } from "../../../src/core/cluster/messages.ts";
import type { LoadPlan } from "../../../src/core/load/plan/load.ts";
import { CALM_STREAMS } from "../../kernel/streams.ts";
import type { SimClient } from "../client.ts";
import { plainJob } from "../jobs.ts";
import { Bench } from "./bench.ts";
import { atLeast, atMost, type Figure, quantile, told } from "./figure.ts";

const CADENCE_MS = 2_000;
const SLACK_MS = 300;
const STALLED_SHARE = 0.01;
/** Together they keep the gate busy for half of its time. */
const GATE_COST_MS = 1;
const NEVER_GIVEN_UP_MS = 3_600_000;

export const watchers: Figure = (scale) => {
  const clients = Math.max(100, Math.round(1_000 * scale));
  const stalled = Math.ceil(clients * STALLED_SHARE);
  const forMs = 30_000;
  const bench = new Bench(3, {
    ...{ gates: 1, managers: 1, workers: 1, coresPerWorker: 2, clients },
    ...{ gateCostMs: GATE_COST_MS * (1_000 / clients), managerCostMs: 0.02 },
  });
  const { cluster, world } = bench;
  const load: LoadPlan = {
    ...{ kind: "vus", stages: [{ durationMs: 4 * forMs, from: 1, to: 1 }] },
  };
  let job: string | null = null;
  const plan = plainJob("watched", { load, cores: 1, tenant: null, bundle: "watched" });
  bench.submit(bench.client(0), plan, (answer) => {
    job = answer?.kind === "accepted" ? answer.job : null;
  });
  bench.run(5_000);
  if (job === null) throw new Error("the job was not accepted");
  const request = { kind: "watch", job, line: 0, live: true, latencies: false } as const;
  // Connections of clients that read nothing stay open: the gate must bound what waits there.
  cluster.streams.faults = { ...CALM_STREAMS, patienceMs: NEVER_GIVEN_UP_MS };
  const [gate] = cluster.gates;
  for (let at = 0; at < stalled; at++)
    cluster.network.cut(gate?.process.index ?? 0, bench.client(clients - 1 - at).index);
  const gaps: number[] = [];
  let unanswered = 0;
  const until = world.now + forMs;
  const watch = (client: SimClient, last: number | null): void => {
    const askedAt = world.now;
    bench.ask(client, request, (answer) => {
      if (world.now >= until) return;
      const isTold = answer?.kind === "progress" && !ENDED_STATUSES.includes(answer.status);
      if (!isTold) unanswered++;
      else if (last !== null) gaps.push(world.now - last);
      const toldAt = isTold ? world.now : null;
      const nextMs = Math.max(0, askedAt + CADENCE_MS - world.now);
      client.lifetime.after(nextMs, "step", () => watch(client, toldAt));
    });
  };
  for (let at = 0; at < clients - stalled; at++) {
    const client = bench.client(at);
    client.lifetime.after((at * CADENCE_MS) / clients, "step", () => watch(client, null));
  }
  // Stalled clients keep asking, sixteen times as often, since nothing limits them.
  for (let at = 0; at < stalled; at++) {
    const client = bench.client(clients - 1 - at);
    const asks = (): void => {
      if (world.now >= until) return;
      bench.ask(client, request, () => undefined);
      client.lifetime.after(CADENCE_MS / 16, "step", asks);
    };
    asks();
  }
  bench.run(forMs);
  const within = gaps.filter((ms) => Math.abs(ms - CADENCE_MS) <= SLACK_MS).length;
  const [p1, p99] = [quantile(gaps, 0.01), quantile(gaps, 0.99)];
  return [
    told("clients, stalled, looks", `${clients}, ${stalled}, ${gaps.length}`),
    told("p1 and p99 of the gaps", `${p1.toFixed(0)} and ${p99.toFixed(0)} ms`),
    atLeast("gaps of 2 s +- 0.3 s", within / gaps.length, 1, 4),
    atMost("looks of the others without figures", unanswered, 0, 0),
  ];
};
