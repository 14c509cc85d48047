/**
 * Calls of one JSON-RPC batch, within a budget of bytes for their answers: a request of 370 KB can ask for gigabytes.
 *
 *     expected answers beyond the budget ──► the whole batch is rejected, nothing was run
 *     calls that read ──► a few at a time; once the answers so far fill the budget, the rest is rejected
 *     other calls ──► all at once, to be written together
 */

import { expectedAnswerBytes } from "../../core/queue/answer-size.ts";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { QueueError } from "../../core/queue/errors.ts";

/** Reading calls of one batch that run at once, and batches with such calls that run at once on a node. */
const READS_AT_ONCE = 4;
const BATCHES_AT_ONCE = 2;

const { batchAnswerBytesMax } = QUEUE_LIMITS;
const CURE = "send fewer calls in one batch, or smaller limits";

/** Throws when a batch asks for more than its budget. */
export function checkBatch(calls: readonly unknown[]): void {
  const expected = calls.reduce<number>((sum, call) => sum + bytesOf(call), 0);
  if (expected <= batchAnswerBytesMax) return;
  const problem = `the answers to this batch may take ${expected} bytes; the limit is ${batchAnswerBytesMax}`;
  throw new QueueError("TOO_LARGE", `${problem}: ${CURE}`);
}

/** Runs every call of a batch; answers are in the order of the calls. `refuse` answers one that is not run. */
export async function runBatch<Answer>(
  calls: readonly unknown[],
  run: (call: unknown) => Promise<Answer>,
  refuse: (call: unknown, error: QueueError) => Answer,
): Promise<readonly Answer[]> {
  const answers: Answer[] = new Array(calls.length);
  const reads: number[] = [];
  const others: Promise<void>[] = [];
  const answer = async (index: number): Promise<Answer> => {
    const value = await run(calls[index]);
    answers[index] = value;
    return value;
  };
  calls.forEach((call, index) => {
    if (bytesOf(call) > 0) reads.push(index);
    else others.push(answer(index).then(() => undefined));
  });
  const release = reads.length === 0 ? undefined : await turns.take();
  let spent = 0;
  const lane = async (): Promise<void> => {
    for (let index = reads.shift(); index !== undefined; index = reads.shift()) {
      if (spent > batchAnswerBytesMax) {
        answers[index] = refuse(calls[index], spentError());
        continue;
      }
      const size = sizeOf(await answer(index));
      spent += size;
    }
  };
  try {
    await Promise.all([...others, ...Array.from({ length: READS_AT_ONCE }, lane)]);
  } finally {
    release?.();
  }
  return answers;
}

function spentError(): QueueError {
  const problem = `the answers of this batch filled its limit of ${batchAnswerBytesMax} bytes before this call`;
  return new QueueError("TOO_LARGE", `${problem}, which was not run: ${CURE}`);
}

function bytesOf(call: unknown): number {
  const { method, params } = Object(call) as { method?: unknown; params?: unknown };
  return expectedAnswerBytes(method, params);
}

function sizeOf(answer: unknown): number {
  return JSON.stringify(answer)?.length ?? 0;
}

/** First come, first served. */
class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async take(): Promise<() => void> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return () => {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    };
  }
}

const turns = new Turns(BATCHES_AT_ONCE);
