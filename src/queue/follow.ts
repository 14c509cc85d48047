/**
 * Following by server-sent events. Of one task: its history so far, every further transition, the
 * executor's words, and `end` once it is terminal. Of the whole queue: transitions as they happen.
 *
 * The feed of the leader is only a hint to look: what is sent comes from the committed history, so
 * nothing is sent twice, out of order, or before it is true.
 */

import { QUEUE_LIMITS } from "../core/queue/defaults.ts";
import { QueueError } from "../core/queue/errors.ts";
import { isTerminal } from "../core/queue/states.ts";
import { EventStream, type EventStreamOptions } from "../host/control/event-stream.ts";
import type { ControlRequest } from "../host/control/server.ts";
import type { FeedMessage } from "./api/types.ts";
import type { QueueNode } from "./node.ts";

const LOOK_MS = 1_000;
const STREAM: EventStreamOptions = {
  format: "server-sent",
  /** A follower that does not read is cut off. */
  backlogBytesMax: 4 * 1024 * 1024,
  beatMs: 15_000,
};

interface FollowOptions {
  readonly node: QueueNode;
  readonly request: ControlRequest;
  readonly taskId: string | undefined;
}

export async function followTask({ node, request, taskId }: FollowOptions): Promise<void> {
  if (taskId === undefined) return followAll(node, request);
  const [task] = await node.reader.tasks([Number(taskId)]);
  if (task === undefined) throw new QueueError("NOT_FOUND", `there is no task ${taskId}`);
  const stream = new EventStream(request.takeResponse(), STREAM);
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
          stream.send("transition", JSON.stringify(event));
          lastEvent = event.event_id;
        }
        const last = events.at(-1)?.new_state;
        if (last !== undefined && last !== null && isTerminal(last)) {
          const [ended] = await node.reader.tasks([Number(taskId)]);
          stream.send("end", JSON.stringify(ended ?? null));
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
    if (message.kind === "transition") node.background.run(`follow ${taskId}`, look);
    else stream.send(message.kind, JSON.stringify(message));
  });
  const looks = node.background.every(`follow ${taskId}`, LOOK_MS, look);
  stream.onClose(() => {
    leave();
    looks.cancel();
  });
  await look();
}

function followAll(node: QueueNode, request: ControlRequest): void {
  const stream = new EventStream(request.takeResponse(), STREAM);
  stream.onClose(
    node.feed.follow(undefined, (message) => stream.send(message.kind, JSON.stringify(message))),
  );
}
