/** What presses the nodes of a cluster without breaking them, while a job runs: the job has to complete. */

import { ClusterError } from "../../../src/client/client.ts";
import { castOf, type Fault, pause } from "./faults.ts";

/** That ask a gate at once, without ever waiting longer than they must. */
const CLIENTS = 500;
/** Between two questions of one of them. */
const ASK_EVERY_MS = 1_000;
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
    name: "flood gate leader",
    expected: ["COMPLETED"],
    strike: async (scene) => {
      const { awayMs, client, job, nodes } = scene;
      const { gate } = await castOf(scene);
      const until = Date.now() + awayMs;
      const tally = { answered: 0, refused: 0 };
      const clients = Array.from({ length: CLIENTS }, () => nodes.client());
      await Promise.all(
        clients.map(async (one, at) => {
          await pause((at * ASK_EVERY_MS) / CLIENTS);
          for (; Date.now() < until; await pause(ASK_EVERY_MS)) {
            try {
              await one.jobs();
              tally.answered++;
            } catch (error) {
              if (!(error instanceof ClusterError)) throw error;
              tally.refused++;
            }
          }
          await one.close();
        }),
      );
      // What shows how a job does is served all the while.
      await client.status(job);
      const { answered, refused } = tally;
      const asked = `${answered} answers, ${refused} refusals`;
      return `${gate}: ${CLIENTS} clients for ${awayMs / 1_000} s, ${asked}`;
    },
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
    // It has ended: its worker was given up, and has ended it.
  }
}
