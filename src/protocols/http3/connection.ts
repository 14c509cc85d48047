/**
 * QUIC connections through the driver `@currentspace/http3`: one per virtual user, whose requests share it as streams.
 * UDP does not report that nothing listens; that is a timeout.
 */

import { errorText } from "../../core/base/error-text.ts";
import { clock } from "../call.ts";
import { tlsOptions } from "../net/open-socket.ts";
import { setImmediate } from "../net/timers.ts";
import type {
  CarriedCall,
  Connection,
  ConnectionFailure,
  ConnectionHost,
} from "../target/connection.ts";
import { type HeaderFields, type Http3Session, type Http3Stream, http3Driver } from "./driver.ts";
import { IDLE_MS_MAX } from "./limits.ts";

export interface Http3Command {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
  /** Statuses that count as success; empty means all below 400. */
  readonly expect: readonly number[];
}

export interface Http3Answer {
  readonly status: number;
  readonly headers: HeaderFields;
  readonly body: Buffer;
}

interface Trust {
  /** Authorities to trust instead of the system's. */
  readonly ca: readonly (string | Buffer)[] | null;
}

const STATUS_FAILED = 400;
const REQUEST_CANCELLED = 0x010c;
/** TLS alerts as QUIC error codes: RFC 9001, section 4.8. */
const [TLS_ERROR_FIRST, TLS_ERROR_LAST] = [0x100, 0x1ff];

interface Carried {
  readonly stream: Http3Stream;
  status: number;
  headers: HeaderFields;
  readonly parts: Buffer[];
  length: number;
}

export class Http3Connection implements Connection<Http3Command> {
  readonly #host: ConnectionHost;
  readonly #session: Http3Session;
  readonly #carried = new Map<CarriedCall<Http3Command>, Carried>();
  #bytesIn = 0;
  #bytesOut = 0;
  #over = false;

  constructor(host: ConnectionHost, { ca }: Trust, startedAt: number) {
    this.#host = host;
    const { origin, settings, user } = host;
    const address = origin.nextAddress();
    const authority = address.host.includes(":") ? `[${address.host}]` : address.host;
    // The only place that decides, and records, whether certificates are verified.
    const { rejectUnauthorized } = tlsOptions(origin, { insecure: settings.insecure, user });
    this.#session = http3Driver.module.connect(`https://${authority}:${address.port}`, {
      ...(ca === null ? {} : { ca }),
      rejectUnauthorized: rejectUnauthorized !== false,
      servername: origin.hostname,
      maxIdleTimeoutMs: IDLE_MS_MAX,
      // Calls have their own deadlines.
      connectTimeoutMs: 0,
    });
    this.#session.on("error", (error) => this.#lost(failureOf(error)));
    this.#session.on("close", ({ errorCode, reason }) => this.#lost(closedBy(errorCode, reason)));
    this.#session.ready().then(
      () => this.#opened(startedAt),
      // The close event that follows carries more detail.
      (error: unknown) => setImmediate(() => this.#lost(failureOf(error))),
    );
  }

  #opened(startedAt: number): void {
    if (this.#over) return;
    const now = clock();
    this.#count();
    // QUIC combines both handshakes; there is no separate TLS time.
    this.#host.opened({ connectMs: now - startedAt, tlsMs: -1, loginMs: -1 }, now);
  }

  send(call: CarriedCall<Http3Command>, now: number): void {
    const { body, headers } = call.command;
    let stream: Http3Stream;
    try {
      stream = this.#session.request(headers, { endStream: body === null });
    } catch (error) {
      setImmediate(() => call.failed(failureOf(error), clock()));
      return;
    }
    const carried: Carried = { stream, status: 0, headers: {}, parts: [], length: 0 };
    this.#carried.set(call, carried);
    call.wrote(0, 1, now);
    stream.on("response", (fields: HeaderFields) => this.#head(call, carried, fields));
    stream.on("data", (part: Buffer) => this.#body(call, carried, part));
    stream.on("end", () => this.#ended(call, carried));
    stream.on("error", (error) => this.#broke(call, carried, error));
    if (body !== null) stream.end(body);
  }

  #head(call: CarriedCall<Http3Command>, carried: Carried, fields: HeaderFields): void {
    if (!this.#carried.has(call)) return;
    carried.status = Number(fields[":status"]);
    carried.headers = fields;
    call.status(carried.status);
    call.read(0, clock());
  }

  #body(call: CarriedCall<Http3Command>, carried: Carried, part: Buffer): void {
    if (!this.#carried.has(call)) return;
    carried.length += part.length;
    const { bodyBytesMax } = this.#host.settings;
    if (carried.length > bodyBytesMax) {
      this.forget(call);
      const text = `the answer has more than ${bodyBytesMax} bytes`;
      call.failed({ kind: "protocol", text }, clock());
    } else if (call.keep) carried.parts.push(part);
  }

  #ended(call: CarriedCall<Http3Command>, carried: Carried): void {
    if (!this.#carried.delete(call)) return;
    const now = clock();
    this.#bytesOf(call, now);
    const { headers, parts, status } = carried;
    const { expect } = call.command;
    if (!Number.isInteger(status) || status < 100)
      call.failed({ kind: "protocol", text: "an answer without a status" }, now);
    else if (expect.length > 0 ? !expect.includes(status) : status >= STATUS_FAILED)
      call.failed({ kind: "status", code: `${status}`, text: `HTTP ${status}` }, now);
    else call.answered({ status, headers, body: Buffer.concat(parts) }, now);
  }

  #broke(call: CarriedCall<Http3Command>, { status }: Carried, error: Error): void {
    if (!this.#carried.delete(call)) return;
    const when = status === 0 ? "without an answer" : "in mid-answer";
    call.failed({ kind: "reset", text: `${errorText(error)} ${when}` }, clock());
  }

  /** Accounts the bytes transferred since the last accounting to the call that finishes. */
  #bytesOf(call: CarriedCall<Http3Command>, now: number): void {
    const [bytesIn, bytesOut] = [this.#bytesIn, this.#bytesOut];
    this.#count();
    call.wrote(this.#bytesOut - bytesOut, 0, now);
    call.read(this.#bytesIn - bytesIn, now);
  }

  #count(): void {
    const metrics = this.#session.getMetrics();
    if (metrics === null) return;
    this.#bytesIn = metrics.bytesIn;
    this.#bytesOut = metrics.bytesOut;
  }

  forget(call: CarriedCall<Http3Command>): boolean {
    const carried = this.#carried.get(call);
    this.#carried.delete(call);
    carried?.stream.close(REQUEST_CANCELLED);
    return true;
  }

  #lost(failure: ConnectionFailure): void {
    if (this.#over) return;
    this.destroy();
    this.#host.lost(failure, clock());
  }

  destroy(): void {
    if (this.#over) return;
    this.#over = true;
    this.#carried.clear();
    // Destroying fails when the session has already closed.
    this.#session.destroy().catch(() => undefined);
  }
}

function closedBy(errorCode: number, reason: string): ConnectionFailure {
  const code = `0x${errorCode.toString(16)}`;
  if (errorCode >= TLS_ERROR_FIRST && errorCode <= TLS_ERROR_LAST)
    return { kind: "tls", code, text: `TLS alert ${errorCode - TLS_ERROR_FIRST} ${reason}`.trim() };
  return { kind: "reset", code, text: `the connection was closed ${reason}`.trim() };
}

function failureOf(error: unknown): ConnectionFailure {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return { kind: "reset", code, text: errorText(error) };
}
