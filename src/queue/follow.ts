/**
 * Following by server-sent events. Of one task: its history so far, every further transition, the
 * executor's words, and `end` once it is terminal. Of the whole queue: transitions as they happen.
 *
 * The feed of the leader is only a hint to look: what is sent comes from the committed history, so
 * nothing is sent twice, out of order, or before it is true.
 */

import type { ServerResponse } from "node:http";
import { QUEUE_LIMITS } from "../core/queue/defaults.ts";
import { QueueError } from "../core/queue/errors.ts";
import { isTerminal } from "../core/queue/states.ts";
import type { FeedMessage } from "./api/types.ts";
import type { QueueNode } from "./node.ts";

const LOOK_MS = 1_000;
const BEAT_MS = 15_000;
/** A follower that does not read is cut off at this many buffered bytes. */
const BUFFERED_BYTES_MAX = 4 * 1024 * 1024;

interface FollowOptions {
  readonly node: QueueNode;
  readonly response: ServerResponse;
  readonly taskId: string | undefined;
}

export async function followTask({ node, response, taskId }: FollowOptions): Promise<void> {
  if (taskId === undefined) return followAll(node, response);
  const [task] = await node.reader.tasks([Number(taskId)]);
  if (task === undefined) throw new QueueError("NOT_FOUND", `there is no task ${taskId}`);
  const stream = new EventStream(response);
  let lastEvent = 0;
  let looking = false;
  let again = false;
  const look = async (): Promise<void> => {
    again = true;
    if (looking) return;
    looking = true;
    try {
      while (again && stream.open) {
        again = false;
        const events = await node.reader.events(
          Number(taskId),
          lastEvent,
          QUEUE_LIMITS.eventsListedMax,
        );
        for (const event of events) {
          stream.send("transition", event);
          lastEvent = event.event_id;
        }
        const last = events.at(-1)?.new_state;
        if (last !== undefined && last !== null && isTerminal(last)) {
          const [ended] = await node.reader.tasks([Number(taskId)]);
          stream.send("end", ended ?? null);
          stream.end();
        }
      }
    } catch {
      // The database is away: the next look finds what was missed.
    } finally {
      looking = false;
    }
  };
  const leave = node.feed.follow(taskId, (message: FeedMessage) => {
    if (message.kind === "transition") void look();
    else stream.send(message.kind, message);
  });
  const timer = setInterval(() => void look(), LOOK_MS);
  stream.onClose(() => {
    leave();
    clearInterval(timer);
  });
  await look();
}

function followAll(node: QueueNode, response: ServerResponse): void {
  const stream = new EventStream(response);
  stream.onClose(node.feed.follow(undefined, (message) => stream.send(message.kind, message)));
}

class EventStream {
  readonly #response: ServerResponse;
  readonly #beat: NodeJS.Timeout;
  #open = true;

  constructor(response: ServerResponse) {
    this.#response = response;
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write(": following\n\n");
    this.#beat = setInterval(() => this.#write(": beat\n\n"), BEAT_MS);
    this.onClose(() => {
      this.#open = false;
      clearInterval(this.#beat);
    });
  }

  get open(): boolean {
    return this.#open;
  }

  onClose(listener: () => void): void {
    this.#response.once("close", listener);
  }

  send(event: string, data: unknown): void {
    this.#write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  end(): void {
    this.#open = false;
    this.#response.end();
  }

  #write(text: string): void {
    if (!this.#open) return;
    this.#response.write(text);
    if (this.#response.writableLength > BUFFERED_BYTES_MAX) this.#response.destroy();
  }
}
