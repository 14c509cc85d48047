/**
 * Messages between a watcher and the node it watches: the indexes to start from, and the events committed since. A
 * watcher that reconnects, here or at another node, names the last index it has seen of each job and continues right
 * after it.
 */

import type { NodeId } from "../../base/ids.ts";
import type { JobEvent } from "../job/events.ts";
import type { JobId } from "../job/job-id.ts";

/** One job, or every job of this node whose id has this prefix; an empty prefix means all. */
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
  /** Indexes to continue after; jobs that are not listed start as `since` says. */
  readonly after: readonly WatchPlace[];
  /** For jobs not named in `after`: everything the log still has, or only new events. */
  readonly since: "start" | "now";
}

export type WatchItem =
  | {
      readonly kind: "event";
      readonly jobId: JobId;
      readonly seq: number;
      /** View of the primary that accepted it: the fence for everything that follows from it. (VSR-32) */
      readonly view: number;
      readonly event: JobEvent;
      readonly outcome: string;
      readonly reason: string | null;
    }
  /**
   * Events up to `seq` are no longer in the log here: the watcher was disconnected or slow for too long. A read of the
   * job with `minSeq` returns their result; the watch continues right after them.
   */
  | { readonly kind: "behind"; readonly jobId: JobId; readonly seq: number }
  /** Events of the job follow from here on, as requested; it counts as seen up to `seq`. */
  | { readonly kind: "from"; readonly jobId: JobId; readonly seq: number }
  /**
   * A stop of the job was requested, and no quorum has confirmed it yet: load generators for it stop now. The event
   * follows when it is committed. Sent at most once by each node, and only to watchers with credit.
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
/** Most items of credit a watcher may have: about as many as one turn brings. */
export const WATCH_ROOM_MAX = 4_096;
