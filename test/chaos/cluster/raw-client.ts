/** One client that sees every answer as it comes, refusals too: `ClusterClient` waits and asks again by itself. */

import { randomBytes } from "node:crypto";
import type { Address } from "../../../src/core/base/ids.ts";
import { Random } from "../../../src/core/base/random.ts";
import type { ClientAnswer, ClientRequest } from "../../../src/core/cluster/messages.ts";
import {
  type ClientEffect,
  type ClientInput,
  ClientProcess,
} from "../../../src/core/cluster/node/client-process.ts";
import { deflate } from "../../../src/host/deflate.ts";
import { type Driven, Loop } from "../../../src/host/loop.ts";
import { nodeAead } from "../../../src/host/node-aead.ts";
import { nodeClock } from "../../../src/host/node-clock.ts";
import { StreamDriver } from "../../../src/host/stream-driver.ts";
import { TcpPort } from "../../../src/host/tcp.ts";
import { KeyRing } from "../../../src/wire/key-ring.ts";
import { CAPABILITIES, PROTOCOL } from "../../../src/wire/version.ts";

/** As long as a client of the product waits for one answer. */
const ANSWER_MS_MAX = 5_000;

export class RawClient {
  readonly #loop: Loop;
  readonly #port = TcpPort.dialer(null);
  readonly #driven: Driven<ClientInput>;
  readonly #waiting = new Map<number, (answer: ClientAnswer | null) => void>();
  #ids = 0;

  constructor(addresses: readonly string[], secret: string) {
    const made = KeyRing.create(nodeAead, [secret], "hyperscale/default");
    if (!made.ok) throw new Error(made.problem);
    const node = `client-${randomBytes(4).toString("hex")}`;
    const machine = new ClientProcess(
      {
        hello: {
          ...{ cluster: "hyperscale", environment: "default", datacenter: "", role: "client" },
          ...{ node, address: "", nodeVersion: "", capabilities: CAPABILITIES },
          ...{ versionMajor: PROTOCOL.major, versionMinor: PROTOCOL.minor },
        },
        managers: addresses as readonly Address[],
        ...{ ring: made.ring, entropy: randomBytes, compressor: deflate },
      },
      new Random(node),
    );
    this.#loop = new Loop(nodeClock, (error) => {
      throw error;
    });
    let run: (effect: ClientEffect) => void = () => undefined;
    this.#driven = this.#loop.add(machine, { kind: "tick" }, (effect) => run(effect));
    const streams = new StreamDriver(this.#port, (input) => this.#driven.push(input));
    run = (effect) => {
      if (effect.kind === "answered") this.#settle(effect);
      else if (effect.kind !== "link") streams.run(effect);
    };
    this.#driven.push({ kind: "start" });
  }

  /** Null: none came. */
  ask(value: ClientRequest, to: string | null): Promise<ClientAnswer | null> {
    const id = ++this.#ids;
    const message = { name: "clientRequest", correlation: 0, value } as const;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      const at = to as Address | null;
      this.#driven.push({ kind: "ask", id, to: at, message, timeoutMs: ANSWER_MS_MAX });
    });
  }

  async close(): Promise<void> {
    this.#loop.stop();
    await this.#port.close();
  }

  #settle({ answer, id }: Extract<ClientEffect, { readonly kind: "answered" }>): void {
    const settle = this.#waiting.get(id);
    this.#waiting.delete(id);
    settle?.(answer?.name === "clientAnswer" ? answer.value : null);
  }
}
