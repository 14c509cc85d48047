/**
 * \n The interface between the engine and a protocol. One folder per protocol implements it:
 *
 *   definition     http.get("https://…")            a `PreparedCall`, made while the file loads
 *   preparation    call.prepare(environment)        once per executor core: addresses, bytes, checks
 *   virtual user   call.bind(session, keep, sink)   once per user: its connection, its cookies
 *   the loop       bound.start(now)                 any number of times; the sink is notified once per start
 *
 * Functions written by users reach the same protocol through a client (`({ http }) => http.get(…)`). The entry point of
 * a protocol (`<folder>/index.ts`) registers it. The engine creates the client of a virtual user on first use; per-user
 * state lives in the session.
 */

import { ERROR_KINDS, type ErrorKind } from "./errors.ts";
import { connectionNotes } from "./net/notes.ts";
import type { Origin } from "./net/origin.ts";
import { checkOrigins } from "./preflight.ts";
import type { TraceContext } from "./trace-context.ts";

export { connectionNotes, ERROR_KINDS, type ErrorKind };

/**
 * Clients in the context of functions, by name. Empty here: each entry point adds its client by declaration merging, so
 * that a workflow sees the clients of exactly the protocols that it imports.
 */
// biome-ignore lint/suspicious/noEmptyInterface: the entry points of the protocols fill it.
export interface Clients {}

/** A protocol as its entry point registers it; clients are pluggable. (PROTO-3) */
export interface Protocol<Name extends keyof Clients> {
  /** Name of the client in the context of functions. */
  readonly name: Name;
  /** The client of one virtual user. */
  client(session: Session): Clients[Name];
  /** Absent where `hyperscale ping` has its own implementation. */
  readonly ping?: ProtocolPing;
}

/** Lets `hyperscale ping` probe a server. */
export interface ProtocolPing {
  /** Schemes of its addresses, without the colon. */
  readonly schemes: readonly string[];
  /** The smallest call that a server answers; `address` is its target. */
  call(address: string, options: { readonly insecure: boolean }): PreparedCall;
}

const registered: Protocol<keyof Clients>[] = [];

export function registerProtocol<Name extends keyof Clients>(protocol: Protocol<Name>): void {
  const { name } = protocol;
  if (registered.some((other) => other.name === name))
    throw new Error(`two protocols are named "${name}"`);
  registered.push(protocol);
}

/** In order of registration; grows while workflow files load. */
export function registeredProtocols(): readonly Protocol<keyof Clients>[] {
  return registered;
}

/** Something to prepare before the loop begins: lookups, files, checks. */
export interface Preparable {
  /** Rejects with a readable message on failure. */
  prepare(environment: CallEnvironment): Promise<void>;
  /** Data file to read, as the workflow names it. It is shipped along when the workflow runs elsewhere. */
  readonly dataFile?: string;
}

/**
 * Preparables created while the workflow file loads, besides the calls of its steps. The engine cannot see constants at
 * the top of a file, so each one that needs preparation registers itself. (OPT-1, OPT-3)
 */
const constants = new Set<Preparable>();

export function prepareBeforeLoop(constant: Preparable): void {
  constants.add(constant);
}

/** Data files of the registered constants, as the workflow file names them. */
export function constantFiles(): readonly string[] {
  return [...constants].flatMap(({ dataFile }) => dataFile ?? []);
}

let folderOfWorkflow: string | null = null;

/** Base folder of relative paths used by functions in the loop; null until the preparation begins. */
export function workflowFolder(): string | null {
  return folderOfWorkflow;
}

/**
 * Prepares the constants of the file and the calls of its steps, then checks that something listens at their origins.
 */
export async function prepareCalls(
  calls: readonly PreparedCall[],
  environment: CallEnvironment,
): Promise<void> {
  folderOfWorkflow = environment.folder;
  for (const constant of constants) await constant.prepare(environment);
  // Several steps may share a call.
  for (const call of new Set(calls)) await call.prepare(environment);
  // Only the origins of this workflow; other workflows of the file are checked on their own.
  const origins = new Set(calls.flatMap((call) => call.origin?.(environment.settings) ?? []));
  await checkOrigins([...origins], environment.settings.connectTimeoutMs);
}

/** Measurements of one finished call. Times are milliseconds of one monotonic clock. */
export interface CallRecord {
  /** Null when the call succeeded. */
  readonly errorKind: ErrorKind | null;
  /** Protocol status such as 200; 0 where there is none. */
  readonly status: number;
  /** NaN for a call that was counted but never started; it has no duration. */
  readonly startedAt: number;
  readonly firstByteAt: number;
  readonly endedAt: number;
  /** Time to open the connection, without TLS; negative when an open connection was reused. */
  readonly connectMs: number;
  /** Time of the TLS handshake; negative when there was none. */
  readonly tlsMs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Human-readable error; null when the call succeeded. */
  readonly error?: string | null;
  /** Request as shown in reports: "GET https://shop.test/cart". */
  readonly title?: string;
  /** Requests on the wire: more than one after a redirect or a retry. */
  readonly sent?: number;
  /** W3C `traceparent` header of its requests; "" for none. */
  readonly traceparent?: string;
}

/** Calls that failed before any byte arrived have none, whatever their times say. */
export function hasFirstByte({ bytesIn, errorKind }: CallRecord): boolean {
  return errorKind === null || bytesIn > 0;
}

