/**
 * The rows of orders of one job, one per life of a worker: first the leader's view is announced, then orders
 * follow. Whatever is not answered is said again. A row stays as long as its leader has the job: a worker that
 * was taken for lost and comes back hears what it missed, above all that its cores are given back. (T4)
 *
 * A worker that lives and says nothing about this job for too long is lost to this job only: any word about it
 * refutes that, an answer as well as an event. An answer that accepts no order refutes nothing: a worker that only
 * repeats such answers is lost to the job, too. (AD-30, ACKW-1, ACKW-2, HFD-1, HFD-4, HFD-9, HFD-10)
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
  /** It is announced a second time: when its orders are taken, or now; null: it is not. */
  again: "afterOrders" | "now" | null;
  /** The request under way. */
  request: number | null;
  /** When the next may be sent. */
  notBefore: number;
  /** Since when nothing was heard of the job while something was asked; null: nothing is open. */
  silentSince: number | null;
  /** Since when its answers have accepted no order; null: the last one did. Events do not change it. */
  stalledSince: number | null;
}

interface RowsListener {
  onAnnounced(life: Life, announced: Announced): void;
  /** What was ordered before is carried out, and so many events were told or wait since. */
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

  /** Those who can be reached have heard who leads, but for those that do not say so. */
  get allAnnounced(): boolean {
    for (const row of this.#rows.values())
      if (!row.announced && this.#isAlive(row.life) && !this.#isSilent(row)) return false;
    return true;
  }

  /** Nobody who can be reached has an order that was not confirmed. */
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

  /** False when that life has no row, or does not take orders any more. */
  push(life: Life, order: Order): boolean {
    return this.#rows.get(keyOf(life))?.orders.push(order) ?? false;
  }

  /** When it has taken what it was ordered until now, it says again what it has, and how many events. */
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

  /** A life that is heard has confirmed every order. */
  hasTakenAll(life: Life): boolean {
    const row = this.#rows.get(keyOf(life));
    return row?.announced === true && row.orders.isEmpty && this.#isAlive(life);
  }

  /** Any word about the job is a sign that it is at work there. */
  heard(life: Life): void {
    const row = this.#rows.get(keyOf(life));
    if (row !== undefined) row.silentSince = row.request === null ? null : this.#context.now;
  }

  /** It was asked, and has said nothing about this job, or accepted no order, for too long. */
  isSilent(life: Life): boolean {
    const row = this.#rows.get(keyOf(life));
    return row !== undefined && this.#isSilent(row);
  }

  #isSilent(row: Row): boolean {
    const since = waitingSince(row);
    const { now, options } = this.#context;
    return since !== null && now - since >= options.config.orderTimeoutMs;
  }

  /** Sends what may be sent now. Asked after every event of hundreds of workers: what costs least is asked first. */
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

/** Since when a row has made no progress; null: it is not waiting for any. */
function waitingSince({ silentSince, stalledSince }: Row): number | null {
  if (silentSince === null || stalledSince === null) return silentSince ?? stalledSince;
  return Math.min(silentSince, stalledSince);
}

export function keyOf({ incarnation, worker }: Life): string {
  return `${worker} ${incarnation}`;
}
