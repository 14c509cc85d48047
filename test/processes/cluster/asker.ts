/** Exchanges over real sockets between two plain processes: one that asks, and one that answers. */

import { randomBytes } from "node:crypto";
import type { Millis } from "../../../src/core/base/brand.ts";
import { type Address, address } from "../../../src/core/base/ids.ts";
import { type ExchangeResult, Exchanges } from "../../../src/core/cluster/link/exchanges.ts";
import type { LinkEffect, LinkInput } from "../../../src/core/cluster/link/types.ts";
import { deflate } from "../../../src/host/deflate.ts";
import { Loop } from "../../../src/host/loop.ts";
import { nodeClock } from "../../../src/host/node-clock.ts";
import { StreamDriver } from "../../../src/host/stream-driver.ts";
import { TcpPort } from "../../../src/host/tcp.ts";
import type { TlsMaterial } from "../../../src/host/tls.ts";
import { ADMISSION_LIMITS, Admission } from "../../../src/wire/admission.ts";
import type { PeerRole } from "../../../src/wire/claims.ts";
import type { Hello } from "../../../src/wire/hello.ts";
import type { KeyRing } from "../../../src/wire/key-ring.ts";
import type { StreamEnvelope } from "../../../src/wire/registry.ts";
import { CAPABILITIES, PROTOCOL } from "../../../src/wire/version.ts";

const PORT = 7946;

interface AskerOptions {
  readonly host: string;
  readonly role: PeerRole;
  readonly ring: KeyRing;
  readonly hello?: Partial<Hello>;
  readonly tls?: TlsMaterial;
  readonly admission?: Admission;
  /** Null: nothing is answered until `answer` is called. */
  readonly reply?: StreamEnvelope;
}

type Input =
  | LinkInput
  | { readonly kind: "tick" }
  | {
      readonly kind: "ask";
      readonly to: Address;
      readonly request: StreamEnvelope;
      readonly timeoutMs: number;
      readonly done: (result: ExchangeResult) => void;
    }
  | { readonly kind: "answer"; readonly request: number; readonly reply: StreamEnvelope };

export class Asker {
  readonly at: Address;
  readonly problems: string[] = [];
  readonly requests: { readonly number: number; readonly message: StreamEnvelope }[] = [];
  readonly #port: TcpPort;
  readonly #loop: Loop;
  readonly #push: (input: Input) => void;

  private constructor(port: TcpPort, options: AskerOptions) {
    const { host, role, ring, hello, admission, reply } = options;
    this.#port = port;
    this.at = address(`${host}:${PORT}`);
    const waiting = new Map<number, (result: ExchangeResult) => void>();
    let effects: LinkEffect[] = [];
    const exchanges: Exchanges = new Exchanges(
      {
        hello: {
          ...{ cluster: "c1", environment: "test", nodeVersion: "", datacenter: "dc1", role },
          ...{ versionMajor: PROTOCOL.major, versionMinor: PROTOCOL.minor },
          ...{ capabilities: CAPABILITIES, node: `at-${host}`, address: this.at },
          ...hello,
        },
        ...{ ring, entropy: randomBytes, compressor: deflate },
        admission: admission ?? new Admission(ADMISSION_LIMITS.default),
        emit: (effect) => effects.push(effect),
      },
      {
        onExchanged: (exchange, _to, result) => waiting.get(exchange)?.(result),
        onProbed: () => {},
        onRequest: (number, message) => {
          this.requests.push({ number, message });
          if (reply !== undefined) this.#push({ kind: "answer", request: number, reply });
        },
        onProblem: (_name, problem) => this.problems.push(problem),
      },
    );
    const take = (input: Input, now: Millis): void => {
      if (input.kind === "tick") exchanges.tick(now);
      else if (input.kind === "answer") exchanges.answer(input.request, input.reply, now);
      else if (input.kind === "ask") {
        waiting.set(waiting.size, input.done);
        exchanges.ask(waiting.size - 1, input.to, input.request, input.timeoutMs, now);
      } else exchanges.take(input, now);
    };
    const machine = {
      step: (input: Input, now: Millis): readonly LinkEffect[] => {
        effects = [];
        take(input, now);
        return effects;
      },
      nextDeadline: () => exchanges.nextDeadline() as Millis | null,
    };
    this.#loop = new Loop(nodeClock, (error) => {
      throw error;
    });
    let run: (effect: LinkEffect) => void = () => {};
    const driven = this.#loop.add<Input, LinkEffect>(machine, { kind: "tick" }, (it) => run(it));
    this.#push = (input) => driven.push(input);
    const streams = new StreamDriver(port, this.#push);
    run = (effect) => streams.run(effect);
  }

  static async open(options: AskerOptions): Promise<Asker> {
    const port = await TcpPort.listen({
      host: options.host,
      port: PORT,
      tls: options.tls ?? null,
      places: { total: 64, perHost: 32, forMembers: 8 },
      isMember: () => false,
    });
    return new Asker(port, options);
  }

  ask(to: Address, request: StreamEnvelope, timeoutMs: number): Promise<ExchangeResult> {
    return new Promise((done) => {
      this.#push({ kind: "ask", to, request, timeoutMs, done });
    });
  }

  answer(number: number, reply: StreamEnvelope): void {
    this.#push({ kind: "answer", request: number, reply });
  }

  async close(): Promise<void> {
    this.#loop.stop();
    await this.#port.close();
  }
}
