/**
 * What is said between a watcher and the node it watches: from which places on, and what has been
 * committed since. A watcher that comes back, here or at another node, names
 * the last place it has seen of each job and goes on right after it.
 */

import type { NodeId } from "../../base/ids.ts";
import type { JobEvent } from "../job/events.ts";
import type { JobId } from "../job/job-id.ts";

/** One job, or every job of this node whose id begins so; all of them with an empty prefix. */
export type WatchScope =
  | { readonly kind: "job"; readonly jobId: JobId }
  | { readonly kind: "jobs"; readonly prefix: string };

/** All events of the job up to here were seen; -1: none. */
export interface WatchPlace {
  readonly jobId: JobId;
  readonly seq: number;
}

export interface WatchRequest {
  readonly scope: WatchScope;
  /** Where to go on; jobs that are not named begin as `since` says. */
  readonly after: readonly WatchPlace[];
  /** Of jobs that are not named in `after`: all that the log still has, or only what comes from now on. */
  readonly since: "start" | "now";
}

export type WatchItem =
  | {
      readonly kind: "event";
      readonly jobId: JobId;
      readonly seq: number;
      /** Of the primary that took it: the fence of what follows from it. (VSR-32) */
      readonly view: number;
      readonly event: JobEvent;
      readonly outcome: string;
      readonly reason: string | null;
    }
  /**
   * Events up to `seq` are not in the log here any more: the watcher was away or slow for too long. A read
   * of the job with `minSeq` tells what they made of it; the watch goes on right after them.
   */
  | { readonly kind: "behind"; readonly jobId: JobId; readonly seq: number }
  /** The job is told of from here on, as was asked; it counts as seen up to `seq`. */
  | { readonly kind: "from"; readonly jobId: JobId; readonly seq: number }
  /**
   * Somebody wants the job to stop, and no quorum has confirmed it yet: whoever makes load for it stops now.
   * The event follows when it is committed. Told at most once by each node, and not to who has no room.
   */
  | { readonly kind: "stop"; readonly jobId: JobId; readonly event: JobEvent }
  /** The job has left memory for the archive: nothing follows. */
  | { readonly kind: "archived"; readonly jobId: JobId }
  /** This node does not replicate the job, or does not any more; these may. */
  | { readonly kind: "elsewhere"; readonly jobId: JobId; readonly nodes: readonly NodeId[] }
  /** The watch was not begun. */
  | { readonly kind: "refused"; readonly why: string };

/** Watchers of one node at a time. */
export const WATCHERS_MAX = 1_024;
/** Places that a watcher may come back with. */
export const WATCH_PLACES_MAX = 16_384;
/** Items that a watcher may have room for: about the most that one turn brings it. */
export const WATCH_ROOM_MAX = 4_096;
