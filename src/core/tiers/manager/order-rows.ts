/**
 * The rows of orders of one job, one per life of a worker: first the leader's view is announced, then orders
 * follow. Whatever is not answered is said again. A row stays as long as its leader has the job: a worker that
 * was taken for lost and comes back hears what it missed, above all that its cores are given back. (T4)
 */

import type { Announced, Order, Refusal, Taken } from "../messages.ts";
import type { ManagerContext } from "./context.ts";
import { OrderRow } from "./order-row.ts";
import type { ManagerEffect } from "./types.ts";

/** A worker from one start to the next. */
export interface Life {
  readonly worker: string;
  readonly incarnation: number;
}

interface Row {
  readonly life: Life;
  readonly orders: OrderRow;
  announced: boolean;
  /** The request under way. */
  request: number | null;
  /** When the next may be sent. */
  notBefore: number;
}

interface RowsListener {
  onAnnounced(life: Life, announced: Announced): void;
  onRefused(life: Life, refusal: Refusal): void;
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

  /** Those who can be reached have heard who leads. */
  get allAnnounced(): boolean {
    return this.#reachable().every(({ announced }) => announced);
  }

  /** Nobody who can be reached has an order that was not confirmed. */
  get isIdle(): boolean {
    return this.#reachable().every(({ orders }) => orders.isEmpty);
  }

  #reachable(): Row[] {
    return [...this.#rows.values()].filter(({ life }) => this.#isAlive(life));
  }

  #isAlive({ incarnation, worker }: Life): boolean {
    return this.#context.workers.isAlive(worker, incarnation);
  }

  open({ incarnation, worker }: Life): void {
    const life = { worker, incarnation };
    if (this.#rows.has(keyOf(life))) return;
    const { rules } = this.#context;
    const orders = new OrderRow(rules);
    const announced = !rules.announcedFirst;
    this.#rows.set(keyOf(life), { life, orders, announced, request: null, notBefore: 0 });
  }

  /** False when that life has no row, or does not take orders any more. */
  push(life: Life, order: Order): boolean {
    return this.#rows.get(keyOf(life))?.orders.push(order) ?? false;
  }

  /** A life that is heard has confirmed every order. */
  hasTakenAll(life: Life): boolean {
    const row = this.#rows.get(keyOf(life));
    return row?.announced === true && row.orders.isEmpty && this.#isAlive(life);
  }

  /** Sends what may be sent now. */
  send(): void {
    for (const row of this.#reachable()) {
      if (row.request !== null || row.notBefore > this.#context.now) continue;
      const [job, view] = [this.#job, this.#view];
      if (!row.announced) this.#ask(row, { kind: "announce", job, view });
      else {
        const { incarnation } = row.life;
        const next = row.orders.next();
        if (next !== null) this.#ask(row, { kind: "orders", job, view, incarnation, ...next });
      }
    }
  }

  #ask(row: Row, message: Extract<ManagerEffect, { kind: "worker" }>["message"]): void {
    const { worker } = row.life;
    row.request = this.#context.newRequest();
    this.#context.emit({ kind: "worker", id: row.request, worker, message });
  }

  /** True when the request was one of these. */
  onAnswer(request: number, answer: Announced | Taken | Refusal | null): boolean {
    const row = [...this.#rows.values()].find((one) => one.request === request);
    if (row === undefined) return false;
    row.request = null;
    if (answer === null) {
      row.orders.lost();
      row.notBefore = this.#retryAt();
    } else if (answer.kind === "announced") {
      row.announced = true;
      this.#listener.onAnnounced(row.life, answer);
    } else if (answer.kind === "taken") row.orders.taken(answer.next);
    else {
      row.orders.lost();
      row.notBefore = this.#retryAt();
      this.#listener.onRefused(row.life, answer);
    }
    return true;
  }

  #retryAt(): number {
    return this.#context.now + this.#context.options.config.orderRetryMs;
  }

  nextDeadline(): number | null {
    let at = Number.POSITIVE_INFINITY;
    for (const { announced, notBefore, orders, request } of this.#reachable())
      if (request === null && (!announced || !orders.isEmpty)) at = Math.min(at, notBefore);
    return at === Number.POSITIVE_INFINITY ? null : at;
  }
}

export function keyOf({ incarnation, worker }: Life): string {
  return `${worker} ${incarnation}`;
}
