/** Inputs and effects of a worker. Each effect documents what the driver has to do. */

import type { Millis } from "../../base/brand.ts";
import type { CoreEvent } from "../../load/job/core-messages.ts";
import type {
  Announce,
  Announced,
  Events,
  Order,
  Orders,
  Refusal,
  RelayedCommand,
  Taken,
  WorkerHeartbeat,
} from "../messages.ts";
import type { FencedViews } from "./view-fence.ts";

export interface WorkerConfig {
  readonly name: string;
  /** Unique number of this start, see `incarnation.ts`. */
  readonly incarnation: number;
  /** CPU cores that jobs may use. */
  readonly cores: number;
  readonly version: string;
  /** Time without contact to any manager after which load is stopped. (FAIL-F4) */
  readonly isolationMs: number;
  /** Number of error kinds that cores distinguish in their frames. */
  readonly errorKinds: number;
  /** Unique id of this process. */
  readonly boot?: string;
  /** User that job code runs as; empty for the user of this process. */
  readonly executorUser?: string;
}

export const ISOLATION_MS = 60_000;

export type WorkerInput =
  /** A manager connected. `merges`: it accepts merged metrics of cores. */
  | {
      readonly kind: "link";
      readonly manager: string;
      readonly up: true;
      readonly merges?: boolean;
    }
  /** A manager disconnected. `heardAt`: last contact with any manager. */
  | {
      readonly kind: "link";
      readonly manager: string;
      readonly up: false;
      readonly heardAt: Millis;
    }
  /** Answer once, by `answer` with the same id. */
  | {
      readonly kind: "request";
      readonly manager: string;
      readonly id: number;
      readonly request: Announce | Orders;
    }
  /** Answer to `events` of this view; null if none came. */
  | {
      readonly kind: "answered";
      readonly job: string;
      readonly view: number;
      readonly answer: Taken | Refusal | null;
    }
  | { readonly kind: "core"; readonly slot: number; readonly event: CoreEvent }
  /** The process of a core is gone. `what`: how, if it was not asked to exit. */
  | { readonly kind: "coreGone"; readonly slot: number; readonly what: string | null }
  /** The views of `keepViews` are on disk. */
  | { readonly kind: "viewsKept" }
  /** Accept no further cores; `drained` follows when none is in use. */
  | { readonly kind: "drain" }
  /** Stop waiting for jobs: their load is stopped and reported as lost. `drained` follows. */
  | { readonly kind: "leave" }
  | { readonly kind: "tick" };

/** Process of one core of a job. */
interface OpenedCore {
  readonly slot: number;
  readonly core: number;
}

export type WorkerEffect =
  | { readonly kind: "heartbeat"; readonly to: string; readonly heartbeat: WorkerHeartbeat }
  | { readonly kind: "answer"; readonly id: number; readonly answer: Announced | Taken | Refusal }
  /** Answered by `answered`. */
  | { readonly kind: "events"; readonly to: string; readonly events: Events }
  /**
   * Fetches missing files from this manager, starts a process per core and loads the job in it. Failures are reported
   * as `coreGone`.
   */
  | {
      readonly kind: "open";
      readonly job: string;
      readonly from: string;
      readonly opened: readonly OpenedCore[];
      readonly order: Extract<Order, { kind: "open" }>;
    }
  | { readonly kind: "command"; readonly slot: number; readonly command: RelayedCommand }
  /** Terminates the process gracefully or by SIGKILL. `coreGone` follows. */
  | { readonly kind: "endCore"; readonly slot: number; readonly kill: boolean }
  /** Nothing of this job runs here any more; its folder may be deleted. */
  | { readonly kind: "closed"; readonly job: string }
  | { readonly kind: "keepViews"; readonly views: FencedViews }
  | {
      readonly kind: "log";
      readonly level: "info" | "warn";
      readonly event: string;
      readonly fields: Readonly<Record<string, string | number>>;
    }
  | { readonly kind: "drained" };
