/**
 * One HTTP exchange on a fresh connection, with a timestamp at every phase:
 *
 *     DNS │ connect │ TLS │ first byte │ body
 *
 * Names are looked up first and every address is tried in turn, as browsers do it, so that a host with a dead IPv6
 * address is reached; that time counts as connect. One deadline applies to the whole. The body is counted and dropped.
 */

import { promises as dns, type LookupAddress } from "node:dns";
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { isIP, type Socket, connect as tcpConnect } from "node:net";
import { type PeerCertificate, type TLSSocket, connect as tlsConnect } from "node:tls";
import { explain, type Phase, type PingFailure } from "./failure.ts";

export interface ProbeOptions {
  readonly url: URL;
  readonly method: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer | null;
  readonly timeoutMs: number;
  /** Continues with an invalid certificate, and reports why it is invalid. */
  readonly insecure: boolean;
}

/** Milliseconds; null where the phase did not happen. */
export interface PhaseTimes {
  readonly dns: number | null;
  readonly connect: number;
  readonly tls: number | null;
  /** Authentication, in protocols that require it. */
  readonly login?: number;
  readonly firstByte: number;
  readonly body: number;
}

interface TlsFacts {
  readonly version: string;
  readonly cipher: string;
  readonly subject: string;
  readonly issuer: string;
  readonly expiresAt: string;
  readonly expiresInDays: number;
  /** Why the certificate is invalid; null when it is valid. */
  readonly distrust: string | null;
}

export interface PingAnswer {
  readonly ok: true;
  readonly address: string;
  readonly port: number;
  readonly protocol: string;
  readonly status: number;
  readonly statusText: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly headBytes: number;
  readonly bodyBytes: number;
  readonly tls: TlsFacts | null;
  readonly phases: PhaseTimes;
  readonly totalMs: number;
}

export type PingOutcome = PingAnswer | PingFailure;

const DAY_MS = 86_400_000;

export async function probe(options: ProbeOptions): Promise<PingOutcome> {
  const exchange = new ProbeRun(options);
  try {
    return await exchange.run();
  } catch (error) {
    return explain(error, exchange.where());
  } finally {
    exchange.end();
  }
}

/** Rejects pending work when the deadline passes. */
class DeadlinePassed extends Error {
  readonly code = "PING_TIMEOUT";
}

class ProbeRun {
  readonly #options: ProbeOptions;
  readonly #startedAt = performance.now();
  readonly #deadline: Promise<never>;
  readonly #timer: NodeJS.Timeout;
  readonly #host: string;
  readonly #port: number;
  #phase: Phase = "dns";
  #socket: Socket | null = null;

  constructor(options: ProbeOptions) {
    this.#options = options;
    const { url } = options;
    this.#host = url.hostname.replace(/^\[|\]$/g, "");
    this.#port = Number(url.port === "" ? (url.protocol === "https:" ? 443 : 80) : url.port);
    const { promise, reject } = withReject();
    this.#deadline = promise;
    this.#timer = setTimeout(() => reject(new DeadlinePassed("time is up")), options.timeoutMs);
  }

  where(): Parameters<typeof explain>[1] {
    return {
      phase: this.#phase,
      host: this.#host,
      port: this.#port,
      secure: this.#options.url.protocol === "https:",
      timeoutMs: this.#options.timeoutMs,
      totalMs: performance.now() - this.#startedAt,
    };
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#socket?.destroy();
  }

