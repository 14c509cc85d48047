/** One membership machine on a bench: peers are scripted, time is moved by hand. */

import { millis } from "../../../base/brand.ts";
import type { Address, NodeId, Role } from "../../../base/ids.ts";
import { address, incarnation, nodeId } from "../../../base/ids.ts";
import { Random } from "../../../base/random.ts";
import type { SwimConfig } from "../config.ts";
import { SWIM_PROFILES } from "../config.ts";
import type {
  DatagramMessage,
  EmbeddedState,
  MemberState,
  NodeRecord,
  StreamMessage,
  SwimDatagram,
  Update,
} from "../messages.ts";
import { Swim } from "../swim.ts";
import type { MemberChange, SwimEffect, SwimInput } from "../types.ts";

export function record(name: string, role: Role = "manager", at = `${name}:7946`): NodeRecord {
  return {
    id: nodeId(name),
    address: address(at),
    role,
    datacenter: "dc1",
    versionMajor: 1,
    versionMinor: 0,
    meta: new Uint8Array(0),
  };
}

export const inc = incarnation;
export const id = nodeId;
export const at = (name: string): Address => address(`${name}:7946`);

export const alive = (name: string, number: number): Update => ({
  kind: "alive",
  node: record(name),
  incarnation: inc(number),
});
export const suspect = (name: string, number: number, from: string): Update => ({
  kind: "suspect",
  id: id(name),
  incarnation: inc(number),
  from: id(from),
});
export const dead = (name: string, number: number, from: string): Update => ({
  kind: "dead",
  id: id(name),
  incarnation: inc(number),
  from: id(from),
});
export const left = (name: string, number: number, from = name): Update => ({
  kind: "left",
  id: id(name),
  incarnation: inc(number),
  from: id(from),
});

interface BenchOptions {
  readonly config?: Partial<SwimConfig>;
  readonly role?: Role;
  readonly seeds?: readonly Address[];
  readonly ceiling?: number;
  readonly seed?: number;
}

type Send = Extract<SwimEffect, { kind: "send" }>;

export class Bench {
  readonly swim: Swim;
  now = 1_000;
  effects: SwimEffect[] = [];

  constructor(options: BenchOptions = {}) {
    this.swim = new Swim(
      {
        self: record("me", options.role),
        boot: 7,
        incarnationCeiling: inc(options.ceiling ?? 0),
        config: { ...SWIM_PROFILES.lan, ...options.config },
        seeds: options.seeds ?? [],
      },
      new Random(options.seed ?? 1),
    );
    this.step({ kind: "start" });
  }

  /** Effects of one step; all are kept until `clear`. */
  step(input: SwimInput): readonly SwimEffect[] {
    const effects = this.swim.step(input, millis(this.now));
    this.effects.push(...effects);
    return effects;
  }

  clear(): this {
    this.effects = [];
    return this;
  }

  /** Lets time pass; `answer` may react to what is sent, as peers would. */
  advance(ms: number, answer: (sent: Send) => void = () => {}): this {
    const until = this.now + ms;
    for (;;) {
      const deadline = this.swim.nextDeadline();
      if (deadline === null || deadline > until) break;
      this.now = Math.max(this.now, deadline);
      for (const effect of this.step({ kind: "tick" })) if (effect.kind === "send") answer(effect);
    }
    this.now = until;
    return this;
  }

  receive(
    from: string,
    message: DatagramMessage = { kind: "gossip" },
    updates: readonly Update[] = [],
    state: EmbeddedState | null = null,
  ): readonly SwimEffect[] {
    const packet: SwimDatagram = {
      from: id(from),
      fromAddress: at(from),
      incarnation: inc(1),
      message,
      coordinate: null,
      state,
      updates,
    };
    return this.step({ kind: "datagram", source: at(from), packet });
  }

  streamPacket(
    from: string,
    message: StreamMessage,
  ): Extract<SwimInput, { kind: "streamRequest" }>["packet"] {
    return {
      from: id(from),
      fromAddress: at(from),
      incarnation: inc(1),
      message,
      coordinate: null,
      state: null,
      updates: [],
    };
  }

  sync(from: string, members: readonly MemberState[], join = false): readonly SwimEffect[] {
    const packet = this.streamPacket(from, { kind: "sync", join, members });
    return this.step({ kind: "streamRequest", connection: 1, packet });
  }

  /** Members that are alive at 1, known and reached. */
  meet(...names: readonly string[]): this {
    for (const name of names) this.receive(name, { kind: "gossip" }, [alive(name, 1)]);
    return this;
  }

  /** Answers every ping that is sent to one of these. */
  answering(...names: readonly string[]): (sent: Send) => void {
    return ({ to, packet }) => {
      const { message } = packet;
      const name = names.find((candidate) => at(candidate) === to);
      if (name === undefined || message.kind !== "ping" || message.target !== id(name)) return;
      const { sequence, target } = message;
      this.now += 1;
      this.receive(name, { kind: "ack", sequence, target, relayed: false, rttMs: 0 });
    };
  }

  sent<Kind extends DatagramMessage["kind"]>(
    kind: Kind,
  ): {
    readonly to: Address;
    readonly packet: SwimDatagram;
    readonly message: Extract<DatagramMessage, { kind: Kind }>;
  }[] {
    return this.effects.flatMap((effect) => {
      if (effect.kind !== "send" || effect.packet.message.kind !== kind) return [];
      const message = effect.packet.message as Extract<DatagramMessage, { kind: Kind }>;
      return [{ to: effect.to, packet: effect.packet, message }];
    });
  }

  changes(kind?: MemberChange["kind"]): MemberChange[] {
    return this.effects.flatMap((effect) => {
      if (effect.kind !== "memberChanged") return [];
      return kind === undefined || effect.change.kind === kind ? [effect.change] : [];
    });
  }

  /** All updates sent about a member since `clear`. */
  sentAbout(name: string): Update[] {
    return this.effects.flatMap((effect) => {
      if (effect.kind !== "send") return [];
      return effect.packet.updates.filter((update) => {
        if (update.kind === "user") return false;
        const about =
          update.kind === "join" || update.kind === "alive" ? update.node.id : update.id;
        return about === id(name);
      });
    });
  }

  status(name: string): string | undefined {
    return this.swim.look(id(name) as NodeId)?.status;
  }
}
