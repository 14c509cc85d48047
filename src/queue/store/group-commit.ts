/**
 * Collects operations while a write is under way and writes them together. The first one after a quiet time leaves at
 * the end of its loop turn, so an idle queue answers at once and a busy one writes large batches without any timer.
 * (TQ-38)
 */

import { QueueError } from "../../core/queue/errors.ts";
import type { Background } from "../../host/background.ts";

interface GroupCommitOptions<Operation> {
  /** Writes a batch. It settles every operation itself and does not throw. */
  readonly write: (batch: readonly Operation[], writer: number) => Promise<void>;
  /** Weight of an operation, in tasks. */
  readonly weigh: (operation: Operation) => number;
  readonly batchMax: number;
  readonly pendingMax: number;
  readonly background: Background;
  /** A second batch may be written beside the first when this much waits; never when undefined. */
  readonly secondWriterAbove?: number;
}

export class GroupCommit<Operation> {
  readonly #options: GroupCommitOptions<Operation>;
  #pending: Operation[] = [];
  #pendingWeight = 0;
  readonly #running = [false, false];

  constructor(options: GroupCommitOptions<Operation>) {
    this.#options = options;
  }

  add(operation: Operation): void {
    if (this.#pendingWeight >= this.#options.pendingMax) {
      throw new QueueError(
        "OVERLOADED",
        "the leader has too many writes waiting; try again in a moment",
      );
    }
    this.#pending.push(operation);
    this.#pendingWeight += this.#options.weigh(operation);
    const { secondWriterAbove } = this.#options;
    if (!this.#running[0]) this.#start(0);
    else if (
      secondWriterAbove !== undefined &&
      this.#pendingWeight >= secondWriterAbove &&
      !this.#running[1]
    ) {
      this.#start(1);
    }
  }

  #start(writer: number): void {
    this.#running[writer] = true;
    setImmediate(() => this.#options.background.run("commit a batch", () => this.#run(writer)));
  }

  async #run(writer: number): Promise<void> {
    while (this.#pending.length > 0) await this.#options.write(this.#takeBatch(), writer);
    this.#running[writer] = false;
  }

  #takeBatch(): readonly Operation[] {
    let weight = 0;
    let count = 0;
    for (const operation of this.#pending) {
      const next = weight + this.#options.weigh(operation);
      if (count > 0 && next > this.#options.batchMax) break;
      weight = next;
      count++;
    }
    const batch = this.#pending.slice(0, count);
    this.#pending = this.#pending.slice(count);
    this.#pendingWeight -= weight;
    return batch;
  }
}
