/** Interface of the HTTP server to its node. */

import type { Background } from "../host/background.ts";
import type { AuditCounts } from "../host/ports/audit.ts";
import type { Feed } from "./leader/feed.ts";
import type { QueueMetrics } from "./leader/metrics.ts";
import type { Reader } from "./store/reader.ts";

export interface NodeReadiness {
  readonly ready: boolean;
  /** Why it is not ready, though the process is healthy. */
  readonly why?: string;
}

export interface ServedNode {
  readonly nodeId: string;
  readonly roleName: "leader" | "worker" | "observer";
  readonly feed: Feed;
  readonly metrics: QueueMetrics;
  readonly reader: Reader;
  readonly background: Background;
  readonly audited: AuditCounts;
  ready(): Promise<NodeReadiness>;
  /** Undefined where this node leads, or there is no leader. */
  leaderUrl(): Promise<string | undefined>;
}
