/**
 * Streams between simulated nodes, as production makes them: one connection per exchange, a greeting and
 * its answer, one request, one reply, each sealed, each a trip of its own. A cut way times out, a process
 * that is down refuses, one that goes down in between breaks the connection, a paused one answers when it
 * wakes.
 *
 *     dialling      greeting →                    ← welcome        request →          ← reply
 *     accepting                  judges the hello                            serves
 */

import type { SwimStreamPacket } from "../../src/core/cluster/swim/messages.ts";
import type { SwimEffect, SwimInput } from "../../src/core/cluster/swim/types.ts";
import { decodeStreamMessage, encodeStreamMessage } from "../../src/wire/registry.ts";
import type { StreamEvent, StreamGuard } from "../../src/wire/stream-guard.ts";
import type { SimNode, Surroundings } from "./node.ts";

/** Bytes of a refusal on the way back. */
const RESET_BYTES = 40;

export function openSimStream(
  from: SimNode,
  effect: Extract<SwimEffect, { kind: "openStream" }>,
  around: Surroundings,
): void {
  const stream = new SimStream(from, effect, around);
  stream.dial();
}

class SimStream {
  readonly #from: SimNode;
  readonly #effect: Extract<SwimEffect, { kind: "openStream" }>;
  readonly #around: Surroundings;
  /** Of the dialling process; its end ends the exchange. */
  readonly #life: number;
  #open = true;

  constructor(
    from: SimNode,
    effect: Extract<SwimEffect, { kind: "openStream" }>,
    around: Surroundings,
  ) {
    this.#from = from;
    this.#effect = effect;
    this.#around = around;
    this.#life = from.life;
  }

  dial(): void {
    const { world } = this.#around;
    this.#finish("streamFailed", world.now + this.#effect.timeoutMs / this.#from.rate, {
      kind: "streamFailed",
      exchange: this.#effect.exchange,
    });
    const target = this.#around.resolve(this.#effect.to);
    if (target === undefined) return;
    const client = this.#from.streamGuard("client");
    this.#carry(this.#from, target, client.greet(), (greeting) => {
      if (target.state === "down") this.#reset(target, true);
      else target.inLife(target.life, false, () => this.#welcome(target, client, greeting));
    });
  }

  /** The accepting side judges the hello; the dialling one then sends what it came for. */
  #welcome(target: SimNode, client: StreamGuard, greeting: Uint8Array): void {
    const server = target.streamGuard("server");
    const { life } = target;
    const met = server.push(greeting);
    if (met.kind !== "ready" || met.reply === null) return;
    this.#carry(target, this.#from, met.reply, (welcome) => {
      this.#ours(() => {
        if (client.push(welcome).kind !== "ready") return;
        const request = client.seal(encodePacket(this.#effect.packet));
        this.#carry(this.#from, target, request, (sealed) => {
          if (target.life !== life) this.#reset(target, false);
          else target.inLife(life, false, () => this.#serve(target, server, client, sealed));
        });
      });
    });
  }

  #serve(target: SimNode, server: StreamGuard, client: StreamGuard, sealed: Uint8Array): void {
    const packet = decodePacket(server.push(sealed));
    if (packet === null) return;
    target.serve(packet, (answer) => {
      const reply = server.seal(encodePacket(answer.packet));
      const { exchange } = this.#effect;
      this.#carry(target, this.#from, reply, (arrived) => {
        this.#ours(() => {
          const answered = decodePacket(client.push(arrived));
          if (answered !== null) this.#end({ kind: "streamReply", exchange, packet: answered });
        });
      });
    });
  }

  /** One trip of one frame; it never arrives while the way is cut. */
  #carry(a: SimNode, b: SimNode, frame: Uint8Array, arrive: (frame: Uint8Array) => void): void {
    const { world, network } = this.#around;
    const [from, to] = [a.spec.index, b.spec.index];
    const at = network.stream(from, to, frame.length, world.now);
    if (at === null) return;
    const name = b === this.#from ? "streamReply" : "streamRequest";
    world.schedule(at, name, to, () => arrive(frame));
  }

  /** Nobody listens there, or no longer: the other host says so. */
  #reset(target: SimNode, refused: boolean): void {
    const { world, network } = this.#around;
    const [a, b] = [this.#from.spec.index, target.spec.index];
    const back = network.stream(b, a, RESET_BYTES, world.now);
    const { exchange } = this.#effect;
    if (back !== null) {
      this.#finish("streamFailed", back, { kind: "streamFailed", exchange, refused });
    }
  }

  #finish(name: "streamFailed", at: number, input: SwimInput): void {
    this.#around.world.schedule(at, name, this.#from.spec.index, () => {
      this.#ours(() => this.#end(input));
    });
  }

  /** On the dialling side, as long as it lives and waits. */
  #ours(run: () => void): void {
    if (!this.#open) return;
    this.#from.inLife(this.#life, false, () => {
      if (this.#open) run();
    });
  }

  #end(input: SwimInput): void {
    this.#open = false;
    this.#from.stepSwim(input);
  }
}

function encodePacket(packet: SwimStreamPacket): Uint8Array {
  return encodeStreamMessage({ name: "membership", correlation: 1, value: packet });
}

function decodePacket(event: StreamEvent): SwimStreamPacket | null {
  if (event.kind !== "data") return null;
  const decoded = decodeStreamMessage(event.plain);
  return decoded.ok && decoded.value.name === "membership" ? decoded.value.value : null;
}
