/**
 * Streams between simulated nodes, as production makes them: one connection per exchange, a greeting and
 * its answer, one request, one reply, each sealed, each a trip of its own. A cut way times out, a process
 * that is down refuses, one that goes down in between breaks the connection, a paused one answers when it
 * wakes.
 *
 *     dialling      greeting →                    ← welcome        request →          ← reply
 *     accepting                  judges the hello                            serves
 */

import type { ExchangeResult, MemberEffect } from "../../src/core/tiers/process/member-types.ts";
import { PROBE } from "../../src/wire/frame.ts";
import {
  decodeStreamMessage,
  encodeStreamMessage,
  type StreamEnvelope,
} from "../../src/wire/registry.ts";
import type { StreamEvent, StreamGuard } from "../../src/wire/stream-guard.ts";
import type { SimNode, Surroundings } from "./node.ts";

/** Bytes of a refusal on the way back. */
const RESET_BYTES = 40;
/** Pairs the one reply of a connection with its one request. */
const CORRELATION = 1;

type OpenExchange = Extract<MemberEffect, { readonly kind: "openExchange" }>;
type Probe = Extract<MemberEffect, { readonly kind: "probe" }>;

/** Does anybody answer there? One trip there and one back, or silence. */
export function probeSimStream(
  from: SimNode,
  { probe, address, timeoutMs }: Probe,
  around: Surroundings,
): void {
  const { world, network } = around;
  const { life } = from;
  let open = true;
  const end = (at: number, answered: boolean): void =>
    world.schedule(at, "streamReply", from.place, () =>
      from.inLife(life, false, () => {
        if (open) from.push({ kind: "probed", probe, answered });
        open = false;
      }),
    );
  end(world.now + timeoutMs / from.rate, false);
  const target = around.resolve(address);
  if (target === undefined) return;
  const there = network.stream(from.place, target.place, PROBE.length, world.now);
  if (there === null) return;
  world.schedule(there, "streamRequest", target.place, () => {
    const answers = target.state !== "down";
    const back = (): void => {
      const at = network.stream(target.place, from.place, PROBE.length, world.now);
      if (at !== null) end(at, answers);
    };
    if (answers) target.inLife(target.life, false, back);
    else back();
  });
}

export function openSimStream(from: SimNode, effect: OpenExchange, around: Surroundings): void {
  const stream = new SimStream(from, effect, around);
  stream.dial();
}

class SimStream {
  readonly #from: SimNode;
  readonly #effect: OpenExchange;
  readonly #around: Surroundings;
  /** Of the dialling process; its end ends the exchange. */
  readonly #life: number;
  #open = true;

  constructor(from: SimNode, effect: OpenExchange, around: Surroundings) {
    this.#from = from;
    this.#effect = effect;
    this.#around = around;
    this.#life = from.life;
  }

  dial(): void {
    const { world } = this.#around;
    const late = world.now + this.#effect.timeoutMs / this.#from.rate;
    this.#finish(late, { ok: false, refused: false, problem: "no reply in time" });
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
        const request = client.seal(this.#request());
        this.#carry(this.#from, target, request, (sealed) => {
          if (target.life !== life) this.#reset(target, false);
          else target.inLife(life, false, () => this.#serve(target, server, client, sealed));
        });
      });
    });
  }

  #serve(target: SimNode, server: StreamGuard, client: StreamGuard, sealed: Uint8Array): void {
    const request = decodeEvent(server.push(sealed));
    if (request === null) return;
    target.serve(request, (answer) => {
      const sealedReply = server.seal(encodeStreamMessage({ ...answer, correlation: CORRELATION }));
      this.#carry(target, this.#from, sealedReply, (arrived) => {
        this.#ours(() => {
          const reply = decodeEvent(client.push(arrived));
          if (reply !== null) this.#end({ ok: true, reply });
        });
      });
    });
  }

  /** One trip of one frame; it never arrives while the way is cut. */
  #carry(a: SimNode, b: SimNode, frame: Uint8Array, arrive: (frame: Uint8Array) => void): void {
    const { world, network } = this.#around;
    const [from, to] = [a.place, b.place];
    const at = network.stream(from, to, frame.length, world.now);
    if (at === null) return;
    const name = b === this.#from ? "streamReply" : "streamRequest";
    world.schedule(at, name, to, () => arrive(frame));
  }

  /** Nobody listens there, or no longer: the other host says so. */
  #reset(target: SimNode, refused: boolean): void {
    const { world, network } = this.#around;
    const [a, b] = [this.#from.place, target.place];
    const back = network.stream(b, a, RESET_BYTES, world.now);
    if (back !== null) this.#finish(back, { ok: false, refused, problem: "reset" });
  }

  #request(): Uint8Array {
    const { packet: value } = this.#effect;
    return encodeStreamMessage({ name: "membership", correlation: CORRELATION, value });
  }

  #finish(at: number, result: ExchangeResult): void {
    this.#around.world.schedule(at, "streamFailed", this.#from.place, () => {
      this.#ours(() => this.#end(result));
    });
  }

  /** On the dialling side, as long as it lives and waits. */
  #ours(run: () => void): void {
    if (!this.#open) return;
    this.#from.inLife(this.#life, false, () => {
      if (this.#open) run();
    });
  }

  #end(result: ExchangeResult): void {
    this.#open = false;
    const { exchange, to } = this.#effect;
    this.#from.push({ kind: "exchanged", exchange, to, result });
  }
}

function decodeEvent(event: StreamEvent): StreamEnvelope | null {
  if (event.kind !== "data") return null;
  const decoded = decodeStreamMessage(event.plain);
  return decoded.ok ? decoded.value : null;
}
