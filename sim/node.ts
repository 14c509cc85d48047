/**
 * One simulated process: the production machines, sealing and codec, driven by the world instead of
 * sockets and timers. It keeps the driver's contract (effects in order, nothing passes a write that
 * is not durable yet) and dies as processes do: memory gone, disk kept.
 */

import { assert } from "../src/core/base/assert.ts";
import { ByteReader, ByteWriter } from "../src/core/base/bytes.ts";
import type { Address, NodeId } from "../src/core/base/ids.ts";
import { address, incarnation, nodeId } from "../src/core/base/ids.ts";
import type { Random } from "../src/core/base/random.ts";
import { encodeRecord, RECORD_COPY_BYTES, recoverRecord } from "../src/core/durable/record.ts";
import type { SwimConfig } from "../src/core/swim/config.ts";
import type { SwimEffect, SwimInput } from "../src/core/swim/face.ts";
import type { NodeRecord } from "../src/core/swim/messages.ts";
import type { SwimRules } from "../src/core/swim/rules.ts";
import { Swim } from "../src/core/swim/swim.ts";
import { checksumAead } from "../src/wire/checksum-aead.ts";
import type { Datagram } from "../src/wire/datagram.ts";
import { decodeDatagram, encodeDatagram } from "../src/wire/datagram.ts";
import { DatagramGuard } from "../src/wire/guard.ts";
import { KeyRing } from "../src/wire/key-ring.ts";
import { swimStreamPacket } from "../src/wire/messages/membership.ts";
import { decode, encode } from "../src/wire/schema.ts";
import type { NodeClock } from "./clock.ts";
import type { SimDisk } from "./disk.ts";
import type { Network } from "./network.ts";
import type { World } from "./world.ts";

export interface NodeSpec {
  readonly index: number;
  readonly record: NodeRecord;
  readonly swimConfig: SwimConfig;
  readonly swimRules: SwimRules;
  readonly seeds: readonly Address[];
}

/** What the scenario gives to every node. */
export interface Surroundings {
  readonly world: World;
  readonly network: Network;
  /** Who lives at an address. */
  resolve(to: Address): SimNode | undefined;
  /** Every effect of a machine passes here before it is carried out. */
  observe(node: SimNode, effect: SwimEffect): void;
}

const ring = KeyRing.create(checksumAead, ["simulated-secret-0123456789"], "sim");
assert(ring.ok, "the simulator's secret is strong enough");
const RING = ring.ring;

type Stash = { readonly urgent: boolean; readonly run: () => void };

export class SimNode {
  readonly spec: NodeSpec;
  readonly id: NodeId;
  readonly clock: NodeClock;
  readonly disk: SimDisk;
  readonly #around: Surroundings;
  readonly #random: Random;
  state: "down" | "up" | "paused" = "down";
  /** Counts process starts; events of an earlier process are void. */
  life = 0;
  swim: Swim | null = null;
  #guard: DatagramGuard | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  #stash: Stash[] = [];
  #writing = false;
  #waiting: SwimEffect[] = [];
  #generation = 0;
  #connections = 0;
  readonly #answers = new Map<number, (packet: Uint8Array) => void>();

  constructor(spec: NodeSpec, around: Surroundings, clock: NodeClock, disk: SimDisk) {
    this.spec = spec;
    this.id = spec.record.id;
    this.clock = clock;
    this.disk = disk;
    this.#around = around;
    this.#random = around.world.random.fork(`node/${spec.index}`);
  }

  get address(): Address {
    return this.spec.record.address;
  }

