/** Overload of a cluster's nodes while a job runs, without breaking them: the job must complete. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ClusterError } from "../../../src/client/client.ts";
import { castOf, type Fault, pause, type Scene } from "./faults.ts";
import type { FloodOrder, FloodTally } from "./flood-clients.ts";

const floodClients = fileURLToPath(new URL("./flood-clients.ts", import.meta.url));
/** That submit to a gate at once, without ever waiting longer than they must. */
const CLIENTS = 500;
/** Between two questions of the one who watches the job of the round. */
const LOOK_EVERY_MS = 1_000;
/** The kernel's CPU control groups, where available. */
const CPU_GROUPS = "/sys/fs/cgroup/cpu";
const PERIOD_US = 100_000;
const THROTTLED_SHARE = 0.05;
const NARROW_BYTES_PER_SECOND = 1_000_000;

export const PRESSURE_FAULTS: readonly Fault[] = [
  {
    name: "starve worker",
    expected: ["COMPLETED"],
    strike: async (scene) => {
      const { awayMs, nodes } = scene;
      const { worker } = await castOf(scene);
      const cores = nodes.below(worker);
      const say = (signal: NodeJS.Signals): void => {
        for (const pid of cores) signalled(pid, signal);
      };
      say("SIGSTOP");
      await pause(awayMs);
      say("SIGCONT");
      return `${cores.length} executor processes of ${worker} for ${awayMs / 1_000} s`;
    },
  },
  {
    name: "throttle worker",
    expected: ["COMPLETED"],
    hindrance: () => (existsSync(CPU_GROUPS) ? null : "no cgroups for CPU on this machine"),
    strike: async (scene) => {
      const { awayMs, nodes } = scene;
      const { worker } = await castOf(scene);
      const group = join(CPU_GROUPS, `hyperscale-chaos-${process.pid}-${worker}`);
      mkdirSync(group);
      const move = (to: string, pids: readonly number[]): void => {
        for (const pid of pids) moved(join(to, "cgroup.procs"), pid);
      };
      try {
        const quotaUs = String(THROTTLED_SHARE * PERIOD_US);
        writeFileSync(join(group, "cpu.cfs_period_us"), String(PERIOD_US));
        writeFileSync(join(group, "cpu.cfs_quota_us"), quotaUs);
        move(group, [nodes.pidOf(worker), ...nodes.below(worker)]);
        await pause(awayMs);
      } finally {
        move(CPU_GROUPS, membersOf(group));
        rmdirSync(group);
      }
      return `${worker} with ${THROTTLED_SHARE * 100} % of a core for ${awayMs / 1_000} s`;
    },
  },
  {
    name: "flood gate leader",
    expected: ["COMPLETED"],
    strike: flood,
  },
  {
    name: "narrow way to a manager",
    expected: ["COMPLETED"],
    hindrance: ({ canCut }) => (canCut ? null : "no network namespaces on this machine"),
    strike: async (scene) => {
      const { awayMs, sites } = scene;
      const { datacenter, manager } = await castOf(scene);
      sites.narrow(datacenter, NARROW_BYTES_PER_SECOND);
      await pause(awayMs);
      sites.widen(datacenter);
      return `${manager} for ${awayMs / 1_000} s`;
    },
  },
];

function signalled(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has exited: its worker was declared lost and terminated it.
  }
}

/** A member that has ended meanwhile needs no move. */
function moved(to: string, pid: number): void {
  try {
    writeFileSync(to, String(pid));
  } catch {
    // The process has exited.
  }
}

function membersOf(group: string): readonly number[] {
  return readFileSync(join(group, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
}

/** Submissions of many clients; the job of the round is asked after all the while. */
async function flood(scene: Scene): Promise<string> {
  const { awayMs, complain, nodes } = scene;
  const { gate } = await castOf(scene);
  const losses = nodes.losses;
  const order: FloodOrder = {
    ...{ clients: CLIENTS, gate: nodes.addressOf(gate), addresses: nodes.addresses() },
    ...{ secret: readFileSync(nodes.credentials, "utf8").trim(), ms: awayMs },
  };
  const child = spawn(
    process.execPath,
    [...process.execArgv, floodClients, JSON.stringify(order)],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  let output = "";
  child.stdout.on("data", (text) => {
    output += String(text);
  });
  const over = once(child, "close");
  const looks = await watched(scene, () => child.exitCode === null && child.signalCode === null);
  await over;
  const line = output.trim().split("\n").at(-1) ?? "";
  if (!line.startsWith("{")) {
    complain("the clients of the flood have ended early");
    return gate;
  }
  const tally = JSON.parse(line) as FloodTally;
  if (looks.unserved > 0) complain(`${looks.unserved} questions for the job were not served`);
  if (nodes.losses > losses) complain(`${nodes.losses - losses} nodes were given up`);
  for (const problem of problemsOf(tally)) complain(problem);
  const { accepted, critical, late, submitted } = tally;
  const refused = Object.values(tally.refused).reduce((sum, one) => sum + one, 0);
  return (
    `${gate}: ${CLIENTS} clients for ${awayMs / 1_000} s, ${submitted} jobs: ${accepted} accepted after ` +
    `${refused} refusals with a time (${JSON.stringify(tally.refused)}) and ${late} without an answer; ` +
    `${critical.asked} cancels and questions served, ${looks.served} questions for the job`
  );
}

function problemsOf(tally: FloodTally): string[] {
  const { accepted, critical, unanswered, unended, withoutRetryAfter } = tally;
  return [
    unanswered > 0 ? `${unanswered} submissions were never accepted` : "",
    accepted === 0 ? "nothing was accepted" : "",
    critical.shed > 0 ? `${critical.shed} cancels or questions for a state were shed` : "",
    critical.unserved > 0 ? `${critical.unserved} cancels or questions were not served` : "",
    withoutRetryAfter > 0 ? `${withoutRetryAfter} refusals without a time to come back` : "",
    unended > 0 ? `${unended} accepted jobs have not ended` : "",
  ].filter(Boolean);
}

async function watched(
  { client, job }: Scene,
  isOn: () => boolean,
): Promise<{ readonly served: number; readonly unserved: number }> {
  let [served, unserved] = [0, 0];
  for (; isOn(); await pause(LOOK_EVERY_MS)) {
    try {
      await client.status(job);
      served++;
    } catch (error) {
      if (!(error instanceof ClusterError)) throw error;
      unserved++;
    }
  }
  return { served, unserved };
}
