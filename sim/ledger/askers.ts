/** Callers waiting for a simulated process: for an answer, or for the next items of a watch. */

import type { LedgerAnswer } from "../../src/core/ledger/node/messages.ts";
import type { WatchItem } from "../../src/core/ledger/node/watch.ts";

/** Null when the process ends before it has answered. */
export type OnAnswer = (answer: LedgerAnswer | null) => void;
/** Null when the process ends. */
export type OnItems = (items: readonly WatchItem[] | null) => void;

export class Askers {
  #tokens = 0;
  #answers = new Map<number, OnAnswer>();
  #watches = new Map<number, OnItems>();

  ask(onAnswer: OnAnswer): number {
    this.#answers.set(++this.#tokens, onAnswer);
    return this.#tokens;
  }

  answer(token: number, answer: LedgerAnswer): void {
    const onAnswer = this.#answers.get(token);
    this.#answers.delete(token);
    onAnswer?.(answer);
  }

  watch(onItems: OnItems): number {
    this.#watches.set(++this.#tokens, onItems);
    return this.#tokens;
  }

  tell(token: number, items: readonly WatchItem[]): void {
    this.#watches.get(token)?.(items);
  }

  endWatch(token: number): void {
    this.#watches.delete(token);
  }

  /** The process is dead. */
  end(): void {
    const [answers, watches] = [this.#answers, this.#watches];
    this.#answers = new Map();
    this.#watches = new Map();
    for (const onAnswer of answers.values()) onAnswer(null);
    for (const onItems of watches.values()) onItems(null);
  }
}
