/** What a worker hears and asks for; what its driver has to do is written beside each effect. */

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
  /** Number of this start, see `incarnation.ts`: never that of another start. */
  readonly incarnation: number;
  /** CPU cores that jobs may use. */
  readonly cores: number;
  readonly version: string;
  /** Load that nobody can stop is ended so long after the last word of any manager. (FAIL-F4) */
  readonly isolationMs: number;
  /** How many kinds of failures its cores tell apart in their frames. */
  readonly errorKinds: number;
  /** Of this process; never the same twice. */
  readonly boot?: string;
  /** The user that job code runs as; empty: job code has the rights of this process. */
  readonly executorUser?: string;
}

export const ISOLATION_MS = 60_000;

export type WorkerInput =
  /** `merges`: it takes the figures of cores merged. */
  | {
      readonly kind: "link";
      readonly manager: string;
      readonly up: true;
      readonly merges?: boolean;
    }
  /** A manager is not connected any more; `heardAt`: when any manager was heard last. */
  | {
      readonly kind: "link";
      readonly manager: string;
      readonly up: false;
      readonly heardAt: Millis;
    }
  /** To be answered once, by `answer` with the same number. */
  | {
      readonly kind: "request";
      readonly manager: string;
      readonly id: number;
      readonly request: Announce | Orders;
    }
  /** The answer to `events` of this view; null when none came. */
  | {
      readonly kind: "answered";
      readonly job: string;
      readonly view: number;
      readonly answer: Taken | Refusal | null;
    }
  | { readonly kind: "core"; readonly slot: number; readonly event: CoreEvent }
  /** The process is gone; `what`: how, when nobody asked for it. */
  | { readonly kind: "coreGone"; readonly slot: number; readonly what: string | null }
  /** The views of `keepViews` are on disk. */
  | { readonly kind: "viewsKept" }
  /** No further cores; `drained` follows when none is in use. */
  | { readonly kind: "drain" }
  /** It waits for its jobs no longer: their load is ended here, and told as lost. `drained` follows. */
  | { readonly kind: "leave" }
  | { readonly kind: "tick" };

/** A process for one core of a job. */
interface OpenedCore {
  readonly slot: number;
  readonly core: number;
}

export type WorkerEffect =
  | { readonly kind: "heartbeat"; readonly to: string; readonly heartbeat: WorkerHeartbeat }
  | { readonly kind: "answer"; readonly id: number; readonly answer: Announced | Taken | Refusal }
  /** To be answered with `answered`. */
  | { readonly kind: "events"; readonly to: string; readonly events: Events }
  /**
   * Gets the files, from this manager those that are not here, starts a process per core and has it load
   * them. What goes wrong is said as `coreGone`.
   */
  | {
      readonly kind: "open";
      readonly job: string;
      readonly from: string;
      readonly opened: readonly OpenedCore[];
      readonly order: Extract<Order, { kind: "open" }>;
    }
  | { readonly kind: "command"; readonly slot: number; readonly command: RelayedCommand }
  /** Ends the process: gently, or by SIGKILL. `coreGone` follows. */
  | { readonly kind: "endCore"; readonly slot: number; readonly kill: boolean }
  /** Nothing of this job runs here any more: its folder may go. */
  | { readonly kind: "closed"; readonly job: string }
  | { readonly kind: "keepViews"; readonly views: FencedViews }
  | {
      readonly kind: "log";
      readonly level: "info" | "warn";
      readonly event: string;
      readonly fields: Readonly<Record<string, string | number>>;
    }
  | { readonly kind: "drained" };
