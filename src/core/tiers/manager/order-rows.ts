/**
 * The rows of orders of one job, one per worker: first the leader's view is announced, then orders follow.
 * Whatever is not answered is said again, until the worker is given up.
 */

import type { Announced, Order, Refusal, RunningCore, Taken } from "../messages.ts";
import type { ManagerContext } from "./context.ts";
import { OrderRow } from "./order-row.ts";
import type { ManagerEffect } from "./types.ts";

interface Row {
  readonly incarnation: number;
  readonly orders: OrderRow;
  announced: boolean;
  /** The request under way. */
  request: number | null;
  /** When the next may be sent. */
  notBefore: number;
}

interface RowsListener {
  onAnnounced(worker: string, cores: readonly RunningCore[]): void;
  onRefused(worker: string, refusal: Refusal): void;
}

export class OrderRows {
  readonly #job: string;
  readonly #view: number;
  readonly #context: ManagerContext;
  readonly #listener: RowsListener;
  readonly #rows = new Map<string, Row>();

  constructor(job: string, view: number, context: ManagerContext, listener: RowsListener) {
    this.#job = job;
    this.#view = view;
    this.#context = context;
    this.#listener = listener;
  }

  get workers(): readonly string[] {
    return [...this.#rows.keys()];
  }

  /** Nobody has an order that was not confirmed. */
  get isIdle(): boolean {
    return [...this.#rows.values()].every(({ orders }) => orders.isEmpty);
  }

  open(worker: string, incarnation: number): void {
    if (this.#rows.has(worker)) return;
    const orders = new OrderRow();
    this.#rows.set(worker, { incarnation, orders, announced: false, request: null, notBefore: 0 });
  }

  isAnnounced(worker: string): boolean {
    return this.#rows.get(worker)?.announced === true;
  }

  /** The worker is given up. */
  close(worker: string): void {
    this.#rows.delete(worker);
  }

  push(worker: string, order: Order): boolean {
    return this.#rows.get(worker)?.orders.push(order) ?? true;
  }

  /** Sends what may be sent now. */
  send(): void {
    for (const [worker, row] of this.#rows) {
      if (row.request !== null || row.notBefore > this.#context.now) continue;
      const [job, view] = [this.#job, this.#view];
      const { incarnation } = row;
      if (!row.announced) this.#ask(worker, row, { kind: "announce", job, view });
      else {
        const next = row.orders.next();
        if (next !== null)
          this.#ask(worker, row, { kind: "orders", job, view, incarnation, ...next });
      }
    }
  }

  #ask(
    worker: string,
    row: Row,
    message: Extract<ManagerEffect, { kind: "worker" }>["message"],
  ): void {
    row.request = this.#context.newRequest();
    this.#context.emit({ kind: "worker", id: row.request, worker, message });
  }

  /** True when the request was one of these. */
  onAnswer(request: number, answer: Announced | Taken | Refusal | null): boolean {
    const found = [...this.#rows].find(([, row]) => row.request === request);
    if (found === undefined) return false;
    const [worker, row] = found;
    row.request = null;
    if (answer === null) {
      row.orders.lost();
      row.notBefore = this.#retryAt();
    } else if (answer.kind === "announced") {
      row.announced = true;
      this.#listener.onAnnounced(worker, answer.cores);
    } else if (answer.kind === "taken") row.orders.taken(answer.next);
    else {
      row.orders.lost();
      row.notBefore = this.#retryAt();
      this.#listener.onRefused(worker, answer);
    }
    return true;
  }

  #retryAt(): number {
    return this.#context.now + this.#context.options.config.orderRetryMs;
  }

  nextDeadline(): number | null {
    let at = Number.POSITIVE_INFINITY;
    for (const { announced, notBefore, orders, request } of this.#rows.values())
      if (request === null && (!announced || !orders.isEmpty)) at = Math.min(at, notBefore);
    return at === Number.POSITIVE_INFINITY ? null : at;
  }
}
