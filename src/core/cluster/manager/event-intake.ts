/**
 * Events of workers on their way into a job: each is accepted once and in order, and confirmed when its entries are in
 * the log. A worker keeps unconfirmed events, so the next leader receives them again.
 *
 * An answer waits for the log only briefly, so that metrics keep flowing where nothing can be committed.
 */

import type { Events, HeldFigures, WorkerEvent } from "../messages.ts";
import type { ManagerContext } from "./context.ts";
import { keyOf, type Life } from "./order-rows.ts";

/** How long an answer waits for the log; shorter than the workers' request timeout. */
const HOLD_MS = 1_000;
/** Maximum executions and flows in one answer; a worker merges fewer at once. */
const HELD_MAX = 256;

interface Intake {
  /** Number of the next expected event. */
  next: number;
  /** Entries that pending events wait for, by event number. */
  readonly open: Map<number, Set<string>>;
  /** The request that is not answered yet. */
  held: { readonly id: number; readonly until: number } | null;
  /** Retained metrics by execution and flow; cleared when new events follow an answer. */
  readonly figures: Map<string, HeldFigures>;
  /** When the worker last reported anything new. */
  newsAt: number | null;
}

export class EventIntake {
  readonly #context: ManagerContext;
  /** By incarnation of the worker. */
  readonly #intakes = new Map<string, Intake>();

  constructor(context: ManagerContext) {
    this.#context = context;
  }

  /** Accepts events; `handle` returns the entries that it has proposed. */
  take(
    id: number,
    { events, first, ...life }: Events,
    handle: (event: WorkerEvent) => readonly string[],
  ): void {
    const intake = this.#intakeOf(life);
    // Repeated events are not handled again, and their answer may have been lost: keep it for the retry.
    if (first >= intake.next) intake.figures.clear();
    for (const [at, event] of events.entries()) {
      const number = first + at;
      if (number !== intake.next) continue;
      intake.next = number + 1;
      intake.newsAt = this.#context.now;
      const entries = handle(event);
      if (entries.length > 0) intake.open.set(number, new Set(entries));
    }
    this.#answer(intake);
    intake.held = { id, until: this.#context.now + HOLD_MS };
    if (intake.open.size === 0) this.#answer(intake);
  }

  /** Records retained metrics while events are processed; the answer includes them. */
  hold(life: Life, held: HeldFigures): void {
    const { figures } = this.#intakeOf(life);
    figures.set(`${held.execution} ${held.part ?? ""}`, held);
    const [first] = figures.keys();
    if (figures.size > HELD_MAX && first !== undefined) figures.delete(first);
  }

  /** Rejects events that belong to another leader. */
  refuse(id: number, message: string): void {
    const answer = { kind: "refused", reason: "staleView", message } as const;
    this.#context.emit({ kind: "answer", id, answer });
  }

  /** Accepts nothing yet; the worker retries. */
  postpone(id: number, life: Life): void {
    this.#context.emit({
      kind: "answer",
      id,
      answer: { kind: "taken", next: this.acceptedCount(life) },
    });
  }

  /** Skips events below `next`; their process is gone. */
  skip(life: Life, next: number): void {
    const intake = this.#intakeOf(life);
    intake.next = Math.max(intake.next, next);
  }

  #intakeOf(life: Life): Intake {
    const known = this.#intakes.get(keyOf(life));
    const intake = known ?? {
      next: 0,
      open: new Map(),
      held: null,
      figures: new Map(),
      newsAt: null,
    };
    this.#intakes.set(keyOf(life), intake);
    return intake;
  }

  /** Number of events accepted from an incarnation. */
  acceptedCount(life: Life): number {
    return this.#intakes.get(keyOf(life))?.next ?? 0;
  }

  /** When an incarnation last reported anything new; null: never. */
  newsAt(life: Life): number | null {
    return this.#intakes.get(keyOf(life))?.newsAt ?? null;
  }

  /** Called when an entry is committed or will never be. */
  settled(eventId: string): void {
    for (const intake of this.#intakes.values()) {
      for (const [number, entries] of intake.open)
        if (entries.delete(eventId) && entries.size === 0) intake.open.delete(number);
      if (intake.open.size === 0) this.#answer(intake);
    }
  }

  nextDeadline(): number | null {
    let at = Number.POSITIVE_INFINITY;
    for (const { held } of this.#intakes.values()) at = Math.min(at, held?.until ?? at);
    return at === Number.POSITIVE_INFINITY ? null : at;
  }

  onTick(): void {
    for (const intake of this.#intakes.values())
      if ((intake.held?.until ?? Number.POSITIVE_INFINITY) <= this.#context.now)
        this.#answer(intake);
  }

  #answer(intake: Intake): void {
    if (intake.held === null) return;
    const [first] = intake.open.keys();
    const taken = { kind: "taken", next: first ?? intake.next } as const;
    const held = [...intake.figures.values()];
    const answer = held.length === 0 ? taken : { ...taken, held };
    this.#context.emit({ kind: "answer", id: intake.held.id, answer });
    intake.held = null;
  }
}
