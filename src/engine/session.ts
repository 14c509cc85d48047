/** State of one virtual user for all protocols; created with the user, closed with it. */

import type {
  CallResult,
  CallSettings,
  ClientCall,
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

/** Runs the user's iterations; an object, since closures would cost every idle user more. */
export interface SessionListener {
  /** A call that a function made through a client has ended. */
  clientCallEnded?(call: ClientCall, result: CallResult): void;
  /** An unsolicited message arrived. */
  unasked?(name: string, result: CallResult): void;
}

export class UserSession implements Session {
  readonly settings: CallSettings;
  readonly user: number;
  closed = false;
  listener: SessionListener | null = null;
  /** Null where no iteration is traced. */
  readonly trace: TraceContext | null;
  /** Few per user: a linked list is smaller and faster than a map, and than two growing arrays. */
  #held: HeldState | null = null;
  /** States with something to reset after each iteration. */
  #resetting: HeldState | null = null;
  /** Null until a function makes a call: most users have prepared ones only. */
  #underWay: ClientCall[] | null = null;

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

  calling(call: ClientCall): void {
    this.#underWay ??= [];
    this.#underWay.push(call);
  }

  called(call: ClientCall, result: CallResult): void {
    remove(this.#underWay, call);
    this.listener?.clientCallEnded?.(call, result);
  }

  /** Takes the unfinished calls; their ends are ignored from now on. */
  takeUnderWay(): readonly ClientCall[] {
    const calls = this.#underWay ?? [];
    this.#underWay = null;
    return calls;
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
 * The session of a user for one of its functions: the same connections and cookies, and calls attributed to this
 * function, whatever runs beside it.
 */
export class FunctionSession implements Session {
  readonly #session: UserSession;
  readonly #clientCallEnded: NonNullable<SessionListener["clientCallEnded"]>;
  #underWay: ClientCall[] = [];

  constructor(
    session: UserSession,
    clientCallEnded: NonNullable<SessionListener["clientCallEnded"]>,
  ) {
    this.#session = session;
    this.#clientCallEnded = clientCallEnded;
  }

  calling(call: ClientCall): void {
    this.#underWay.push(call);
  }

  called(call: ClientCall, result: CallResult): void {
    remove(this.#underWay, call);
    this.#clientCallEnded(call, result);
  }

  /** Takes the unfinished calls; their ends are ignored from now on. */
  takeUnderWay(): readonly ClientCall[] {
    const calls = this.#underWay;
    this.#underWay = [];
    return calls;
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

/** Nearly always it is the last one. */
function remove(calls: ClientCall[] | null, call: ClientCall): void {
  if (calls === null) return;
  if (calls.at(-1) === call) calls.pop();
  else {
    const at = calls.indexOf(call);
    if (at >= 0) calls.splice(at, 1);
  }
}
