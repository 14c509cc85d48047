/**
 * Gathers operations while a write is under way and hands them over together. The first of a quiet
 * moment leaves at the end of the loop turn it came in, so an idle queue answers at once and a busy
 * one writes large batches without any timer. (TQ-38)
 */

import { QueueError } from "./errors.ts";

export interface GroupCommitOptions<Operation> {
  /** Writes a batch. It settles every operation itself and does not throw. */
  readonly write: (batch: readonly Operation[]) => Promise<void>;
  /** How much an operation weighs, in tasks. */
  readonly weigh: (operation: Operation) => number;
  readonly batchMax: number;
  readonly pendingMax: number;
}

export class GroupCommit<Operation> {
  readonly #options: GroupCommitOptions<Operation>;
  #pending: Operation[] = [];
  #pendingWeight = 0;
  #running = false;

  constructor(options: GroupCommitOptions<Operation>) {
    this.#options = options;
  }

  get idle(): boolean {
    return !this.#running;
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
    if (this.#running) return;
    this.#running = true;
    setImmediate(() => void this.#run());
  }

  async #run(): Promise<void> {
    while (this.#pending.length > 0) await this.#options.write(this.#takeBatch());
    this.#running = false;
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
