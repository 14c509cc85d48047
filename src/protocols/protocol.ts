/**
 * What the engine needs of a protocol, and nothing more. One folder per protocol implements it:
 *
 *   definition     http.get("https://…")            a `PreparedCall`, made while the file loads
 *   preparation    call.prepare(environment)        once per executor core: addresses, bytes, checks
 *   virtual user   call.bind(session, keep, sink)   once per user: its connection, its cookies
 *   the loop       bound.start(now)                 as often as it goes; the sink hears exactly once
 *
 * Functions written by users reach the same protocol through a client (`({ http }) => http.get(…)`).
 * The door of a protocol (`<folder>/index.ts`) registers it, and the engine makes the client of a
 * virtual user on first use; what it keeps per user lives in the session.
 */

import { ERROR_KINDS, type ErrorKind } from "./errors.ts";
import { connectionNotes } from "./net/notes.ts";
import type { Origin } from "./net/origin.ts";
import { checkOrigins } from "./preflight.ts";
import type { TraceContext } from "./trace-context.ts";

export { connectionNotes, ERROR_KINDS, type ErrorKind };

/**
 * What functions find in their context, by name. Empty here: each door adds its client by merging,
 * so that a workflow sees the clients of exactly the protocols that it imports.
 */
// biome-ignore lint/suspicious/noEmptyInterface: the doors of the protocols fill it.
export interface Clients {}

/** A protocol as its door registers it: clients are pluggable. (PROTO-3) */
export interface Protocol<Name extends keyof Clients> {
  /** Of the client in the context of functions. */
  readonly name: Name;
  /** The client of one virtual user. */
  client(session: Session): Clients[Name];
  /** Absent where `hyperscale ping` has a way of its own. */
  readonly ping?: ProtocolPing;
}

/** How `hyperscale ping` tries a server. */
export interface ProtocolPing {
  /** Of its addresses, without the colon. */
  readonly schemes: readonly string[];
  /** The smallest call that a server answers; its target is the address. */
  call(address: string, options: { readonly insecure: boolean }): PreparedCall;
}

const registered: Protocol<keyof Clients>[] = [];

export function registerProtocol<Name extends keyof Clients>(protocol: Protocol<Name>): void {
  const { name } = protocol;
  if (registered.some((other) => other.name === name))
    throw new Error(`two protocols are named "${name}"`);
  registered.push(protocol);
}

/** In the order of their registration; grows while workflow files load. */
export function registeredProtocols(): readonly Protocol<keyof Clients>[] {
  return registered;
}

/** Work to be done before the loop begins: look up, read, check. */
export interface Preparable {
  /** Throws with a readable message when it cannot. */
  prepare(environment: CallEnvironment): Promise<void>;
  /** The file that it reads, as the workflow names it; one that runs elsewhere takes it along. */
  readonly dataFile?: string;
}

/**
 * What the workflow file made while it was loaded besides the calls of its steps. Constants at the
 * top of a file are invisible to the engine, so each one that needs preparation enters itself.
 * (OPT-1, OPT-3)
 */
const constants = new Set<Preparable>();

export function prepareBeforeLoop(constant: Preparable): void {
  constants.add(constant);
}

/** The files that they read, as the workflow file names them. */
export function constantFiles(): readonly string[] {
  return [...constants].flatMap(({ dataFile }) => dataFile ?? []);
}

let folderOfWorkflow: string | null = null;

/** Where relative paths that functions name in the loop start; null until the preparation begins. */
export function workflowFolder(): string | null {
  return folderOfWorkflow;
}

/** Prepares what the file made and the calls of its steps, and asks whether anybody listens there. */
export async function prepareCalls(
  calls: readonly PreparedCall[],
  environment: CallEnvironment,
): Promise<void> {
  folderOfWorkflow = environment.folder;
  for (const constant of constants) await constant.prepare(environment);
  // A call may be of several steps.
  for (const call of new Set(calls)) await call.prepare(environment);
  // Those of this workflow alone: what others of the file need is none of its business.
  const origins = new Set(calls.flatMap((call) => call.origin?.(environment.settings) ?? []));
  await checkOrigins([...origins], environment.settings.connectTimeoutMs);
}

