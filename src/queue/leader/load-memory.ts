/** State that a new leader loads from the database: nodes, running tasks with their leases, lanes, limits of queues. */

import { performance } from "node:perf_hooks";
import type { Placement } from "../../core/queue/placement.ts";
import type { NodeRegistration } from "../api/types.ts";
import type { FencedWriter } from "../store/fenced-writer.ts";
import { limitsOf } from "../store/reader.ts";
import type { LeaderMemory } from "./memory.ts";

/** Minimum duration of an adopted lease. */
const ADOPTED_MS_MIN = 3_000;

export async function loadMemory(
  memory: LeaderMemory,
  writer: FencedWriter,
  options: {
    readonly taskLeaseMs: number;
    /** The holders of leases are known to be dead. */
    readonly abandoned: boolean;
  },
): Promise<void> {
  const [running, nodes, lanes, dependencies, queues] = await Promise.all([
    writer.read("running", []),
    writer.read("node-list", []),
    writer.read("lanes", []),
    writer.read("dependencies-open", []),
    writer.read("queue-list", []),
  ]);
  const now = performance.now();
  for (const row of nodes) {
    const ageMs = options.abandoned ? Number.POSITIVE_INFINITY : Number(row["heartbeat_age_ms"]);
    memory.addNode(row as unknown as NodeRegistration, now - ageMs);
  }
  // Renewals were impossible without a leader: holders get time to find this one. (TQ-34)
  const adoptedMs = Math.max(ADOPTED_MS_MIN, options.taskLeaseMs / 2);
  for (const row of running) {
    memory.gates.adopted(String(row["queue"]));
    memory.addLease({
      taskId: Number(row["id"]),
      token: String(row["lease_id"]),
      nodeId: String(row["node_id"]),
      lane: String(row["lane"]),
      queue: String(row["queue"]),
      priority: Number(row["priority"]),
      attempt: Number(row["attempt_id"]),
      placement: row["placement_constraints"] as Placement | null,
      task: undefined,
      renewing: 0,
      expiresAt: now + Math.max(adoptedMs, Number(row["expires_in_ms"])),
    });
  }
  for (const row of queues) memory.gates.set(String(row["queue"]), limitsOf(row), now);
  for (const row of lanes) memory.lanes.reopen(String(row["lane"]), Number(row["priority"]));
  memory.dependenciesOpen = Number(dependencies[0]?.["count"] ?? 0) > 0;
}
