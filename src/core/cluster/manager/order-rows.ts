/**
 * Order streams of one job, one per worker incarnation. The leader's view is announced first, then orders follow.
 * Unanswered requests are retried. A stream exists while its leader has the job: a worker that was declared lost
 * and returns receives the orders it missed, above all the release of its cores. (T4)
 *
 * A live worker that is silent about this job for too long is lost to this job only. Any message about the job refutes
 * that, an answer as well as an event. An answer that accepts no order refutes nothing: a worker that only repeats such
 * answers is lost to the job, too. (AD-30, ACKW-1, ACKW-2, HFD-1, HFD-4, HFD-9, HFD-10)
 */

import type { Announced, Order, Refusal, Taken } from "../messages.ts";
import type { ManagerContext } from "./context.ts";
import { OrderRow } from "./order-row.ts";
import type { ManagerEffect } from "./types.ts";

/** One incarnation of a worker: from one start of its process to the next. */
export interface Life {
  readonly worker: string;
  readonly incarnation: number;
}

interface Row {
  readonly life: Life;
  readonly orders: OrderRow;
  announced: boolean;
  /** A second announcement: after the pending orders are accepted, or now; null: none. */
  again: "afterOrders" | "now" | null;
  /** The request in flight. */
  request: number | null;
  /** Earliest time of the next request. */
  notBefore: number;
  /** Start of the silence about the job while a request is pending; null: nothing is pending. */
  silentSince: number | null;
  /** Start of the answers that accept no order; null: the last one accepted some. Events do not change it. */
  stalledSince: number | null;
}

interface RowsListener {
  onAnnounced(life: Life, announced: Announced): void;
  /** Called when earlier orders are carried out, with the number of events reported or pending since. */
  onAnnouncedAgain(life: Life, announced: Announced): void;
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

  /** True when all reachable workers have acknowledged the leader, except those silent about the job. */
  get allAnnounced(): boolean {
    for (const row of this.#rows.values())
      if (!row.announced && this.#isAlive(row.life) && !this.#isSilent(row)) return false;
    return true;
  }

  /** True when no reachable worker has an unconfirmed order. */
  get isIdle(): boolean {
    for (const { life, orders } of this.#rows.values())
      if (!orders.isEmpty && this.#isAlive(life)) return false;
    return true;
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
    const fresh = {
      again: null,
      request: null,
      notBefore: 0,
      silentSince: null,
      stalledSince: null,
    };
    this.#rows.set(keyOf(life), { life, orders, announced, ...fresh });
  }

  /** False when that incarnation has no stream or no longer accepts orders. */
  push(life: Life, order: Order): boolean {
    return this.#rows.get(keyOf(life))?.orders.push(order) ?? false;
  }

  /** Announces the view again after all pending orders; the worker then reports its cores and number of events. */
  announceAgain(life: Life): void {
    const row = this.#rows.get(keyOf(life));
    if (row === undefined) return;
    row.again = "afterOrders";
    this.#passOrders(row);
  }

  #passOrders(row: Row): void {
    if (row.again !== "afterOrders" || !row.orders.isEmpty) return;
    row.again = "now";
    row.announced = false;
  }

  /** True when a live incarnation has confirmed every order. */
  hasTakenAll(life: Life): boolean {
    const row = this.#rows.get(keyOf(life));
    return row?.announced === true && row.orders.isEmpty && this.#isAlive(life);
  }

  /** Any message about the job shows that the worker is working on it. */
  onMessage(life: Life): void {
    const row = this.#rows.get(keyOf(life));
    if (row !== undefined) row.silentSince = row.request === null ? null : this.#context.now;
  }

  /** True when a pending request got no message about this job, or no accepted order, for too long. */
  isSilent(life: Life): boolean {
    const row = this.#rows.get(keyOf(life));
    return row !== undefined && this.#isSilent(row);
  }

  #isSilent(row: Row): boolean {
    const since = waitingSince(row);
    const { now, options } = this.#context;
    return since !== null && now - since >= options.config.orderTimeoutMs;
  }

  /** Sends all due messages. Runs after every event of hundreds of workers, so the cheapest check comes first. */
  send(): void {
    for (const row of this.#rows.values()) {
      if (row.request !== null || row.notBefore > this.#context.now) continue;
      if ((row.announced && row.orders.isEmpty) || !this.#isAlive(row.life)) continue;
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
    row.silentSince ??= this.#context.now;
    this.#context.emit({ kind: "worker", id: row.request, worker, message });
  }

  /** True when the request was one of these. */
  onAnswer(request: number, answer: Announced | Taken | Refusal | null): boolean {
    const row = this.#asked(request);
    if (row === null) return false;
    row.request = null;
    if (answer !== null) row.silentSince = null;
    if (answer === null) {
      row.orders.lost();
      row.notBefore = this.#retryAt();
    } else if (answer.kind === "announced") {
      row.stalledSince = null;
      this.#onAnnounced(row, answer);
    } else if (answer.kind === "taken") {
      if (row.orders.taken(answer.next)) row.stalledSince = null;
      else this.#onStalled(row, `it accepts orders from ${answer.next} on`);
      this.#passOrders(row);
    } else {
      row.orders.lost();
      this.#onStalled(row, answer.message);
      this.#listener.onRefused(row.life, answer);
    }
    return true;
  }

  #onStalled(row: Row, why: string): void {
    const { now } = this.#context;
    row.notBefore = this.#retryAt();
    if (row.stalledSince !== null) return;
    row.stalledSince = now;
    this.#context.log("warn", "orders.stalled", { job: this.#job, ...row.life, why });
  }

  #onAnnounced(row: Row, announced: Announced): void {
    const isAgain = row.again === "now";
    row.announced = true;
    if (isAgain) row.again = null;
    this.#listener.onAnnounced(row.life, announced);
    if (isAgain) this.#listener.onAnnouncedAgain(row.life, announced);
  }

  #asked(request: number): Row | null {
    for (const row of this.#rows.values()) if (row.request === request) return row;
    return null;
  }

  #retryAt(): number {
    return this.#context.now + this.#context.options.config.orderRetryMs;
  }

  nextDeadline(): number | null {
    let at = Number.POSITIVE_INFINITY;
    const { orderTimeoutMs } = this.#context.options.config;
    for (const row of this.#rows.values()) {
      const { life } = row;
      const silentSince = waitingSince(row);
      const waits = row.request === null && (!row.announced || !row.orders.isEmpty);
      if ((!waits && silentSince === null) || !this.#isAlive(life)) continue;
      if (waits) at = Math.min(at, row.notBefore);
      const silentAt = silentSince === null ? at : silentSince + orderTimeoutMs;
      if (silentAt > this.#context.now) at = Math.min(at, silentAt);
    }
    return at === Number.POSITIVE_INFINITY ? null : at;
  }
}

/** Start of the time without progress of a stream; null: it waits for nothing. */
function waitingSince({ silentSince, stalledSince }: Row): number | null {
  if (silentSince === null || stalledSince === null) return silentSince ?? stalledSince;
  return Math.min(silentSince, stalledSince);
}

export function keyOf({ incarnation, worker }: Life): string {
  return `${worker} ${incarnation}`;
}