  start(): void {
    assert(this.state === "down", "a process starts once");
    const { world } = this.#around;
    this.state = "up";
    this.life++;
    const random = this.#random.fork(`life/${this.life}`);
    const entropy = random.fork("entropy");
    this.#guard = new DatagramGuard({
      aead: checksumAead,
      ring: RING,
      entropy: (count) => Uint8Array.from({ length: count }, () => entropy.below(256)),
    });
    const record = recoverRecord(this.disk.read("swim"));
    this.#generation = record?.generation ?? 0;
    const ceiling = record === null ? 0 : new ByteReader(record.payload).varint();
    const { swimConfig, swimRules, seeds } = this.spec;
    this.swim = new Swim(
      {
        self: this.spec.record,
        boot: this.clock.wall(world.now),
        incarnationCeiling: incarnation(ceiling),
        config: swimConfig,
        seeds,
      },
      random.fork("swim"),
      swimRules,
    );
    world.note(`${this.id} starts, ceiling ${ceiling}`);
    this.stepSwim({ kind: "start" });
  }

  /** The process is gone at once; unsynced writes are lost or torn. */
  crash(): void {
    if (this.state === "down") return;
    this.#around.world.note(`${this.id} crashes`);
    this.state = "down";
    this.life++;
    this.swim = null;
    this.#guard = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
    this.#stash = [];
    this.#writing = false;
    this.#waiting = [];
    this.#answers.clear();
    this.disk.crash();
  }

  pause(): void {
    if (this.state !== "up") return;
    this.#around.world.note(`${this.id} pauses`);
    this.state = "paused";
  }

  /** What waited comes in at once, timers before or after the packets, as the seed has it. */
  resume(): void {
    if (this.state !== "paused") return;
    this.#around.world.note(`${this.id} resumes`);
    this.state = "up";
    const stash = this.#stash;
    this.#stash = [];
    if (this.#random.chance(0.5)) stash.sort((a, b) => Number(b.urgent) - Number(a.urgent));
    for (const { run } of stash) if (this.state === "up") run();
  }

  /** Runs now, or when the pause is over; not at all after the process has gone. */
  #inLife(life: number, timer: boolean, run: () => void): void {
    if (this.life !== life || this.state === "down") return;
    if (this.state === "paused") this.#stash.push({ urgent: timer, run });
    else run();
  }

  stepSwim(input: SwimInput): void {
    const { swim } = this;
    if (swim === null) return;
    const effects = swim.step(input, this.clock.local(this.#around.world.now));
    this.#runEffects(effects);
    this.#armTimer();
  }

  #armTimer(): void {
    const { world } = this.#around;
    const deadline = this.swim?.nextDeadline() ?? null;
    if (deadline === null) return;
    const at = Math.max(world.now, this.clock.world(deadline));
    if (at >= this.#timerAt) return;
    this.#timerAt = at;
    const { life } = this;
    world.schedule(at, "tick", this.spec.index, () => {
      if (this.life !== life || this.#timerAt !== at) return;
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.#inLife(life, true, () => this.#onTimer());
    });
  }

  #onTimer(): void {
    const deadline = this.swim?.nextDeadline() ?? null;
    const local = this.clock.local(this.#around.world.now);
    // The two clocks round differently: a hair early is on time.
    if (deadline !== null && deadline <= local + 1e-6) this.stepSwim({ kind: "tick" });
    this.#armTimer();
  }

  #runEffects(effects: readonly SwimEffect[]): void {
    for (const effect of effects) {
      this.#around.observe(this, effect);
      if (this.state === "down") return;
      if (this.#writing) this.#waiting.push(effect);
      else this.#carryOut(effect);
    }
  }

  #carryOut(effect: SwimEffect): void {
    switch (effect.kind) {
      case "send":
        return void this.#seal(effect.to, { protocol: "swim", packet: effect.packet });
      case "openStream":
        return void this.#openStream(effect);
      case "answerStream": {
        const answer = this.#answers.get(effect.connection);
        this.#answers.delete(effect.connection);
        answer?.(encode(swimStreamPacket, effect.packet));
        return;
      }
      case "persistIncarnation": {
        const payload = new ByteWriter(16);
        payload.varint(effect.ceiling);
        this.#persist("swim", payload.take());
        return;
      }
      default:
        return;
    }
  }

  /** Two copies, each synced before the next step; then what waited may leave. */
  #persist(region: string, payload: Uint8Array): void {
    this.#writing = true;
    this.#generation++;
    const bytes = encodeRecord({ generation: this.#generation, payload });
    this.#writeCopy(region, 0, bytes, () =>
      this.#writeCopy(region, RECORD_COPY_BYTES, bytes, () => {
        this.#writing = false;
        const waiting = this.#waiting;
        this.#waiting = [];
        for (const effect of waiting) {
          if (this.#writing) this.#waiting.push(effect);
          else this.#carryOut(effect);
        }
      }),
    );
  }

  #writeCopy(region: string, at: number, bytes: Uint8Array, done: () => void): void {
    const { world } = this.#around;
    if (!this.disk.write(region, at, bytes)) {
      world.note(`${this.id} disk full`);
      this.crash();
      return;
    }
    const { life } = this;
    world.schedule(world.now + this.disk.drawSyncMs(), "synced", this.spec.index, () =>
      this.#inLife(life, false, () => {
        if (this.disk.sync(region)) return done();
        world.note(`${this.id} sync failed`);
        this.crash();
      }),
    );
  }

  #seal(to: Address, datagram: Datagram): void {
    const local = this.clock.local(this.#around.world.now);
    const packets = this.#guard?.seal(to, encodeDatagram(datagram), local) ?? [];
    for (const packet of packets) this.#transmit(packet.to, packet.bytes);
  }

  #transmit(to: Address, bytes: Uint8Array): void {
    const { world, network } = this.#around;
    const target = this.#around.resolve(to);
    if (target === undefined) return;
    const { index } = this.spec;
    const deliver = (packet: Uint8Array) => (at: number) => {
      world.schedule(at, "datagram", target.spec.index, () =>
        target.#receive(this.address, packet),
      );
    };
    const sent = network.mangle(bytes);
    network.datagram(index, target.spec.index, sent.length, world.now, deliver(sent));
    const old = network.record(index, target.spec.index, bytes);
    if (old === null) return;
    network.datagram(index, target.spec.index, old.length, world.now, deliver(old));
  }

  #receive(source: Address, bytes: Uint8Array): void {
    this.#inLife(this.life, false, () => {
      const { world } = this.#around;
      world.mix(bytes.length);
      const opened = this.#guard?.open(source, bytes, this.clock.local(world.now));
      if (opened === undefined) return;
      for (const packet of opened.send) this.#transmit(packet.to, packet.bytes);
      if (opened.plain === null) return;
      const decoded = decodeDatagram(opened.plain);
      if (!decoded.ok) return;
      const datagram = decoded.value;
      if (datagram.protocol === "swim") {
        this.stepSwim({ kind: "datagram", source, packet: datagram.packet });
      }
    });
  }

  #openStream(effect: Extract<SwimEffect, { kind: "openStream" }>): void {
    const { world, network } = this.#around;
    const { exchange, timeoutMs, to } = effect;
    const { life } = this;
    const request = encode(swimStreamPacket, effect.packet);
    let open = true;
    const finish = (name: "streamReply" | "streamFailed", at: number, input: SwimInput): void => {
      world.schedule(at, name, this.spec.index, () =>
        this.#inLife(life, false, () => {
          if (!open) return;
          open = false;
          this.stepSwim(input);
        }),
      );
    };
    finish("streamFailed", world.now + timeoutMs / this.#rate(), {
      kind: "streamFailed",
      exchange,
    });
    const target = this.#around.resolve(to);
    const arrival =
      target === undefined
        ? null
        : network.stream(this.spec.index, target.spec.index, request.length, world.now);
    if (target === undefined || arrival === null) return;
    world.schedule(arrival, "streamRequest", target.spec.index, () => {
      if (target.state === "down") {
        const back = network.stream(target.spec.index, this.spec.index, 40, world.now);
        const input: SwimInput = { kind: "streamFailed", exchange, refused: true };
        if (back !== null) finish("streamFailed", back, input);
        return;
      }
      target.#inLife(target.life, false, () =>
        target.#onStream(request, (reply) => {
          const back = network.stream(target.spec.index, this.spec.index, reply.length, world.now);
          const decoded = decode(swimStreamPacket, reply);
          if (back === null || !decoded.ok) return;
          finish("streamReply", back, { kind: "streamReply", exchange, packet: decoded.value });
        }),
      );
    });
  }

  #rate(): number {
    const { now } = this.#around.world;
    return this.clock.local(now + 1) - this.clock.local(now);
  }

  #onStream(request: Uint8Array, answer: (reply: Uint8Array) => void): void {
    const decoded = decode(swimStreamPacket, request);
    if (!decoded.ok) return;
    const connection = ++this.#connections;
    this.#answers.set(connection, answer);
    this.stepSwim({ kind: "streamRequest", connection, packet: decoded.value });
  }
}

export function memberRecord(index: number, role: NodeRecord["role"]): NodeRecord {
  return {
    id: nodeId(`n${index}`),
    address: address(`10.0.${index >> 8}.${index & 0xff}:7946`),
    role,
    datacenter: "dc1",
    versionMajor: 1,
    versionMinor: 0,
    meta: new Uint8Array(0),
  };
}
