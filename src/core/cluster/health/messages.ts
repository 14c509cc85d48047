/**
 * What gates and datacenter leaders say to each other over slow links: one probe, one ack with the
 * datacenter's aggregate. No gossip, no membership. (AD-33a)
 */

import type { Address, Incarnation, NodeId, Term } from "../../base/ids.ts";
import type { Coordinate } from "../vivaldi/coordinate.ts";

export type DatacenterHealth = "HEALTHY" | "DEGRADED" | "BUSY" | "UNHEALTHY";

export const DATACENTER_HEALTHS: readonly DatacenterHealth[] = [
  "HEALTHY",
  "DEGRADED",
  "BUSY",
  "UNHEALTHY",
];

export interface CrossClusterProbe {
  readonly kind: "xprobe";
  readonly sequence: number;
  readonly sourceCluster: string;
  readonly sourceNode: NodeId;
  readonly sourceAddress: Address;
  readonly coordinate: Coordinate | null;
  /** The prober's last measured round trip to this datacenter; 0 when unknown. */
  readonly lastRttMs: number;
}

export interface CrossClusterAck {
  readonly kind: "xack";
  readonly sequence: number;
  readonly datacenter: string;
  readonly node: NodeId;
  /** The datacenter's external incarnation, unrelated to SWIM's inside it. */
  readonly incarnation: Incarnation;
  readonly isLeader: boolean;
  readonly leaderTerm: Term;
  /** Where the leader is, as far as the answering manager knows. */
  readonly leaderAddress: Address | null;
  readonly aggregate: DatacenterAggregate;
  readonly coordinate: Coordinate | null;
  readonly lastRttMs: number;
}

export interface DatacenterAggregate {
  readonly clusterSize: number;
  readonly healthyManagers: number;
  readonly workerCount: number;
  readonly healthyWorkers: number;
  readonly totalCores: number;
  readonly availableCores: number;
  readonly activeJobs: number;
  readonly activeWorkflows: number;
  readonly queueDepth: number;
  readonly health: DatacenterHealth;
  readonly healthReason: string;
}

export type FederationMessage = CrossClusterProbe | CrossClusterAck;

export const HEALTH_REASON_BYTES_MAX = 200;
