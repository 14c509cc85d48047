/**
 * Stream of orders to one worker for one job, numbered from 0 in each view. Resends from the first unconfirmed order,
 * one message at a time.
 */

import type { Order } from "../messages.ts";
import { MANAGER_RULES, type ManagerRules } from "./rules.ts";

/** Maximum orders in one message. */
const ORDERS_PER_MESSAGE_MAX = 64;
/** Maximum unconfirmed orders of a worker; the leader declares it lost long before. */
const WAITING_MAX = 100_000;

export class OrderRow {
  readonly #rules: ManagerRules;
  readonly #waiting: Order[] = [];
  /** Number of the first unconfirmed order. */
  #first = 0;
  /** Orders sent and not answered. */
  #underWay = 0;

  constructor(rules: ManagerRules = MANAGER_RULES) {
    this.#rules = rules;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** False when the stream is full: the worker no longer accepts orders. */
  push(order: Order): boolean {
    if (this.#replaces(order)) return true;
    if (this.#waiting.length >= WAITING_MAX) return false;
    this.#waiting.push(order);
    return true;
  }

  /** Drops an unsent acknowledgement that this one supersedes: only the last acknowledgement of frames counts. */
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

  /** Next message; null when none waits or one is in flight. */
  next(): { readonly first: number; readonly orders: readonly Order[] } | null {
    if (this.#underWay > 0 || this.#waiting.length === 0) return null;
    const orders = this.#waiting.slice(0, ORDERS_PER_MESSAGE_MAX);
    this.#underWay = orders.length;
    return { first: this.#first, orders };
  }

  /** Confirms all orders before this number. False when none is new. */
  taken(next: number): boolean {
    const count = Math.min(Math.max(0, next - this.#first), this.#waiting.length);
    this.#waiting.splice(0, count);
    this.#first += count;
    this.#underWay = 0;
    return count > 0;
  }

  /** Schedules the message in flight for resending; no answer came. */
  lost(): void {
    if (this.#rules.ordersRepeated) this.#underWay = 0;
  }
}
