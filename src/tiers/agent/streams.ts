/**
 * Requests and replies over secured connections: one connection per exchange on the dialling side, any
 * number of requests per connection on the accepting one. The port bounds how many there are, and every
 * exchange ends by its deadline, whatever the peer does. All data travels here, none in
 * datagrams. (NET-2)
 */

import type { Address } from "../../core/base/ids.ts";
import type { ExchangeResult } from "../../core/tiers/process/member-types.ts";
import { Connection } from "../../host/connection.ts";
import type { ByteStream, ByteStreamPort } from "../../host/ports/byte-stream.ts";
import type { Compressor } from "../../host/ports/compressor.ts";
import { startTimer } from "../../host/timer.ts";
import type { Admission } from "../../wire/admission.ts";
import { mayConnect } from "../../wire/claims.ts";
import type { Hello } from "../../wire/hello.ts";
import type { KeyRing } from "../../wire/key-ring.ts";
import {
  decodeStreamMessage,
  directionProblem,
  encodeStreamMessage,
  MESSAGES,
  type StreamEnvelope,
} from "../../wire/registry.ts";
import type { Entropy } from "../../wire/seal.ts";

export interface StreamsOptions {
  readonly port: ByteStreamPort;
  readonly entropy: Entropy;
  readonly compressor: Compressor;
  readonly hello: Hello;
  /** Asked for each new connection, so that a rotated key takes effect without a restart. */
  readonly ring: () => KeyRing;
  readonly onRequest: (
    message: StreamEnvelope,
    peer: Hello,
    /** Exactly once; null when there is nothing to say. */
    answer: (reply: StreamEnvelope | null) => void,
  ) => void;
  readonly admission: Admission;
  /** A connection was refused or broken, with the other end's host. */
  readonly onProblem: (host: string, problem: string) => void;
}

/** What a refused sender is told to wait. (BEX-5) */
const RETRY_AFTER_MS = 1_000;

function refusalOf(
  correlation: number,
  code: string,
  text: string,
  retryAfterMs: number | null,
): Uint8Array {
  return encodeStreamMessage({ name: "refusal", correlation, value: { code, text, retryAfterMs } });
}

export class Streams {
  readonly #options: StreamsOptions;
  #correlation = 0;
  #open = 0;
  #accepted = 0;
  #refused = 0;

  constructor(options: StreamsOptions) {
    this.#options = options;
    options.port.onAccept((stream) => this.#accept(stream));
  }

  get counts(): { readonly open: number; readonly accepted: number; readonly refused: number } {
    return { open: this.#open, accepted: this.#accepted, refused: this.#refused };
  }

  /** `done` is called exactly once. */
  exchange(
    to: Address,
    request: Omit<StreamEnvelope, "correlation">,
    timeoutMs: number,
    done: (result: ExchangeResult) => void,
  ): void {
    const { port, onProblem } = this.#options;
    const correlation = ++this.#correlation;
    let connection: Connection | null = null;
    let settled = false;
    const settle = (result: ExchangeResult): void => {
      if (settled) return;
      settled = true;
      deadline.cancel();
      connection?.close();
      done(result);
    };
    const fail = (problem: string): void => settle({ ok: false, refused: false, problem });
    const deadline = startTimer(timeoutMs, () => fail("no reply in time"));
    port.dial(to, timeoutMs, (stream, problem) => {
      if (stream === null) {
        settle({ ok: false, refused: problem === "refused", problem: `dial ${problem}` });
        return;
      }
      if (settled) {
        stream.destroy();
        return;
      }
      connection = this.#connect(stream, "client", {
        onReady: () =>
          connection?.send(encodeStreamMessage({ ...request, correlation } as StreamEnvelope)),
        onMessage: (bytes) => {
          const reply = decodeStreamMessage(bytes);
          if (!reply.ok) fail(reply.problem);
          // A reply to something else is nobody's: the peer is confused, the deadline stands. (FRAME-8)
          else if (reply.value.correlation === correlation)
            settle({ ok: true, reply: reply.value });
        },
        onEnd: (ended) => {
          if (ended !== null && !settled) onProblem(stream.host, ended);
          fail(ended ?? "the connection closed");
        },
      });
    });
  }

  #accept(stream: ByteStream): void {
    const { host } = stream;
    this.#accepted++;
    this.#open++;
    stream.onClose(() => {
      this.#open--;
    });
    // What was admitted and not answered when the connection ends is released then. (BEX-3)
    const admitted = new Set<() => void>();
    const connection = this.#connect(stream, "server", {
      onReady: () => {},
      onMessage: (bytes, peer) => this.#onRequest(connection, bytes, peer, admitted),
      onEnd: (problem) => {
        for (const release of admitted) release();
        if (problem === null) return;
        this.#refused++;
        this.#options.onProblem(host, problem);
      },
    });
  }

  #onRequest(
    connection: Connection,
    bytes: Uint8Array,
    peer: Hello,
    admitted: Set<() => void>,
  ): void {
    const { admission, hello, onProblem, onRequest } = this.#options;
    const request = decodeStreamMessage(bytes);
    if (!request.ok) {
      // The peer is told that it was not understood, and nothing about us. (AD-25, CODEC-7)
      onProblem(peer.node, request.problem);
      connection.send(refusalOf(0, "UNSUPPORTED", "this message is not understood here", null));
      connection.close();
      return;
    }
    const { name, correlation } = request.value;
    // The matrix of roles governs work; membership is between any two members. (C10-26)
    const denied = name === "membership" ? null : mayConnect(peer.role, hello.role);
    const misdirected = denied ?? directionProblem(name, peer.role, hello.role);
    if (misdirected !== null) {
      onProblem(peer.node, misdirected);
      connection.send(refusalOf(correlation, "ROLE", misdirected, null));
      return;
    }
    const { priority } = MESSAGES[name];
    if (!admission.tryAcquire(priority)) {
      connection.send(
        refusalOf(correlation, "BUSY", "too much work at the moment", RETRY_AFTER_MS),
      );
      return;
    }
    const release = (): void => {
      if (admitted.delete(release)) admission.release(priority);
    };
    admitted.add(release);
    onRequest(request.value, peer, (reply) => {
      release();
      if (reply !== null) {
        connection.send(encodeStreamMessage({ ...reply, correlation } as StreamEnvelope));
      }
    });
  }

  #connect(
    stream: ByteStream,
    side: "client" | "server",
    handlers: {
      readonly onReady: () => void;
      readonly onMessage: (bytes: Uint8Array, peer: Hello) => void;
      readonly onEnd: (problem: string | null) => void;
    },
  ): Connection {
    const { entropy, compressor, hello, ring } = this.#options;
    return new Connection({
      stream,
      compressor,
      guard: { entropy, ring: ring(), side, hello },
      ...handlers,
    });
  }
}
