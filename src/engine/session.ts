/** One virtual user's side of all protocols; made with the user, closed with it. */

import type {
  CallResult,
  CallSettings,
  Session,
  SessionKey,
  SessionState,
} from "../protocols/protocol.ts";
import { TraceContext } from "../protocols/trace-context.ts";

interface HeldState {
  readonly key: SessionKey<SessionState>;
  readonly state: SessionState;
  readonly next: HeldState | null;
}

/** Who runs the user's iterations; an object, since functions would cost every idle user more. */
export interface SessionListener {
  /** A function made a call by a client. */
  heard?(result: CallResult, verb: string, path: string): void;
  /** A message came that nobody asked for. */
  unasked?(name: string, result: CallResult): void;
}

export class UserSession implements Session {
  readonly settings: CallSettings;
  readonly user: number;
  closed = false;
  listener: SessionListener | null = null;
  /** Null where no iteration is to be traced. */
  readonly trace: TraceContext | null;
  /** Few per user: a chain is smaller and faster than a map, and than two lists that grow. */
  #held: HeldState | null = null;
  /** Those of them that end something with the iteration. */
  #resetting: HeldState | null = null;

  constructor(settings: CallSettings, user = 0) {
    this.user = user;
    this.settings = settings;
    this.trace = settings.tracedShare > 0 ? new TraceContext(settings.tracedShare) : null;
  }

  state<State extends SessionState>(key: SessionKey<State>): State {
    for (let held = this.#held; held !== null; held = held.next)
      if (held.key === key) return held.state as State;
    const state = key.create(this);
    this.#held = { key, state, next: this.#held };
    if (state.reset !== undefined) this.#resetting = { key, state, next: this.#resetting };
    return state;
  }

  called(result: CallResult, verb: string, path: string): void {
    this.listener?.heard?.(result, verb, path);
  }

  unasked(name: string, result: CallResult): void {
    this.listener?.unasked?.(name, result);
  }

  reset(): void {
    for (let held = this.#resetting; held !== null; held = held.next) held.state.reset?.();
  }

  close(): void {
    this.closed = true;
    for (let held = this.#held; held !== null; held = held.next) held.state.close();
  }
}

/**
 * The session of a user as one of its functions sees it: the same connections and cookies, and calls
 * that are known to be this function's, whatever runs beside it.
 */
export class FunctionSession implements Session {
  readonly #session: UserSession;
  readonly called: NonNullable<Session["called"]>;

  constructor(session: UserSession, called: NonNullable<Session["called"]>) {
    this.#session = session;
    this.called = called;
  }

  get settings(): CallSettings {
    return this.#session.settings;
  }
  get user(): number {
    return this.#session.user;
  }
  get trace(): TraceContext | null {
    return this.#session.trace;
  }
  get closed(): boolean {
    return this.#session.closed;
  }

  state<State extends SessionState>(key: SessionKey<State>): State {
    return this.#session.state(key);
  }
}
