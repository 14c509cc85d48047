/**
 * The leader's writer of logs and progress: stores the last lines and the latest progress with the attempt, then sends
 * them to the followers of the task. Only accepted under a valid lease.
 */

import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { QueueError } from "../../core/queue/errors.ts";
import { encodePayload } from "../../core/queue/payload.ts";
import { storable } from "../../core/queue/storable.ts";
import type { ExecutionHistory, LeaseRef, Progress } from "../api/types.ts";
import { sqlArray, sqlColumn } from "../store/database.ts";
import type { FencedWriter } from "../store/fenced-writer.ts";
import type { Feed } from "./feed.ts";
import type { LeaderMemory } from "./memory.ts";

interface WordWriterOptions {
  readonly writer: FencedWriter;
  readonly memory: LeaderMemory;
  readonly feed: Feed;
}

interface Line extends Progress {
  readonly text: string;
}

export class WordWriter {
  readonly #options: WordWriterOptions;

  constructor(options: WordWriterOptions) {
    this.#options = options;
  }

  async put(messages: readonly Progress[]): Promise<void> {
    const { writer, memory, feed } = this.#options;
    const words = messages.filter(({ lease_token: token }) => memory.leases.has(token));
    if (words.length === 0) return;
    const lines = words.filter(({ kind }) => kind === "log").map(asLine);
    const progress = words.filter(({ kind }) => kind === "progress");
    const { row } = await writer.write("words", "words-put", [
      ...[sqlColumn(lines, (one) => one.task_id), sqlColumn(lines, (one) => one.lease_token)],
      ...[sqlColumn(lines, (one) => one.line), sqlColumn(lines, (one) => one.text)],
      ...[QUEUE_LIMITS.attemptLogLinesMax, QUEUE_LIMITS.attemptLogBytesMax],
      ...progressColumns(progress),
    ]);
    for (const { place, line } of row["taken"] as readonly { place: number; line: number }[]) {
      const said = lines[place - 1];
      const lease = said === undefined ? undefined : memory.leases.get(said.lease_token);
      if (said === undefined || lease === undefined) continue;
      const { task_id, text: message } = said;
      feed.publish({ kind: "log", task_id, attempt_id: lease.attempt, line, message });
    }
    for (const { task_id, message } of progress)
      feed.publish({ kind: "progress", task_id, message });
  }

  async history({ task_id, lease_token }: LeaseRef): Promise<ExecutionHistory> {
    const [row] = await this.#options.writer.read("execution-history", [task_id, lease_token]);
    if (row === undefined)
      throw new QueueError("LEASE_REFUSED", `the lease of task ${task_id} is not current`);
    return { submitted_at: String(row["submitted_at"]), progress: row["progress"] ?? null };
  }
}

function asLine(said: Progress): Line {
  const { message } = said;
  const text = typeof message === "string" ? message : (JSON.stringify(message) ?? "");
  return { ...said, text: storable(text, QUEUE_LIMITS.logLineCharactersMax) };
}

/** The last value of every execution: only that is stored. */
function progressColumns(progress: readonly Progress[]): readonly string[] {
  const last = [...new Map(progress.map((one) => [one.lease_token, one])).values()].map((one) => ({
    ...one,
    value: encodePayload(one.message, "progress"),
  }));
  return [
    sqlArray(last.map((one) => one.task_id)),
    sqlArray(last.map((one) => one.lease_token)),
    sqlArray(last.map(({ value }) => (value.ok ? value.text : JSON.stringify(value.problem)))),
  ];
}