/** Receives the outcome of a call, exactly once per start. `result` is present when the bound call keeps results. */
export interface CallSink {
  callFinished(record: CallRecord, result: CallResult | undefined): void;
}

export interface PreparedCall<Result extends CallResult = CallResult> extends Preparable {
  readonly protocol: string;
  /** Result type of a step with this call; exists only for the compiler. */
  readonly resultType?: Result;
  /** Does all work that is the same for every call. */
  prepare(environment: CallEnvironment): Promise<void>;
  /** Origin that it connects to, once prepared. Without it, the preflight check skips the call. */
  origin?(settings: CallSettings): Origin;
  bind(session: Session, keep: boolean, sink: CallSink): BoundCall;
  /** Default name of a step with this call: "GET /items". */
  readonly title?: string;
  /**
   * Binds for a flow, which describes its calls again in every iteration. Results are kept, and `spent`, a finished
   * bound call of the same user and sink, is reused where it fits.
   */
  rebind?(session: Session, spent: BoundCall | null, sink: CallSink): BoundCall;
  /** Result for a canned answer, to try a flow without a network. */
  answered?(answer: CannedAnswer): Result;
  /** The request as it would be sent, for display, and the parts of it that were prepared in advance. */
  shown?(settings: CallSettings): { readonly request: string; readonly prepared: string };
}

/** A made-up response for tests of flows. */
export interface CannedAnswer {
  /** 200 by default. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON value of the body. */
  readonly json?: unknown;
  readonly body?: string;
}

export interface BoundCall {
  start(now: number): void;
  /** Requests on the wire since the start. */
  readonly sent?: number;
}

/** A call that a function makes through a client. */
export interface ClientCall {
  readonly protocol: string;
  /** "GET" and "/path", or "ws" and "request". */
  readonly verb: string;
  readonly path: string;
  /** Request as shown in reports: "GET https://shop.test/cart". */
  readonly title: string;
  readonly startedAt: number;
  /** Requests on the wire so far. */
  readonly sent: number;
}

/** Executor core and workflow settings that a call is prepared for. */
export interface CallEnvironment {
  readonly settings: CallSettings;
  /** Folder of the workflow file; relative paths are resolved against it. */
  readonly folder: string;
}

/** Workflow settings that affect its calls; `DEFAULT_CALL_SETTINGS` has the defaults. */
export interface CallSettings {
  readonly connectTimeoutMs: number;
  /** Until the first byte of the response. */
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
  /** Keep response bodies that a function can read. */
  readonly readBody: boolean;
  /** Connections that one virtual user may have open to one origin. */
  readonly connectionsPerOriginMax: number;
  /** Share of iterations whose requests carry a W3C traceparent header, from 0 to 1. */
  readonly tracedShare: number;
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
  readBody: true,
  connectionsPerOriginMax: Number.POSITIVE_INFINITY,
  tracedShare: 0,
};

/** State of one virtual user across all protocols: connections, cookies, clients. Closed when the user stops. */
export interface Session {
  /** Number of the user, as functions see it. */
  readonly user: number;
  readonly settings: CallSettings;
  /** Returns the state for the key and creates it on first use; protocols keep their per-user state there. */
  state<State extends SessionState>(key: SessionKey<State>): State;
  /** The user has stopped: nothing new may be started, and calls that still finish are not reported. */
  readonly closed: boolean;
  /** Called when a function starts a call through a client. */
  calling?(call: ClientCall): void;
  /** Called when such a call has finished. */
  called?(call: ClientCall, result: CallResult): void;
  /** Present when a share of the iterations is traced. */
  readonly trace?: TraceContext | null;
  /** Receives the text of HTTP requests as they are sent. */
  requestSent?(text: string): void;
  /** Counts an unsolicited message under this name. */
  unasked?(name: string, result: CallResult): void;
}

export interface SessionState {
  /**
   * Called at the end of an iteration. Left undefined when nothing has to be reset, because it is checked for every
   * iteration.
   */
  readonly reset?: (() => void) | undefined;
  /** Closes everything at once; calls in flight are interrupted and not reported. */
  close(): void;
}

export interface SessionKey<State extends SessionState> {
  readonly name: string;
  create(session: Session): State;
}

/**
 * The value that a step returns. Every protocol has its own subclass; a user-defined step returns a `CustomResult`.
 * Subclasses at any depth count. (WF-7)
 */
export abstract class CallResult implements CallRecord {
  abstract readonly protocol: string;
  readonly errorKind: ErrorKind | null;
  /** Human-readable; null when the call succeeded. */
  readonly error: string | null;
  readonly status: number;
  readonly startedAt: number;
  readonly firstByteAt: number;
  readonly endedAt: number;
  readonly connectMs: number;
  readonly tlsMs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly sent: number;
  readonly traceparent: string;
  /** Request of a failed call. */
  readonly title: string;

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
    this.sent = record.sent ?? 0;
    this.traceparent = record.traceparent ?? "";
    this.title = record.errorKind === null ? "" : (record.title ?? "");
  }

  /** Beginning of the response, where it was kept. */
  get excerpt(): string {
    return "";
  }

  get ok(): boolean {
    return this.errorKind === null;
  }

  /** Milliseconds from start to finish. */
  get durationMs(): number {
    return this.endedAt - this.startedAt;
  }
}
