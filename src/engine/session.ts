/** One virtual user's side of all protocols; made with the user, closed with it. */

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

/** Who runs the user's iterations; an object, since functions would cost every idle user more. */
export interface SessionListener {
  /** A call ended that a function made by a client. */
  heard?(call: ClientCall, result: CallResult): void;
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
    this.listener?.heard?.(call, result);
  }

  /** Calls that have no end yet; nobody waits for it any more. */
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
 * The session of a user as one of its functions sees it: the same connections and cookies, and calls
 * that are known to be this function's, whatever runs beside it.
 */
export class FunctionSession implements Session {
  readonly #session: UserSession;
  readonly #heard: NonNullable<SessionListener["heard"]>;
  #underWay: ClientCall[] = [];

  constructor(session: UserSession, heard: NonNullable<SessionListener["heard"]>) {
    this.#session = session;
    this.#heard = heard;
  }

  calling(call: ClientCall): void {
    this.#underWay.push(call);
  }

  called(call: ClientCall, result: CallResult): void {
    remove(this.#underWay, call);
    this.#heard(call, result);
  }

  /** Calls that have no end yet; nobody waits for it any more. */
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
