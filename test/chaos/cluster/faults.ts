/** Faults injected into a cluster while a job runs, and how the job must end in spite of them. */

import { join } from "node:path";
import type { ClusterClient } from "../../../src/client/client.ts";
import type { Random } from "../../../src/core/base/random.ts";
import type { JobStatus, JobView } from "../../../src/core/cluster/messages.ts";
import type { Nodes } from "./nodes.ts";
import type { Sites } from "./sites.ts";
import { SmallDisks } from "./small-disks.ts";

export interface Scene {
  readonly nodes: Nodes;
  readonly sites: Sites;
  readonly disks: SmallDisks;
  readonly random: Random;
  readonly client: ClusterClient;
  readonly job: string;
  /** How long something is unavailable. */
  readonly awayMs: number;
  /** Something that must not be was seen while it struck. */
  complain(problem: string): void;
}

/** Nodes currently in charge of the job. */
interface Cast {
  readonly gate: string;
  readonly datacenter: string;
  readonly manager: string;
  readonly worker: string;
}

export interface Fault {
  readonly name: string;
  readonly expected: readonly JobStatus[];
  /** Null: it can be done here; else why not. */
  readonly hindrance?: (sites: Sites) => string | null;
  /** Before any load: the job is not waited for. */
  readonly atOnce?: true;
  /** Strikes, and heals all but what has died. What was done, to whom. */
  readonly strike: (scene: Scene) => Promise<string>;
}

const COMPLETED: readonly JobStatus[] = ["COMPLETED"];

function kill(name: string, who: (cast: Cast) => readonly string[]): Fault {
  return {
    name,
    expected: COMPLETED,
    strike: async (scene) => {
      const victims = who(await castOf(scene));
      await scene.nodes.kill(victims);
      return victims.join(" and ");
    },
  };
}

function stop(
  name: string,
  who: (cast: Cast, nodes: Nodes) => readonly string[],
  times = 1,
): Fault {
  return {
    name,
    expected: COMPLETED,
    strike: async (scene) => {
      const { nodes } = scene;
      const awayMs = times * scene.awayMs;
      const victims = who(await castOf(scene), nodes);
      for (const victim of victims) nodes.signal(victim, "SIGSTOP");
      await pause(awayMs);
      for (const victim of victims) nodes.signal(victim, "SIGCONT");
      return `${victims.join(" and ")} for ${awayMs / 1_000} s`;
    },
  };
}

/** Without these the datacenter commits nothing. */
function quorumOf({ datacenter, manager }: Cast, nodes: Nodes): readonly string[] {
  const others = nodes.names("manager", datacenter).filter((name) => name !== manager);
  return [manager, ...others].slice(0, Math.floor(others.length / 2) + 1);
}

export const FAULTS: readonly Fault[] = [
  kill("kill worker", ({ worker }) => [worker]),
  kill("kill manager leader", ({ manager }) => [manager]),
  kill("kill gate leader", ({ gate }) => [gate]),
  kill("kill worker and manager leader", ({ manager, worker }) => [worker, manager]),
  kill("kill manager and gate leader", ({ gate, manager }) => [manager, gate]),
  kill("kill worker and gate leader", ({ gate, worker }) => [worker, gate]),
  stop("stop worker", ({ worker }) => [worker]),
  stop("stop manager leader", ({ manager }) => [manager]),
  stop("stop gate leader", ({ gate }) => [gate]),
  stop("quorum of managers away", quorumOf, 2),
  {
    name: "cut one datacenter off from the gates",
    expected: COMPLETED,
    hindrance: ({ canCut }) => (canCut ? null : "no network namespaces on this machine"),
    strike: async (scene) => {
      const { awayMs, sites } = scene;
      const { datacenter } = await castOf(scene);
      sites.cut(datacenter);
      await pause(awayMs);
      sites.mend(datacenter);
      return `${datacenter} for ${awayMs / 1_000} s`;
    },
  },
  {
    name: "cancel before the dispatch",
    expected: ["CANCELLED"],
    atOnce: true,
    strike: async ({ client, job }) => {
      await client.control(job, { kind: "cancel", reason: "a round of chaos" }, "chaos");
      return "the job";
    },
  },
  {
    name: "full disk on a manager",
    expected: COMPLETED,
    hindrance: () => (SmallDisks.isPossible ? null : "nothing may be mounted on this machine"),
    strike: async (scene) => {
      const { awayMs, disks, nodes } = scene;
      const isSmall = (name: string): boolean => disks.has(join(nodes.dir, name));
      const { manager } = await castOf(scene);
      const victim = isSmall(manager) ? manager : (nodes.names("manager").find(isSmall) ?? "");
      const dataDir = join(nodes.dir, victim);
      disks.fill(dataDir);
      await pause(awayMs);
      disks.free(dataDir);
      return `${victim}${victim === manager ? ", the leader" : ""} for ${awayMs / 1_000} s`;
    },
  },
];

/** Finds the job's leader, its leader in one of its datacenters, and a worker that runs it there. */
export async function castOf({ client, job, nodes, random }: Scene): Promise<Cast> {
  for (;;) {
    const { datacenters, leader } = await client.status(job);
    const part = datacenters[random.below(Math.max(1, datacenters.length))];
    if (leader !== null && part !== undefined) {
      const view = await viewOf(nodes, part.name, part.job);
      const workers = (view?.workflows ?? []).flatMap(({ attempts }) =>
        attempts.filter(({ status }) => status === "running").map(({ worker }) => worker),
      );
      const worker = workers[random.below(Math.max(1, workers.length))];
      const manager = view?.leader ?? null;
      if (manager !== null && worker !== undefined)
        return { gate: leader, datacenter: part.name, manager, worker };
    }
    await pause(200);
  }
}

async function viewOf(nodes: Nodes, datacenter: string, job: string): Promise<JobView | null> {
  const client = nodes.client(datacenter);
  try {
    return await client.status(job);
  } catch {
    // The job has no leader right now.
    return null;
  } finally {
    await client.close();
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
