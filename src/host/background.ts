/**
 * All background work of a process: loops, delays and promises that nobody awaits. (AD-2, NET-6)
 *
 *     every(name, ms)   repeatedly; a turn that is still under way is not begun a second time
 *     after(name, ms)   once, later
 *     run(name)         now, to its end
 *     pause(ms)         for the loops inside: ends early, and at once after a stop
 *
 * Each piece has a name, can be cancelled, is listed while it exists, and ends with the process: `stop` cancels what
 * waits, aborts what runs, waits for it up to a deadline and names what did not end. After that nothing begins any
 * more. An error never becomes an unhandled rejection: it is reported and kept for the list.
 */

import { errorText } from "../core/base/error-text.ts";

type WorkKind = "every" | "after" | "run";

export interface WorkView {
  readonly name: string;
  readonly kind: WorkKind;
  readonly state: "waiting" | "running" | "failed";
  /** When it began, or was requested. */
  readonly since: string;
  /** When it is due next; null while it runs and when it is over. */
  readonly next: string | null;
  readonly error: string | null;
}

/** One piece of work, seen from inside and outside. */
export interface Work {
  /** Aborts when the work is cancelled or the process stops. */
  readonly signal: AbortSignal;
  /** Returns false when it was over already. */
  cancel(): boolean;
}

type Turn = (work: Work) => unknown;

/** The last failures stay in the list for later inspection. */
const FAILURES_KEPT_MAX = 32;

export class Background {
  readonly #onError: (name: string, error: unknown) => void;
  readonly #live = new Set<Piece>();
  readonly #failures: WorkView[] = [];
  readonly #pauses = new Set<() => void>();
  #stopped = false;
  #onIdle: (() => void) | null = null;

  /** `onError` is called for failed work; the process goes on. */
  constructor(onError: (name: string, error: unknown) => void) {
    this.#onError = onError;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  every(name: string, intervalMs: number, turn: Turn): Work {
    const piece = this.#add(name, "every");
    const arm = (): void => {
      piece.wait(intervalMs, () => {
        arm();
        if (!piece.running) this.#turn(piece, turn);
      });
    };
    if (!this.#stopped) arm();
    return piece;
  }

  after(name: string, delayMs: number, turn: Turn): Work {
    const piece = this.#add(name, "after");
    if (!this.#stopped) piece.wait(delayMs, () => this.#turn(piece, turn));
    return piece;
  }

  run(name: string, turn: Turn): Work {
    const piece = this.#add(name, "run");
    if (!this.#stopped) this.#turn(piece, turn);
    return piece;
  }

  /** Resolves after `ms`, when `signal` aborts, or when everything stops. */
  pause(ms: number, signal?: AbortSignal): Promise<void> {
    if (this.#stopped || signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
        this.#pauses.delete(end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal?.addEventListener("abort", end, { once: true });
      this.#pauses.add(end);
    });
  }

  /** Current work, in the order of its start, and the last failures. */
  list(): readonly WorkView[] {
    return [...[...this.#live].map((piece) => piece.view()), ...this.#failures];
  }

  /** Cancels and aborts everything; resolves with the names of what had not ended after `msMax`. */
  async stop(msMax: number): Promise<readonly string[]> {
    this.#stopped = true;
    for (const end of [...this.#pauses]) end();
    for (const piece of [...this.#live]) piece.cancel();
    if (this.#live.size === 0) return [];
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
      timer = setTimeout(resolve, msMax);
    });
    clearTimeout(timer);
    return [...this.#live].map(({ name }) => name);
  }

  #add(name: string, kind: WorkKind): Piece {
    const piece = new Piece(name, kind, () => this.#remove(piece));
    if (!this.#stopped) this.#live.add(piece);
    return piece;
  }

  #remove(piece: Piece): void {
    this.#live.delete(piece);
    if (this.#live.size === 0) this.#onIdle?.();
  }

  /** A synchronous turn is over at once, without a promise. */
  #turn(piece: Piece, turn: Turn): void {
    piece.begin();
    let result: unknown;
    try {
      result = turn(piece);
    } catch (error) {
      this.#failed(piece, error);
    }
    if (!(result instanceof Promise)) {
      piece.end();
      return;
    }
    result.then(
      () => piece.end(),
      (error: unknown) => {
        try {
          this.#failed(piece, error);
        } finally {
          piece.end();
        }
      },
    );
  }

  #failed(piece: Piece, error: unknown): void {
    // Work may confirm its cancellation by throwing.
    if (piece.cancelled) return;
    this.#failures.push({ ...piece.view(), state: "failed", next: null, error: errorText(error) });
    if (this.#failures.length > FAILURES_KEPT_MAX) this.#failures.shift();
    this.#onError(piece.name, error);
  }
}

class Piece implements Work {
  readonly name: string;
  readonly kind: WorkKind;
  readonly #onOver: () => void;
  #since = Date.now();
  #next: number | null = null;
  #timer: NodeJS.Timeout | undefined;
  #controller: AbortController | undefined;
  running = false;
  cancelled = false;
  #over = false;

  constructor(name: string, kind: WorkKind, onOver: () => void) {
    this.name = name;
    this.kind = kind;
    this.#onOver = onOver;
  }

  /** Created on first use: most work is short and never needs it. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.cancelled) this.#controller.abort();
    return this.#controller.signal;
  }

  wait(ms: number, then: () => void): void {
    this.#next = Date.now() + ms;
    this.#timer = setTimeout(then, ms);
  }

  begin(): void {
    this.running = true;
    this.#since = Date.now();
    if (this.kind !== "every") this.#next = null;
  }

  end(): void {
    this.running = false;
    if (this.kind !== "every" || this.cancelled) this.#finish();
  }

  cancel(): boolean {
    if (this.cancelled || this.#over) return false;
    this.cancelled = true;
    clearTimeout(this.#timer);
    this.#controller?.abort();
    if (!this.running) this.#finish();
    return true;
  }

  view(): WorkView {
    const next = this.running || this.#next === null ? null : new Date(this.#next).toISOString();
    return {
      name: this.name,
      kind: this.kind,
      state: this.running ? "running" : "waiting",
      since: new Date(this.#since).toISOString(),
      next,
      error: null,
    };
  }

  #finish(): void {
    this.#over = true;
    this.#onOver();
  }
}
