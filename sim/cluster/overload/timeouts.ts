/** Jobs with every kind of end: none leaves a clock behind, on gates or managers. (AD-34) */

import type { LoadPlan } from "../../../src/core/load/plan/load.ts";
import { GateAbove } from "../gate.ts";
import { plainJob } from "../jobs.ts";
import { ManagerAbove } from "../manager.ts";
import { Bench } from "./bench.ts";
import { atLeast, atMost, type Figure, told } from "./figure.ts";

const CORES = 16;
/** Jobs that are open at once: some of them wait. */
const OPEN_MAX = 24;
const LOOK_MS = 100;
/** Delay until a job is cancelled or reaches its limit: by then it mostly runs. */
const ENDED_AFTER_MS = 800;
const CALM_MS = 60_000;
const MINUTE_MS = 60_000;

/** Ends of jobs, in turn. */
const ENDS = [
  "completes",
  "cancelled",
  "cancelledEarly",
  "limit",
  "coreLost",
  "workerLost",
] as const;

function loadOf(durationMs: number): LoadPlan {
  return { kind: "vus", stages: [{ durationMs, from: 1, to: 1 }] };
}

export const timeouts: Figure = (scale) => {
  const count = Math.max(36, Math.round(10_000 * scale));
  const bench = new Bench(4, {
    ...{ gates: 1, managers: 1, workers: 4, coresPerWorker: CORES / 4, clients: 40 },
    ...{ gateCostMs: 0.01, managerCostMs: 0.01 },
  });
  const { cluster, world } = bench;
  const [gate] = cluster.gates;
  const [manager] = cluster.managers;
  /** A rejected job is retried under another key: each accepted one is a job of its own. */
  let asked = 0;
  let submitted = 0;
  let accepted = 0;
  const begin = (): void => {
    const at = asked++;
    submitted++;
    const end = ENDS[at % ENDS.length] ?? "completes";
    const client = bench.client(at);
    const key = `job-${at}`;
    const isLong = end === "limit" || end === "cancelled";
    const made = plainJob(key, {
      ...{ load: loadOf(isLong ? MINUTE_MS : 500), cores: 1, tenant: null, bundle: key },
    });
    const timeoutMs = end === "limit" ? ENDED_AFTER_MS : null;
    const submission = { ...made.submission, timeoutMs };
    bench.submit(client, { ...made, submission }, (answer) => {
      if (answer?.kind !== "accepted") {
        submitted--;
        return;
      }
      accepted++;
      const { job } = answer;
      if (end === "cancelled" || end === "cancelledEarly") {
        const control = { kind: "cancel", reason: "enough" } as const;
        client.lifetime.after(end === "cancelled" ? ENDED_AFTER_MS : 0, "step", () =>
          bench.ask(client, { kind: "control", job, by: client.name, control }, () => undefined),
        );
      }
    });
    const worker = cluster.workers[at % cluster.workers.length];
    if (end === "coreLost") world.schedule(world.now + 700, "fault", 0, () => worker?.killCore(at));
    if (end === "workerLost" && at % 36 === 5)
      world.schedule(world.now + 700, "fault", 0, () => {
        worker?.crash(false);
        world.schedule(world.now + 200, "start", 0, () => worker?.start());
      });
  };
  const open = (): number => Math.max(gate?.open().length ?? 0, submitted - accepted);
  let most = 0;
  for (let turns = 0; submitted < count || open() > 0; turns++) {
    for (let room = OPEN_MAX - open(); room > 0 && submitted < count; room--) begin();
    bench.run(LOOK_MS);
    most = Math.max(most, active());
    if (turns > count * 20) break;
  }
  bench.run(CALM_MS);
  function active(): number {
    const above = [gate?.process.spec.above, manager?.process.spec.above];
    return above.reduce((sum, one) => {
      if (one instanceof GateAbove) return sum + (one.gate?.timeouts.active ?? 0);
      return one instanceof ManagerAbove ? sum + (one.manager?.timeouts.active ?? 0) : sum;
    }, 0);
  }
  const left = (gate?.open().length ?? 0) + (manager?.open().length ?? 0);
  return [
    told("jobs, most clocks at once", `${accepted}, ${most}`),
    atLeast("jobs that were accepted", accepted, count, 0),
    atMost("clocks that run when all is over", active(), 0, 0),
    atMost("jobs that are led when all is over", left, 0, 0),
  ];
};
