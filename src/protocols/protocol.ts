/**
 * What the engine needs of a protocol, and nothing more. One folder per protocol implements it:
 *
 *   definition     http.get("https://…")            a `PreparedCall`, made while the file loads
 *   preparation    call.prepare(environment)        once per executor core: addresses, bytes, checks
 *   virtual user   call.bind(session, keep, sink)   once per user: its connection, its cookies
 *   the loop       bound.start(now)                 as often as it goes; the sink hears exactly once
 *
 * Functions written by users reach the same protocol through a client (`({ http }) => http.get(…)`)
 * that the engine makes on first use; what it keeps per user lives in the session.
 */

import type { ErrorKind } from "./errors.ts";

/** The measured facts of one finished call. Times are milliseconds of one monotonic clock. */
export interface CallRecord {
  /** Null when the call succeeded. */
  readonly errorKind: ErrorKind | null;
  /** Protocol status such as 200; 0 where there is none. */
  readonly status: number;
  readonly startedAt: number;
  readonly firstByteAt: number;
  readonly endedAt: number;
  /** Time to open the connection, without TLS; negative when an open one was used. */
  readonly connectMs: number;
  /** Time of the TLS handshake; negative when there was none. */
  readonly tlsMs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** Hears the end of a call, exactly once per start. `result` is there when the bound call keeps results. */
export interface CallSink {
  callFinished(record: CallRecord, result: CallResult | undefined): void;
}

export interface PreparedCall<Result extends CallResult = CallResult> {
  readonly protocol: string;
  /** Only for the compiler: what a step with this call results in. */
  readonly resultType?: Result;
  /** Does all work that does not change from call to call. Throws with a readable message when it cannot. */
  prepare(environment: CallEnvironment): Promise<void>;
  bind(session: Session, keep: boolean, sink: CallSink): BoundCall;
}

export interface BoundCall {
  start(now: number): void;
}

/** What a call may use of its executor core, and the settings of the workflow it belongs to. */
export interface CallEnvironment {
  readonly settings: CallSettings;
}

/**
 * Settings of a workflow that concern its calls; `DEFAULT_CALL_SETTINGS` has the default of each.
 */
export interface CallSettings {
  readonly connectTimeoutMs: number;
  /** Until the first byte of the answer. */
  readonly firstByteTimeoutMs: number;
  /** The whole call. */
  readonly timeoutMs: number;
  readonly keepAlive: boolean;
  /** "user": each virtual user has its own connections. "shared": one pool per core and origin. */
  readonly connections: "user" | "shared";
  readonly sharedConnectionsMax: number;
  readonly redirectsMax: number;
  readonly cookies: "user" | "iteration" | "off";
  /** Accept any certificate. */
  readonly insecure: boolean;
  readonly bodyBytesMax: number;
}

export const DEFAULT_CALL_SETTINGS: CallSettings = {
  connectTimeoutMs: 10_000,
  firstByteTimeoutMs: 60_000,
  timeoutMs: 60_000,
  keepAlive: true,
  connections: "user",
  sharedConnectionsMax: 256,
  redirectsMax: 0,
  cookies: "user",
  insecure: false,
  bodyBytesMax: 16 * 1024 * 1024,
};

/** One virtual user's side of all protocols: connections, cookies, clients. Closed when the user ends. */
export interface Session {
  readonly settings: CallSettings;
  /** Makes the named state on first use; a protocol keeps its per-user things there. */
  state<State extends SessionState>(key: SessionKey<State>): State;
  /** The user has ended: nothing new may be started, and what still finishes is not heard. */
  readonly closed: boolean;
}

export interface SessionState {
  /** A new iteration begins. */
  reset(): void;
  /** Ends everything at once; calls under way fail as interrupted and are not heard any more. */
  close(): void;
}

export interface SessionKey<State extends SessionState> {
  readonly name: string;
  create(session: Session): State;
}

/**
 * The value a step returns. Every protocol has its own subclass; a step of a user's own making
 * returns a `CustomResult`. Subclasses at any depth count. (WF-7)
 */
export abstract class CallResult implements CallRecord {
  abstract readonly protocol: string;
  readonly errorKind: ErrorKind | null;
  /** For people; null when the call succeeded. */
  readonly error: string | null;
  readonly status: number;
  readonly startedAt: number;
  readonly firstByteAt: number;
  readonly endedAt: number;
  readonly connectMs: number;
  readonly tlsMs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;

  constructor(record: CallRecord, error: string | null) {
    this.errorKind = record.errorKind;
    this.error = error;
    this.status = record.status;
    this.startedAt = record.startedAt;
    this.firstByteAt = record.firstByteAt;
    this.endedAt = record.endedAt;
    this.connectMs = record.connectMs;
    this.tlsMs = record.tlsMs;
    this.bytesIn = record.bytesIn;
    this.bytesOut = record.bytesOut;
  }

  get ok(): boolean {
    return this.errorKind === null;
  }

  /** Milliseconds from start to end. */
  get durationMs(): number {
    return this.endedAt - this.startedAt;
  }
}
