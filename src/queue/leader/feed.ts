/** Live messages for followers: of one task, or of all. Bounded; a slow follower is disconnected, not waited for. */

import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { QueueError } from "../../core/queue/errors.ts";
import type { FeedMessage } from "../api/types.ts";

type Listener = (message: FeedMessage) => void;

export class Feed {
  readonly #byTask = new Map<string, Set<Listener>>();
  readonly #all = new Set<Listener>();
  #followers = 0;

  /** Whether there are any followers: publishers on the hot path check first. */
  get watched(): boolean {
    return this.#followers > 0;
  }

  /** Follows one task, or all when `taskId` is undefined. Returns a function that unsubscribes. */
  follow(taskId: string | undefined, listener: Listener): () => void {
    if (this.#followers >= QUEUE_LIMITS.followersMax) {
      throw new QueueError(
        "OVERLOADED",
        `this node serves ${QUEUE_LIMITS.followersMax} followers already`,
      );
    }
    this.#followers++;
    const set = taskId === undefined ? this.#all : (this.#byTask.get(taskId) ?? new Set());
    if (taskId !== undefined) this.#byTask.set(taskId, set);
    set.add(listener);
    return () => {
      if (!set.delete(listener)) return;
      this.#followers--;
      if (taskId !== undefined && set.size === 0) this.#byTask.delete(taskId);
    };
  }

  publish(message: FeedMessage): void {
    for (const listener of this.#byTask.get(message.task_id) ?? []) listener(message);
    for (const listener of this.#all) listener(message);
  }
}
