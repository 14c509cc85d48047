/** One UDP socket of a virtual user: it sends a datagram, and may wait for one. */

import { clock } from "../call.ts";
import type {
  CarriedCall,
  Connection,
  ConnectionFailure,
  ConnectionHost,
  OpenTimes,
} from "../target/connection.ts";
import { DatagramSocket } from "../target/datagram-socket.ts";

export interface UdpCommand {
  readonly bytes: Uint8Array;
  /** Recognises the response; null when none is waited for. */
  readonly answers: ((bytes: Buffer) => boolean) | null;
}

export class UdpConnection implements Connection<UdpCommand> {
  readonly #host: ConnectionHost;
  readonly #socket: DatagramSocket;
  #call: CarriedCall<UdpCommand> | null = null;

  constructor(host: ConnectionHost, now: number) {
    this.#host = host;
    this.#socket = new DatagramSocket(host, this, now);
  }

  datagramsOpen(times: OpenTimes, now: number): void {
    this.#host.opened(times, now);
  }

  send(call: CarriedCall<UdpCommand>, now: number): void {
    const { answers, bytes } = call.command;
    this.#call = call;
    call.wrote(bytes.length, 1, now);
    this.#socket.send(bytes, () => {
      if (answers === null && this.#call === call) this.#end(call, null, clock());
    });
  }

  /** Unsolicited datagrams are dropped, as the network might have done. */
  datagram(bytes: Buffer, now: number): void {
    const call = this.#call;
    if (call?.command.answers?.(bytes) !== true) return;
    call.read(bytes.length, now);
    this.#end(call, bytes, now);
  }

  #end(call: CarriedCall<UdpCommand>, value: Buffer | null, now: number): void {
    this.#call = null;
    call.answered(value, now);
  }

  datagramsEnded(failure: ConnectionFailure, now: number): void {
    this.#call = null;
    this.#host.lost(failure, now);
  }

  destroy(): void {
    this.#call = null;
    this.#socket.destroy();
  }
}