/** The measured facts of one finished call. Times are milliseconds of one monotonic clock. */
export interface CallRecord {
  /** Null when the call succeeded. */
  readonly errorKind: ErrorKind | null;
  /** Protocol status such as 200; 0 where there is none. */
  readonly status: number;
  /** NaN for what nobody began: it is counted and has no duration. */
  readonly startedAt: number;
  readonly firstByteAt: number;
  readonly endedAt: number;
  /** Time to open the connection, without TLS; negative when an open one was used. */
  readonly connectMs: number;
  /** Time of the TLS handshake; negative when there was none. */
  readonly tlsMs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** What went wrong, for people; null when the call succeeded. */
  readonly error?: string | null;
  /** What was called: "GET https://shop.test/cart". */
  readonly title?: string;
  /** Requests on the wire: more than one after a redirect or when one was sent again. */
  readonly sent?: number;
  /** The W3C header that its requests carried; "" for none. */
  readonly traceparent?: string;
}

/** What failed before anything came has none, whatever its times say. */
export function hasFirstByte({ bytesIn, errorKind }: CallRecord): boolean {
  return errorKind === null || bytesIn > 0;
}

/** Hears the end of a call, exactly once per start. `result` is there when the bound call keeps results. */
export interface CallSink {
  callFinished(record: CallRecord, result: CallResult | undefined): void;
}

export interface PreparedCall<Result extends CallResult = CallResult> extends Preparable {
  readonly protocol: string;
  /** Only for the compiler: what a step with this call results in. */
  readonly resultType?: Result;
  /** Does all work that does not change from call to call. */
  prepare(environment: CallEnvironment): Promise<void>;
  /** Where it connects to, once prepared; without it nobody asks whether somebody listens there. */
  origin?(settings: CallSettings): Origin;
  bind(session: Session, keep: boolean, sink: CallSink): BoundCall;
  /** What a step is called that was given no name: "GET /items". */
  readonly title?: string;
  /**
   * Binds it as a flow does, which makes calls anew in every iteration: results are kept, and a bound
   * call of the same user and sink that has ended is used again where it fits.
   */
  rebind?(session: Session, spent: BoundCall | null, sink: CallSink): BoundCall;
  /** The result that this answer would have, for those who try a flow without a network. */
  answered?(answer: CannedAnswer): Result;
  /** The request as it would go out, for people, and what of it was ready before. */
  shown?(settings: CallSettings): { readonly request: string; readonly prepared: string };
}

/** An answer that somebody made up. */
export interface CannedAnswer {
  /** 200 by default. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Becomes the body, as JSON. */
  readonly json?: unknown;
  readonly body?: string;
}

export interface BoundCall {
  start(now: number): void;
  /** Requests on the wire since the start. */
  readonly sent?: number;
}

/** A call that a function makes by a client. */
export interface ClientCall {
  readonly protocol: string;
  /** "GET" and "/path", or "ws" and "request". */
  readonly verb: string;
  readonly path: string;
  /** What is called: "GET https://shop.test/cart". */
  readonly title: string;
  /** Requests on the wire so far. */
  readonly sent: number;
}

/** What a call may use of its executor core, and the settings of the workflow it belongs to. */
export interface CallEnvironment {
  readonly settings: CallSettings;
  /** Folder of the workflow file: relative paths start there. */
  readonly folder: string;
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
  /** Keep bodies of answers that a function can see. */
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

/** One virtual user's side of all protocols: connections, cookies, clients. Closed when the user ends. */
export interface Session {
  /** Its number, as functions see it. */
  readonly user: number;
  readonly settings: CallSettings;
  /** Makes the named state on first use; a protocol keeps its per-user things there. */
  state<State extends SessionState>(key: SessionKey<State>): State;
  /** The user has ended: nothing new may be started, and what still finishes is not heard. */
  readonly closed: boolean;
  /** A function begins a call by a client. */
  calling?(call: ClientCall): void;
  /** It has ended. */
  called?(call: ClientCall, result: CallResult): void;
  /** There where a share of the iterations is traced. */
  readonly trace?: TraceContext | null;
  /** There for who wants to see HTTP requests as they go out. */
  requestSent?(text: string): void;
  /** Something came that no call had asked for; it is counted under this name. */
  unasked?(name: string, result: CallResult): void;
}

export interface SessionState {
  /** An iteration is over; left out where nothing of it must end, because every iteration asks. */
  readonly reset?: (() => void) | undefined;
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
  readonly sent: number;
  readonly traceparent: string;
  /** What was called, of a call that failed. */
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

  /** The beginning of what the other side said, where it was kept. */
  get excerpt(): string {
    return "";
  }

  get ok(): boolean {
    return this.errorKind === null;
  }

  /** Milliseconds from start to end. */
  get durationMs(): number {
    return this.endedAt - this.startedAt;
  }
}
