/** A UDP socket to one server, for datagram protocols: opens it, times it, and passes on what arrives. */

import dgram from "node:dgram";
import { errorText } from "../../core/base/error-text.ts";
import { clock } from "../call.ts";
import { kindOfSocketError } from "../errors.ts";
import type { ConnectionFailure, ConnectionHost, OpenTimes } from "./connection.ts";

interface DatagramReader {
  /** Ready to send; the server has not been contacted. */
  datagramsOpen(times: OpenTimes, now: number): void;
  datagram(bytes: Buffer, now: number): void;
  /** The socket is closed. An absent server is noticed only after a datagram was sent. */
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
      // A connected socket drops datagrams of others, and reports that nothing listens.
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

  /** `sent` is called when the datagram was handed to the network, unless the socket has closed. */
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
