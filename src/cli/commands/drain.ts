/** `hyperscale drain NAME`: stops assigning work to a node and shows its progress. */

import { type Command, Option } from "commander";
import type { ClusterClient } from "../../client/client.ts";
import type { NodeView } from "../../core/cluster/messages.ts";
import { formatCounted } from "../../core/load/results/format.ts";
import { EXIT_FAILURE } from "../../host/exit-codes.ts";
import { someTime } from "../option-values.ts";
import { complain } from "../print.ts";
import { type PlaceFlags, withCluster, withPlace } from "./cluster-place.ts";

const LOOK_MS = 500;
const DEADLINE_MS = 600_000;

interface DrainFlags extends PlaceFlags {
  /** Milliseconds. */
  readonly deadline: number;
}

const HELP = `
A worker finishes the jobs that it runs, a gate or manager lets others lead. The node stays as it is until it is
started again: end it with SIGTERM when this command has ended.`;

export function registerDrain(program: Command): void {
  withPlace(program.command("drain <node>"))
    .description("stop a node taking work and wait until it is idle")
    .addOption(
      new Option("--deadline <time>", "how long to wait for it")
        .argParser(someTime)
        .default(DEADLINE_MS, "10m"),
    )
    .addHelpText("after", HELP)
    .action((node: string, flags: DrainFlags) =>
      withCluster("drain", flags, (client) => drain(client, node, flags.deadline)),
    );
}

async function drain(client: ClusterClient, node: string, deadlineMs: number): Promise<void> {
  await client.drain(node);
  const until = performance.now() + deadlineMs;
  for (let said = ""; ; ) {
    const view = (await client.nodes()).find(({ name }) => name === node);
    const left =
      view === undefined || view.status === "lost" ? "nothing: it is gone" : leftAt(view);
    if (left === null) break;
    if (left !== said) process.stdout.write(`${node} has ${left}\n`);
    said = left;
    if (view === undefined || view.status === "lost") return;
    if (performance.now() > until) {
      complain(`hyperscale drain: ${node} still has ${left}; it takes no new work`);
      process.exitCode = EXIT_FAILURE;
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  process.stdout.write(`${node} is drained\n`);
}

/** Null: no work is left. */
function leftAt({ coresUsed, leads, role, status }: NodeView): string | null {
  if (role !== "worker") return leads === 0 ? null : `${formatCounted(leads, "job")} to hand over`;
  // The next heartbeat confirms the request.
  if (status !== "draining") return "not confirmed yet";
  return coresUsed === 0 ? null : `${formatCounted(coresUsed, "core")} in use`;
}
