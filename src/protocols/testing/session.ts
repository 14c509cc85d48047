/** Session of a virtual user for tests: states are created on first use and closed together. */

import { clock } from "../net/clock.ts";
import {
  type CallRecord,
  type CallResult,
  type CallSettings,
  type CallSink,
  DEFAULT_CALL_SETTINGS,
  type PreparedCall,
  type Session,
  type SessionKey,
  type SessionState,
} from "../protocol.ts";

/** Ceilings for a hang: a busy machine may take long to connect. */
const PATIENT = { connectTimeoutMs: 60_000, timeoutMs: 60_000 };

export class TestSession implements Session {
  readonly settings: CallSettings;
  readonly user: number;
  closed = false;
  readonly #states = new Map<string, SessionState>();

  constructor(settings: Partial<CallSettings> = {}, user = 0, same?: CallSettings) {
    this.user = user;
    this.settings = same ?? { ...DEFAULT_CALL_SETTINGS, ...PATIENT, ...settings };
  }

  /** Another user with the same settings object. */
  another(user: number): TestSession {
    return new TestSession(this.settings, user, this.settings);
  }

  state<State extends SessionState>(key: SessionKey<State>): State {
    const known = this.#states.get(key.name);
    if (known !== undefined) return known as State;
    const made = key.create(this);
    this.#states.set(key.name, made);
    return made;
  }

  reset(): void {
    for (const state of this.#states.values()) state.reset?.();
  }

  close(): void {
    this.closed = true;
    for (const state of this.#states.values()) state.close();
  }
}

export interface Finished {
  readonly record: CallRecord;
  readonly result: CallResult | undefined;
}

/** Prepares a call, binds it once, and returns a function that starts it and waits for its result. */
export async function runner(
  call: PreparedCall,
  session: TestSession,
  keep = true,
): Promise<() => Promise<Finished>> {
  await call.prepare({ settings: session.settings, folder: "." });
  let report: (finished: Finished) => void = () => {
    throw new Error("a call ended that was not started, or a second time");
  };
  const refuse = report;
  const sink: CallSink = {
    callFinished: (record, result) => {
      const notify = report;
      report = refuse;
      // Bound calls are reused, so their record is valid only now.
      notify({ record: { ...copyOf(record) }, result });
    },
  };
  const bound = call.bind(session, keep, sink);
  return () =>
    new Promise((resolve) => {
      report = resolve;
      bound.start(clock());
    });
}

function copyOf(record: CallRecord): CallRecord {
  const { errorKind, status, startedAt, firstByteAt, endedAt } = record;
  const { connectMs, tlsMs, bytesIn, bytesOut } = record;
  return {
    errorKind,
    status,
    startedAt,
    firstByteAt,
    endedAt,
    connectMs,
    tlsMs,
    bytesIn,
    bytesOut,
  };
}

/** Performs one call and returns its result. */
export async function perform<Result extends CallResult>(
  call: PreparedCall<Result>,
  session = new TestSession(),
): Promise<Result> {
  const { result } = await (await runner(call, session))();
  return result as Result;
}

type ResultsOf<Calls extends readonly PreparedCall[]> = {
  -readonly [At in keyof Calls]: Calls[At] extends PreparedCall<infer Result> ? Result : never;
};

/** Performs calls of one user one after the other, and returns their results. */
export async function answersTo<Calls extends readonly PreparedCall[]>(
  ...calls: Calls
): Promise<ResultsOf<Calls>> {
  const session = new TestSession();
  const all: unknown[] = [];
  for (const call of calls) all.push(await perform(call, session));
  session.close();
  return all as ResultsOf<Calls>;
}
