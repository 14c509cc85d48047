/** A UDP socket to one server, for protocols of datagrams: opens it, times it, and hands on what comes. */

import dgram from "node:dgram";
import { errorText } from "../../core/base/error-text.ts";
import { clock } from "../call.ts";
import { kindOfSocketError } from "../errors.ts";
import type { ConnectionFailure, ConnectionHost, OpenTimes } from "./connection.ts";

interface DatagramReader {
  /** It can be sent from now on: nobody has been asked. */
  datagramsOpen(times: OpenTimes, now: number): void;
  datagram(bytes: Buffer, now: number): void;
  /** It is over; a server that is not there says so only after something was sent. */
  datagramsEnded(failure: ConnectionFailure, now: number): void;
}

export class DatagramSocket {
  readonly #socket: dgram.Socket;
  readonly #reader: DatagramReader;
  #over = false;

  constructor({ origin }: ConnectionHost, reader: DatagramReader, startedAt: number) {
    this.#reader = reader;
    const { host, port } = origin.nextAddress();
    const socket = dgram.createSocket(host.includes(":") ? "udp6" : "udp4");
    this.#socket = socket;
    socket.on("error", (error) => this.#broke(error));
    socket.on("message", (bytes) => {
      if (!this.#over) reader.datagram(bytes, clock());
    });
    const connect = (): void => {
      if (this.#over) return;
      // Connected: what others send does not arrive, and that nobody listens is heard.
      socket.connect(port, host, () => {
        const now = clock();
        const times = { connectMs: now - startedAt, tlsMs: -1, loginMs: -1 };
        if (!this.#over) reader.datagramsOpen(times, now);
      });
    };
    const localAddress = origin.route?.nextLocalAddress();
    if (localAddress === undefined) connect();
    else socket.bind({ address: localAddress, exclusive: true }, connect);
  }

  /** `sent` hears that the datagram was handed to the network; not after the end. */
  send(bytes: Uint8Array, sent?: () => void): void {
    this.#socket.send(bytes, (error) => {
      if (error !== null && error !== undefined) this.#broke(error);
      else if (!this.#over) sent?.();
    });
  }

  destroy(): void {
    if (this.#over) return;
    this.#over = true;
    this.#socket.close();
  }

  #broke(error: Error): void {
    if (this.#over) return;
    this.destroy();
    const failure = { kind: kindOfSocketError(error, false), text: errorText(error) };
    this.#reader.datagramsEnded(failure, clock());
  }
}