  async run(): Promise<PingAnswer> {
    const addresses = await this.#lookUp();
    const lookedUpAt = performance.now();
    this.#phase = "connect";
    const { socket: plain, address } = await this.#connectAny(addresses);
    const connectedAt = performance.now();
    const secured = this.#options.url.protocol === "https:" ? await this.#secure(plain) : null;
    const securedAt = secured === null ? connectedAt : performance.now();
    this.#phase = "first byte";
    const answer = await this.#exchange(secured ?? plain);
    const named = isIP(this.#host) === 0;
    return {
      ok: true,
      address,
      port: this.#port,
      protocol: `HTTP/${answer.response.httpVersion}`,
      status: answer.response.statusCode ?? 0,
      statusText: answer.response.statusMessage ?? "",
      headers: answer.response.headers,
      headBytes: answer.headBytes,
      bodyBytes: answer.bodyBytes,
      tls: secured === null ? null : tlsFacts(secured),
      phases: {
        dns: named ? lookedUpAt - this.#startedAt : null,
        connect: connectedAt - (named ? lookedUpAt : this.#startedAt),
        tls: secured === null ? null : securedAt - connectedAt,
        firstByte: answer.firstByteAt - securedAt,
        body: answer.endedAt - answer.firstByteAt,
      },
      totalMs: answer.endedAt - this.#startedAt,
    };
  }

  #within<Value>(work: Promise<Value>): Promise<Value> {
    // The loser of the race may still fail later; that is ignored.
    work.catch(() => undefined);
    return Promise.race([work, this.#deadline]);
  }

  async #lookUp(): Promise<readonly LookupAddress[]> {
    const family = isIP(this.#host);
    if (family !== 0) return [{ address: this.#host, family }];
    return this.#within(dns.lookup(this.#host, { all: true, verbatim: true }));
  }

  async #connectAny(
    addresses: readonly LookupAddress[],
  ): Promise<{ readonly socket: Socket; readonly address: string }> {
    let last: unknown = new Error("the name has no address");
    for (const { address } of addresses) {
      const socket = tcpConnect({ host: address, port: this.#port, noDelay: true });
      this.#socket = socket;
      try {
        await this.#within(event(socket, "connect"));
        return { socket, address };
      } catch (error) {
        if (error instanceof DeadlinePassed) throw error;
        last = error;
      }
    }
    throw last;
  }

  async #secure(socket: Socket): Promise<TLSSocket> {
    this.#phase = "tls";
    const secured = tlsConnect({
      socket,
      // Server names are names; an address may not be sent (RFC 6066 §3).
      ...(isIP(this.#host) === 0 ? { servername: this.#host } : { host: this.#host }),
      rejectUnauthorized: !this.#options.insecure,
      ALPNProtocols: ["http/1.1"],
    });
    this.#socket = secured;
    await this.#within(event(secured, "secureConnect"));
    return secured;
  }

  async #exchange(socket: Socket): Promise<{
    readonly response: IncomingMessage;
    readonly firstByteAt: number;
    readonly endedAt: number;
    readonly headBytes: number;
    readonly bodyBytes: number;
  }> {
    let firstByteAt = 0;
    let bytesIn = 0;
    socket.on("data", (data: Buffer) => {
      if (bytesIn === 0) firstByteAt = performance.now();
      bytesIn += data.length;
    });
    const sent = this.#request(socket);
    const onHead = (): void => {
      this.#phase = "body";
    };
    const { response, bodyBytes } = await this.#within(receive(sent, onHead));
    const endedAt = performance.now();
    // Everything but the body is head, and chunk framing where present.
    return { response, firstByteAt, endedAt, headBytes: bytesIn - bodyBytes, bodyBytes };
  }

  #request(socket: Socket): ClientRequest {
    const { url, method, headers, body } = this.#options;
    const sent = httpRequest({
      createConnection: () => socket,
      host: this.#host,
      port: this.#port,
      path: url.pathname + url.search,
      method,
      setHost: false,
      ...(url.username === "" ? {} : { auth: credentials(url) }),
    });
    sent.setHeader("host", url.host);
    sent.setHeader("user-agent", "hyperscale-ping");
    sent.setHeader("accept", "*/*");
    sent.setHeader("connection", "close");
    if (body !== null) sent.setHeader("content-length", body.length);
    for (const [name] of headers) sent.removeHeader(name);
    for (const [name, value] of headers) sent.appendHeader(name, value);
    sent.end(body ?? undefined);
    return sent;
  }
}

function credentials(url: URL): string {
  return `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
}

function withReject(): { readonly promise: Promise<never>; readonly reject: (e: Error) => void } {
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<never>((_, refuse) => {
    reject = refuse;
  });
  // Awaited only in races; outside of one it may reject unseen.
  promise.catch(() => undefined);
  return { promise, reject };
}

function event(socket: Socket, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once(name, () => resolve());
    // Stays for the lifetime of the socket, so that a late error is never uncaught.
    socket.on("error", reject);
    socket.once("close", () => reject(Object.assign(new Error("closed"), { code: "ECONNRESET" })));
  });
}

/** All in one turn: the head and the error of a broken body may arrive in the same packet. */
function receive(
  sent: ClientRequest,
  onHead: () => void,
): Promise<{ readonly response: IncomingMessage; readonly bodyBytes: number }> {
  return new Promise((resolve, reject) => {
    sent.on("error", reject);
    sent.once("response", (response) => {
      onHead();
      let bodyBytes = 0;
      response.on("data", (part: Buffer) => {
        bodyBytes += part.length;
      });
      response.once("end", () => resolve({ response, bodyBytes }));
      // The request receives the error of a broken body too, with the parser's own code, so it goes first.
      response.on("error", (error) => setImmediate(reject, error));
    });
    // An unsolicited upgrade, or the answer to CONNECT: there is no body to read.
    sent.once("upgrade", (response) => resolve({ response, bodyBytes: 0 }));
    sent.once("connect", (response) => resolve({ response, bodyBytes: 0 }));
  });
}

function tlsFacts(socket: TLSSocket): TlsFacts {
  const certificate = socket.getPeerCertificate();
  const expires = new Date(certificate.valid_to);
  return {
    version: socket.getProtocol() ?? "unknown",
    cipher: socket.getCipher().standardName,
    subject: nameOf(certificate.subject),
    issuer: nameOf(certificate.issuer),
    expiresAt: expires.toISOString(),
    expiresInDays: Math.floor((expires.getTime() - Date.now()) / DAY_MS),
    distrust: socket.authorized ? null : String(socket.authorizationError),
  };
}

function nameOf(name: PeerCertificate["subject"] | undefined): string {
  return String(name?.CN ?? name?.O ?? "nameless");
}
