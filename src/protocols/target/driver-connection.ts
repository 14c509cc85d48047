/**
 * A connection through the client of a driver: the driver connects, performs and throws, and this class measures around
 * it. Databases get one call at a time, so that no call queues invisibly inside the driver; brokers carry many
 * (`callsPerConnectionMax`), and bytes are charged to the next call that finishes.
 */

import type { ConnectionOptions } from "node:tls";
import { errorText } from "../../core/base/error-text.ts";
import { clock } from "../call.ts";
import { kindOfSocketError } from "../errors.ts";
import { connectOptionsOf, tlsOptions } from "../net/open-socket.ts";
import type {
  CarriedCall,
  Connection,
  ConnectionFailure,
  ConnectionHost,
  OpenTimes,
} from "./connection.ts";

/** Address and options of a driver's connection. */
export interface DriverAddress {
  readonly host: string;
  readonly port: number;
  /** TLS options, where TLS is used; calling this records disabled verification. */
  tls(): ConnectionOptions;
}

/** Events of a connection while it opens and afterwards. */
export interface DriverEvents {
  /** The network connection is open; the login follows. */
  connected(): void;
  /** The connection closed by itself. */
  lost(error: unknown): void;
}

/** A complete response that reports an error. */
export interface Refusal {
  readonly code: string;
  readonly text: string;
}

/** A client that connects and logs in. */
export interface Opening<Client> {
  /** Can be closed from now on. */
  readonly client: Client;
  /** Resolves when the first call can be performed. */
  readonly ready: Promise<unknown>;
}

/** Byte counters, as in `net.Socket`. */
export interface Traffic {
  readonly bytesRead: number;
  readonly bytesWritten: number;
}

export interface Driver<Client, Command> {
  open(address: DriverAddress, events: DriverEvents): Opening<Client>;
  /** `call` identifies the call for `forget`. */
  perform(client: Client, command: Command, call: object): Promise<unknown>;
  /** Number of requests that the command sends. */
  requests(command: Command): number;
  /** Null for other errors. */
  refusal(error: unknown): Refusal | null;
  /** The response violated the protocol. */
  isMalformed(error: unknown): boolean;
  /** Traffic of its sockets; null while it has none. */
  traffic(client: Client): Traffic | null;
  /**
   * The call was abandoned. Returns true when a late response cannot be mistaken for that of another call; false closes
   * the connection.
   */
  forget?(client: Client, call: object): boolean;
  /** A new iteration of its user begins. */
  reset?(client: Client): void;
  /** Closes at once, without a goodbye. */
  close(client: Client): void;
}

export class DriverConnection<Client, Command> implements Connection<Command> {
  readonly #host: ConnectionHost;
  readonly #driver: Driver<Client, Command>;
  readonly #startedAt: number;
  #connectedAt = 0;
  #client: Client | null = null;
  readonly #calls = new Set<CarriedCall<Command>>();
  #readBefore = 0;
  #writtenBefore = 0;
  #over = false;

  constructor(host: ConnectionHost, driver: Driver<Client, Command>, now: number) {
    this.#host = host;
    this.#driver = driver;
    this.#startedAt = now;
    void this.#open();
  }

  async #open(): Promise<void> {
    const { origin, settings, user } = this.#host;
    const { host = origin.hostname, port } = connectOptionsOf(origin);
    const tls = (): ConnectionOptions => tlsOptions(origin, { insecure: settings.insecure, user });
    const events: DriverEvents = {
      connected: () => {
        this.#connectedAt = clock();
      },
      lost: (error) => this.#lost(error),
    };
    try {
      const { client, ready } = this.#driver.open({ host, port, tls }, events);
      this.#client = client;
      await ready;
      if (!this.#over) this.#opened(client);
    } catch (error) {
      this.#lost(error);
    }
  }

  #opened(client: Client): void {
    const now = clock();
    const traffic = this.#driver.traffic(client);
    this.#readBefore = traffic?.bytesRead ?? 0;
    this.#writtenBefore = traffic?.bytesWritten ?? 0;
    this.#host.opened(this.#openTimes(now), now);
  }

  #openTimes(now: number): OpenTimes {
    const connectedAt = this.#connectedAt === 0 ? now : this.#connectedAt;
    return { connectMs: connectedAt - this.#startedAt, tlsMs: -1, loginMs: now - connectedAt };
  }

  send(call: CarriedCall<Command>, now: number): void {
    const client = this.#client;
    if (client === null) return;
    this.#calls.add(call);
    call.wrote(0, this.#driver.requests(call.command), now);
    this.#driver.perform(client, call.command, call).then(
      (value) => {
        if (this.#ends(call)) call.answered(value, this.#countedAt(call, client));
      },
      (error: unknown) => this.#failed(call, client, error),
    );
  }

  forget(call: CarriedCall<Command>): boolean {
    this.#calls.delete(call);
    return this.#client !== null && this.#driver.forget?.(this.#client, call) === true;
  }

  reset(): void {
    if (this.#client !== null) this.#driver.reset?.(this.#client);
  }

  destroy(): void {
    this.#over = true;
    this.#calls.clear();
    if (this.#client !== null) this.#driver.close(this.#client);
  }

  /** Returns false for a call that was abandoned, or whose connection is lost: it has been reported. */
  #ends(call: CarriedCall<Command>): boolean {
    return this.#calls.delete(call) && !this.#over;
  }

  /** Charges its bytes to the call, and returns the time of its end. */
  #countedAt(call: CarriedCall<Command>, client: Client): number {
    const now = clock();
    this.#bytesOf(call, client, now);
    return now;
  }

  #failed(call: CarriedCall<Command>, client: Client, error: unknown): void {
    const refusal = this.#driver.refusal(error);
    // An abandoned call has been reported.
    if (!this.#calls.has(call)) return;
    if (refusal === null) this.#lost(error);
    else if (this.#ends(call))
      call.refused(refusal.code, refusal.text, this.#countedAt(call, client));
  }

  #bytesOf(call: CarriedCall<Command>, client: Client, now: number): void {
    const traffic = this.#driver.traffic(client);
    // Read each counter once: Node recomputes the bytes written by a socket on every access.
    const read = traffic?.bytesRead ?? 0;
    const written = traffic?.bytesWritten ?? 0;
    call.wrote(written - this.#writtenBefore, 0, now);
    call.read(read - this.#readBefore, now);
    this.#readBefore = read;
    this.#writtenBefore = written;
  }

  #lost(error: unknown): void {
    if (this.#over) return;
    const [call] = this.#calls;
    const client = this.#client;
    const now = clock();
    const begun =
      client !== null && (this.#driver.traffic(client)?.bytesRead ?? 0) > this.#readBefore;
    if (call !== undefined && client !== null) this.#bytesOf(call, client, now);
    this.destroy();
    const failure = this.#failureOf(error, call !== undefined, begun);
    const isRefusal = failure.kind === "application";
    this.#host.lost(isRefusal ? { ...failure, opening: this.#openTimes(now) } : failure, now);
  }

  #failureOf(error: unknown, calling: boolean, begun: boolean): ConnectionFailure {
    const refusal = this.#driver.refusal(error);
    if (refusal !== null) return { kind: "application", ...refusal };
    if (this.#driver.isMalformed(error)) return { kind: "protocol", text: errorText(error) };
    const kind = kindOfSocketError(error, false);
    const when = begun ? "in mid-answer" : "without an answer";
    const text = kind === "reset" && calling ? `${errorText(error)} ${when}` : errorText(error);
    return { kind, text };
  }
}
