/**
 * A watch that survives node failures: when a node is lost, or does not have the job, the next one continues at the
 * last seen indexes. Every event arrives once and in order, from whichever node.
 */

import { setTimeout as pause } from "node:timers/promises";
import { errorText } from "../core/base/error-text.ts";
import type { JobId } from "../core/ledger/job/job-id.ts";
import {
  WATCH_PLACES_MAX,
  type WatchItem,
  type WatchPlace,
  type WatchRequest,
  type WatchScope,
} from "../core/ledger/node/watch.ts";
import { tokenFor } from "../host/control/token.ts";
import type { LedgerTarget } from "./client.ts";
import { LedgerStream } from "./stream-client.ts";

/** Items that a follower passes on. */
export type FollowedItem = Extract<WatchItem, { kind: "event" | "behind" | "archived" | "stop" }>;

/** Jobs to follow, and where to start. */
export interface Followed {
  /** One job; null: all jobs of a node whose ids start with `prefix`. */
  readonly job: string | null;
  readonly prefix: string;
  /** Places that were seen already. */
  readonly after: readonly { readonly job: string; readonly seq: number }[];
  /** For jobs without an index: all events, or only new ones. */
  readonly since: WatchRequest["since"];
}

interface FollowerOptions extends Followed {
  readonly onItem: (item: FollowedItem) => void;
  /** A node was lost or has nothing to send; the next is tried. */
  readonly onMoved: (why: string) => void;
}

const CONNECT_MS_MAX = 5_000;
/** Pause after every node was tried once. */
const ROUND_PAUSE_MS = 500;

export class LedgerFollower {
  readonly #target: LedgerTarget;
  readonly #options: FollowerOptions;
  /** Last index seen per job; of as many jobs as a node accepts, the most recently changed. */
  readonly #places: Map<JobId, number>;
  #stream: LedgerStream | null = null;
  #stopped = false;

  constructor(target: LedgerTarget, options: FollowerOptions) {
    this.#target = target;
    this.#options = options;
    this.#places = new Map(options.after.map(({ job, seq }) => [job as JobId, seq]));
  }

  get #seen(): readonly WatchPlace[] {
    return [...this.#places].map(([jobId, seq]) => ({ jobId, seq }));
  }

  /** Until it is stopped, or its one job is in the archive. */
  async run(): Promise<void> {
    const apis = this.#target.api.split(",").filter((api) => api !== "");
    for (let attempt = 0; !this.#stopped; attempt++) {
      if (attempt > 0 && attempt % Math.max(1, apis.length) === 0) await pause(ROUND_PAUSE_MS);
      const api = apis[attempt % Math.max(1, apis.length)] ?? "";
      const why = await this.#follow(api).catch(errorText);
      if (!this.#stopped) this.#options.onMoved(`${api}: ${why}`);
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#stream?.close();
  }

  /** Stops reading while the consumer is not ready. */
  pause(): void {
    this.#stream?.pause();
  }

  resume(): void {
    this.#stream?.resume();
  }

  get #scope(): WatchScope {
    const { job, prefix } = this.#options;
    return job === null ? { kind: "jobs", prefix } : { kind: "job", jobId: job as JobId };
  }

  /** Resolves with the reason why this node's watch stopped. */
  async #follow(api: string): Promise<string> {
    const found = tokenFor({ ...this.#target, api });
    const token = found === undefined ? {} : { token: found };
    let why = "the connection was lost";
    let onClose = (): void => undefined;
    const closed = new Promise<void>((resolve) => {
      onClose = resolve;
    });
    const options = { ...token, timeoutMs: CONNECT_MS_MAX, onClose };
    const stream = await LedgerStream.connect(api, options);
    this.#stream = stream;
    if (this.#stopped) stream.close();
    const { since } = this.#options;
    const scope = this.#scope;
    // Having begun now, the next node must not begin now again: what came between would be missed.
    const first = this.#places.size === 0 ? since : "start";
    stream.watch({ scope, after: this.#seen, since: first }, (item) => {
      const left = this.#take(item);
      if (left === null) return;
      why = left;
      stream.close();
    });
    await closed;
    return why;
  }

  /** Returns null, or why another node must be tried. */
  #take(item: WatchItem): string | null {
    const { job, onItem } = this.#options;
    switch (item.kind) {
      case "refused":
        return item.why;
      case "elsewhere":
        if (job === null) return null;
        return `job ${item.jobId} may be at ${item.nodes.join(", ")}`;
      case "stop":
        onItem(item);
        return null;
      case "archived":
        onItem(item);
        if (job !== null) this.stop();
        return null;
      default:
        this.#see(item);
        return null;
    }
  }

  #see(item: Extract<WatchItem, { kind: "event" | "behind" | "from" }>): void {
    const { jobId, seq } = item;
    if (seq <= (this.#places.get(jobId) ?? -1)) return;
    this.#places.delete(jobId);
    this.#places.set(jobId, seq);
    if (this.#places.size > WATCH_PLACES_MAX) {
      const [oldest] = this.#places.keys();
      if (oldest !== undefined) this.#places.delete(oldest);
    }
    if (item.kind !== "from") this.#options.onItem(item);
  }
}
