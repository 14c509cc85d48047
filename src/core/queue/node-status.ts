/** A node's health by the age of its heartbeat; the ages are the database's clock. (TQ-4) */

import { HEARTBEATS_TO_DEAD, HEARTBEATS_TO_FORGET, HEARTBEATS_TO_STALE } from "./defaults.ts";

type NodeStatus = "healthy" | "stale" | "dead";

interface HeartbeatAges {
  readonly staleMs: number;
  readonly deadMs: number;
  readonly forgetMs: number;
}

export function heartbeatAges(heartbeatMs: number): HeartbeatAges {
  return {
    staleMs: heartbeatMs * HEARTBEATS_TO_STALE,
    deadMs: heartbeatMs * HEARTBEATS_TO_DEAD,
    forgetMs: heartbeatMs * HEARTBEATS_TO_FORGET,
  };
}

export function nodeStatus(ageMs: number, ages: HeartbeatAges): NodeStatus {
  if (ageMs < ages.staleMs) return "healthy";
  return ageMs < ages.deadMs ? "stale" : "dead";
}
