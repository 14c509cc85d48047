/** A virtual user's session for tests: states are made on first use and closed together. */

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

export class TestSession implements Session {
  readonly settings: CallSettings;
  readonly user: number;
  closed = false;
  readonly #states = new Map<string, SessionState>();

  constructor(settings: Partial<CallSettings> = {}, user = 0, same?: CallSettings) {
    this.user = user;
    this.settings = same ?? { ...DEFAULT_CALL_SETTINGS, timeoutMs: 60_000, ...settings };
  }

  /** Another user with the very same settings. */
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

/** Prepares a call, binds it once, and gives a function that starts it and waits for its end. */
export async function runner(
  call: PreparedCall,
  session: TestSession,
  keep = true,
): Promise<() => Promise<Finished>> {
  await call.prepare({ settings: session.settings, folder: "." });
  let heard: (finished: Finished) => void = () => {
    throw new Error("a call ended that was not started, or a second time");
  };
  const refuse = heard;
  const sink: CallSink = {
    callFinished: (record, result) => {
      const tell = heard;
      heard = refuse;
      // Bound calls are reused, so what they tell holds only now.
      tell({ record: { ...copyOf(record) }, result });
    },
  };
  const bound = call.bind(session, keep, sink);
  return () =>
    new Promise((resolve) => {
      heard = resolve;
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
