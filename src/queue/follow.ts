/**
 * Following by server-sent events. For one task: its history and log so far, every further event, its progress, and
 * `end` once it is final. For the whole queue: transitions as they happen.
 *
 * The feed of the leader only triggers a read: events come from the committed history, so nothing is sent twice, out of
 * order, or before it is true. Log lines come from the feed as well, because not all lines of a burst are kept; their
 * numbers tell which were sent. A node that does not lead listens to the leader, and continues with the next one: no
 * follower depends on a particular leader.
 */

import { QUEUE_LIMITS } from "../core/queue/defaults.ts";
import { QueueError } from "../core/queue/errors.ts";
import { isTerminal } from "../core/queue/states.ts";
import { readLines } from "../host/control/client.ts";
import { EventStream, type EventStreamOptions } from "../host/control/event-stream.ts";
import type { ControlRequest } from "../host/control/server.ts";
import { RpcClient } from "./api/rpc-client.ts";
import type { FeedMessage, LogLine, TaskEvent } from "./api/types.ts";
import type { ServedNode } from "./served-node.ts";

const POLL_MS = 1_000;
const STREAM: EventStreamOptions = {
  format: "server-sent",
  /** A follower that does not read is disconnected. */
  backlogBytesMax: 4 * 1024 * 1024,
  beatMs: 15_000,
};

interface FollowOptions {
  readonly node: ServedNode;
  readonly request: ControlRequest;
  readonly taskId: string | undefined;
  /** The follower is a node: it receives only what this node knows itself. */
  readonly forwarded: boolean;
  readonly token: string | undefined;
  readonly ca: string | undefined;
}

export async function followTask(options: FollowOptions): Promise<void> {
  const { node, request, taskId } = options;
  if (taskId === undefined) return followAll(options);
  const [task] = await node.reader.tasks([Number(taskId)]);
  if (task === undefined) throw new QueueError("NOT_FOUND", `there is no task ${taskId}`);
  const stream = new EventStream(request.takeResponse(), STREAM);
  const follower = new TaskFollower(node, taskId, stream);
  const leave = node.feed.follow(taskId, (message) => follower.hear(message));
  const stopListening = listenToLeader(options, (message) => follower.hear(message));
  const polls = node.background.every(`follow ${taskId}`, POLL_MS, () => follower.poll());
  stream.onClose(() => {
    leave();
    stopListening();
    polls.cancel();
  });
  await follower.begin();
}

/** Progress of one follower of a task: what was sent, and what comes next. */
class TaskFollower {
  readonly #node: ServedNode;
  readonly #taskId: string;
  readonly #stream: EventStream;
  #lastEvent = 0;
  #lastLine = { attempt_id: 0, line: 0 };
  #polling = false;
  #again = false;
  #over = false;
  /** Lines received while the earlier ones are still being read. */
  #early: FeedMessage[] | undefined = [];

  constructor(node: ServedNode, taskId: string, stream: EventStream) {
    this.#node = node;
    this.#taskId = taskId;
    this.#stream = stream;
  }

  async begin(): Promise<void> {
    await this.poll();
    // After a failed read the next poll retries; only the progress is skipped.
    const attempts = await this.#node.reader.attempts(Number(this.#taskId)).catch(() => []);
    const { progress: message, outcome } = attempts.at(-1) ?? {};
    if (outcome === "running" && message !== undefined && message !== null)
      this.#send({ kind: "progress", task_id: this.#taskId, message });
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const line of early) this.hear(line);
  }

  hear(message: FeedMessage): void {
    if (message.kind === "transition")
      this.#node.background.run(`follow ${this.#taskId}`, () => this.poll());
    else if (this.#early !== undefined) {
      if (this.#early.length < QUEUE_LIMITS.notesMax) this.#early.push(message);
    } else this.#send(message);
  }

  /** Sends what was committed since the last poll. */
  async poll(): Promise<void> {
    this.#again = true;
    if (this.#polling) return;
    this.#polling = true;
    try {
      while (this.#again && this.#stream.open) {
        this.#again = false;
        await this.#sendNews();
      }
    } catch {
      // The database is unavailable: the next poll finds what was missed.
    } finally {
      this.#polling = false;
    }
  }

  async #sendNews(): Promise<void> {
    const { reader } = this.#node;
    const id = Number(this.#taskId);
    const events = await reader.events(id, this.#lastEvent, QUEUE_LIMITS.eventsListedMax);
    // Read after the events: everything logged before an end is there.
    const lines = await reader.logLines(id, this.#lastLine, QUEUE_LIMITS.logLinesListedMax);
    let next = 0;
    for (const event of events) {
      for (; next < lines.length && isBefore(lines[next], event); next++)
        this.#sendLine(lines[next]);
      this.#stream.send("transition", JSON.stringify(event));
      this.#lastEvent = event.event_id;
    }
    for (const line of lines.slice(next)) this.#sendLine(line);
    const more = lines.length === QUEUE_LIMITS.logLinesListedMax;
    this.#again ||= more;
    const last = events.at(-1)?.new_state ?? null;
    this.#over ||= last !== null && isTerminal(last);
    if (!this.#over || more) return;
    const [ended] = await reader.tasks([id]);
    this.#stream.send("end", JSON.stringify(ended ?? null));
    this.#stream.end();
  }

  #sendLine(line: LogLine | undefined): void {
    if (line === undefined) return;
    const { attempt_id, line: number, text: message } = line;
    this.#send({ kind: "log", task_id: this.#taskId, attempt_id, line: number, message });
  }

  #send(message: FeedMessage): void {
    if (message.kind === "log") {
      const { attempt_id, line } = message;
      const last = this.#lastLine;
      const known = attempt_id - last.attempt_id || line - last.line;
      if (known <= 0) return;
      this.#lastLine = { attempt_id, line };
    }
    this.#stream.send(message.kind, JSON.stringify(message));
  }
}

function isBefore(line: LogLine | undefined, event: TaskEvent): boolean {
  return line !== undefined && line.timestamp < event.timestamp;
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

/** Logs and progress are known to the leader only: subscribes to one leader after the other. */
function listenToLeader(
  { node, request, forwarded, token, ca }: FollowOptions,
  hear: (message: FeedMessage) => void,
): () => void {
  if (forwarded) return () => undefined;
  const work = node.background.run("listen to the leader", async ({ signal }) => {
    while (!signal.aborted) {
      const url = await node.leaderUrl().catch(() => undefined);
      if (url !== undefined && !signal.aborted) {
        // A hung leader does not close its streams: checks whether it still leads.
        const former = new AbortController();
        const polls = node.background.every("notice the leader", POLL_MS, async () => {
          if ((await node.leaderUrl()) !== url) former.abort();
        });
        const rpc = new RpcClient({ url, token, ca, forwardedBy: node.nodeId });
        try {
          await hearAll(rpc, request.target, AbortSignal.any([signal, former.signal]), hear);
        } catch {
          // The leader disconnected; the next poll finds its successor.
        } finally {
          polls.cancel();
          rpc.close();
        }
      }
      await node.background.pause(POLL_MS, signal);
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
