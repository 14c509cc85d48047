/**
 * Events of workers on their way into a job: each is taken once and in order, and confirmed when what follows
 * from it is in the log. A worker keeps what is not confirmed, so that whoever leads next gets it again.
 *
 * An answer waits for the log, but not for long: figures go on where nothing can be committed.
 */

import type { Events, HeldFigures, WorkerEvent } from "../messages.ts";
import type { ManagerContext } from "./context.ts";
import { keyOf, type Life } from "./order-rows.ts";

/** How long an answer waits for the log; below the patience of workers. */
const HOLD_MS = 1_000;
/** Executions and flows of which one answer says what is held; a worker merges fewer at once. */
const HELD_MAX = 256;

interface Intake {
  /** Number of the event that comes next. */
  next: number;
  /** Events that wait for entries, by number: which entries. */
  readonly open: Map<number, Set<string>>;
  /** The request that is not answered yet. */
  held: { readonly id: number; readonly until: number } | null;
  /** What is held of figures that were told, by execution and flow, until something new is told after an answer. */
  readonly figures: Map<string, HeldFigures>;
  /** When something new was told. */
  newsAt: number | null;
}

export class EventIntake {
  readonly #context: ManagerContext;
  /** By the life of their worker. */
  readonly #intakes = new Map<string, Intake>();

  constructor(context: ManagerContext) {
    this.#context = context;
  }

  /** `handle` says which entries it has proposed. */
  take(
    id: number,
    { events, first, ...life }: Events,
    handle: (event: WorkerEvent) => readonly string[],
  ): void {
    const intake = this.#intakeOf(life);
    // What is told again is no longer handled, and its answer may have been lost.
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

  /** While its events are taken: the answer tells it. */
  hold(life: Life, held: HeldFigures): void {
    const { figures } = this.#intakeOf(life);
    figures.set(`${held.execution} ${held.part ?? ""}`, held);
    const [first] = figures.keys();
    if (figures.size > HELD_MAX && first !== undefined) figures.delete(first);
  }

  /** They are another leader's. */
  refuse(id: number, message: string): void {
    const answer = { kind: "refused", reason: "staleView", message } as const;
    this.#context.emit({ kind: "answer", id, answer });
  }

  /** Nothing can be taken yet: it is told again. */
  postpone(id: number, life: Life): void {
    this.#context.emit({ kind: "answer", id, answer: { kind: "taken", next: this.heard(life) } });
  }

  /** What a life had to tell before this number is of no use to anybody. */
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

  /** How many events of a life are taken. */
  heard(life: Life): number {
    return this.#intakes.get(keyOf(life))?.next ?? 0;
  }

  /** When a life last told anything new; null: never. */
  newsAt(life: Life): number | null {
    return this.#intakes.get(keyOf(life))?.newsAt ?? null;
  }

  /** An entry is in the log, or never will be. */
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
