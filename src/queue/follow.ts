/**
 * Following by server-sent events. Of one task: its history so far, every further transition, the
 * executor's words, and `end` once it is terminal. Of the whole queue: transitions as they happen.
 *
 * The feed of the leader is only a hint to look: what is sent comes from the committed history, so
 * nothing is sent twice, out of order, or before it is true. A node that does not lead listens to
 * whoever does, and goes on with the next leader: nobody who waits here depends on one of them.
 */

import { QUEUE_LIMITS } from "../core/queue/defaults.ts";
import { QueueError } from "../core/queue/errors.ts";
import { isTerminal } from "../core/queue/states.ts";
import { readLines } from "../host/control/client.ts";
import { EventStream, type EventStreamOptions } from "../host/control/event-stream.ts";
import type { ControlRequest } from "../host/control/server.ts";
import { RpcClient } from "./api/rpc-client.ts";
import type { FeedMessage } from "./api/types.ts";
import type { ServedNode } from "./served-node.ts";

const LOOK_MS = 1_000;
const STREAM: EventStreamOptions = {
  format: "server-sent",
  /** A follower that does not read is cut off. */
  backlogBytesMax: 4 * 1024 * 1024,
  beatMs: 15_000,
};

interface FollowOptions {
  readonly node: ServedNode;
  readonly request: ControlRequest;
  readonly taskId: string | undefined;
  /** The follower is a node: it hears what this one knows, and nothing from elsewhere. */
  readonly forwarded: boolean;
  readonly token: string | undefined;
}

export async function followTask(options: FollowOptions): Promise<void> {
  const { node, request, taskId } = options;
  if (taskId === undefined) return followAll(options);
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
  const hear = (message: FeedMessage): void => {
    if (message.kind === "transition") node.background.run(`follow ${taskId}`, look);
    else stream.send(message.kind, JSON.stringify(message));
  };
  const leave = node.feed.follow(taskId, hear);
  const stopListening = listenToLeader(options, hear);
  const looks = node.background.every(`follow ${taskId}`, LOOK_MS, look);
  stream.onClose(() => {
    leave();
    stopListening();
    looks.cancel();
  });
  await look();
}

function followAll(options: FollowOptions): void {
  const stream = new EventStream(options.request.takeResponse(), STREAM);
  const hear = (message: FeedMessage): void => stream.send(message.kind, JSON.stringify(message));
  const leave = options.node.feed.follow(undefined, hear);
  const stopListening = listenToLeader(options, hear);
  stream.onClose(() => {
    leave();
    stopListening();
  });
}

/** Words of executors are known to the leader only: hears them from whoever leads, one after the other. */
function listenToLeader(
  { node, request, forwarded, token }: FollowOptions,
  hear: (message: FeedMessage) => void,
): () => void {
  if (forwarded) return () => undefined;
  const work = node.background.run("listen to the leader", async ({ signal }) => {
    while (!signal.aborted) {
      const url = await node.leaderUrl().catch(() => undefined);
      if (url !== undefined && !signal.aborted) {
        // A leader that hangs does not close its streams: whether it still leads is looked at.
        const former = new AbortController();
        const looks = node.background.every("notice the leader", LOOK_MS, async () => {
          if ((await node.leaderUrl()) !== url) former.abort();
        });
        const rpc = new RpcClient({ url, token, forwardedBy: node.nodeId });
        try {
          await hearAll(rpc, request.target, AbortSignal.any([signal, former.signal]), hear);
        } catch {
          // It went away; the next look finds who leads now.
        } finally {
          looks.cancel();
          rpc.close();
        }
      }
      await node.background.pause(LOOK_MS, signal);
    }
  });
  return () => work.cancel();
}

async function hearAll(
  rpc: RpcClient,
  path: string,
  signal: AbortSignal,
  hear: (message: FeedMessage) => void,
): Promise<void> {
  const upstream = await rpc.open(path, signal);
  for await (const line of readLines(upstream)) {
    if (!line.startsWith("data: ")) continue;
    const message: unknown = JSON.parse(line.slice("data: ".length));
    if (message !== null && typeof message === "object" && "kind" in message)
      hear(message as FeedMessage);
  }
}
