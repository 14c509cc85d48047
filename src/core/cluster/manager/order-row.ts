/**
 * Orders to one worker for one job, numbered from 0 in each view: repeated from the first that was not
 * confirmed, one message at a time.
 */

import type { Order } from "../messages.ts";
import { MANAGER_RULES, type ManagerRules } from "./rules.ts";

/** Of one message. */
const ORDERS_PER_MESSAGE_MAX = 64;
/** Orders that a worker has not confirmed; the leader takes it for lost long before. */
const WAITING_MAX = 100_000;

export class OrderRow {
  readonly #rules: ManagerRules;
  readonly #waiting: Order[] = [];
  /** Number of the first that waits. */
  #first = 0;
  /** Sent and not answered. */
  #underWay = 0;

  constructor(rules: ManagerRules = MANAGER_RULES) {
    this.#rules = rules;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** False when there is no room: the worker does not take orders any more. */
  push(order: Order): boolean {
    if (this.#replaces(order)) return true;
    if (this.#waiting.length >= WAITING_MAX) return false;
    this.#waiting.push(order);
    return true;
  }

  /** What was not sent yet and says less: only the last acknowledgement of frames counts. */
  #replaces(order: Order): boolean {
    if (order.kind !== "command" || order.command.kind !== "acknowledge") return false;
    const { core, command } = order;
    const at = this.#waiting.findLastIndex(
      (one, index) =>
        index >= this.#underWay &&
        one.kind === "command" &&
        one.core === core &&
        one.command.kind === "acknowledge" &&
        one.command.execution === command.execution &&
        one.command.part === command.part,
    );
    if (at < 0) return false;
    this.#waiting[at] = order;
    return true;
  }

  /** The next message; null when none waits or one is under way. */
  next(): { readonly first: number; readonly orders: readonly Order[] } | null {
    if (this.#underWay > 0 || this.#waiting.length === 0) return null;
    const orders = this.#waiting.slice(0, ORDERS_PER_MESSAGE_MAX);
    this.#underWay = orders.length;
    return { first: this.#first, orders };
  }

  /** Everything before this number was taken. False when that is nothing new. */
  taken(next: number): boolean {
    const count = Math.min(Math.max(0, next - this.#first), this.#waiting.length);
    this.#waiting.splice(0, count);
    this.#first += count;
    this.#underWay = 0;
    return count > 0;
  }

  /** No answer came: what was under way is sent again. */
  lost(): void {
    if (this.#rules.ordersRepeated) this.#underWay = 0;
  }
}
