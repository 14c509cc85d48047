/**
 * One simulated process: the machine that production runs, driven by the world instead of sockets, files and timers. It
 * dies as processes do: memory lost, disk kept.
 */

import { assert, Defect } from "../../src/core/base/assert.ts";
import type { Millis } from "../../src/core/base/brand.ts";
import { recoverRecord } from "../../src/core/base/durable-record.ts";
import type { Address, NodeId } from "../../src/core/base/ids.ts";
import { address, nodeId } from "../../src/core/base/ids.ts";
import type { Random } from "../../src/core/base/random.ts";
import type { LinkInput } from "../../src/core/cluster/link/types.ts";
import type { RegionEffect, RegionResult } from "../../src/core/cluster/node/member-barrier.ts";
import { MemberProcess } from "../../src/core/cluster/node/member-process.ts";
import type {
  MemberEffect,
  MemberInput,
  MemberOptions,
  MemberRules,
  MemberWatch,
} from "../../src/core/cluster/node/member-types.ts";
import type { CachedPeer } from "../../src/core/membership/discovery/peer-cache.ts";
import { decodeVote, NO_VOTE } from "../../src/core/membership/election/durable-vote.ts";
import type { Election } from "../../src/core/membership/election/election.ts";
import type {
  DurableVote,
  ElectionEffect,
  ElectionInput,
} from "../../src/core/membership/election/types.ts";
import type { NodeRecord } from "../../src/core/membership/swim/messages.ts";
import type { Swim } from "../../src/core/membership/swim/swim.ts";
import type { SwimEffect, SwimInput } from "../../src/core/membership/swim/types.ts";
import type { AuditRequester } from "../../src/host/ports/audit.ts";
import type { Entropy } from "../../src/wire/seal.ts";
import { CAPABILITIES, PROTOCOL } from "../../src/wire/version.ts";
import type { NodeClock } from "../kernel/clock.ts";
import type { SimDisk } from "../kernel/disk.ts";
import { noCompressor } from "../kernel/keys.ts";
import type { Network } from "../kernel/network.ts";
import type { StreamHost, Streams } from "../kernel/streams.ts";
import type { World } from "../kernel/world.ts";
import type { Keys } from "./keys.ts";
import type { Names } from "./names.ts";

interface NodeSpec {
  readonly index: number;
  readonly options: Omit<MemberOptions, "ring" | "discovery" | "hello">;
  readonly seeds: readonly Address[];
  readonly names: readonly string[];
  readonly rules: MemberRules;
}

/** Endpoint that sends and receives datagrams. */
export interface Inhabitant {
  readonly address: Address;
  /** In the network. */
  readonly place: number;
  arrive(source: Address, bytes: Uint8Array): void;
}

/** Environment that the scenario gives to every node. */
export interface Surroundings {
  readonly world: World;
  readonly network: Network;
  readonly streams: Streams;
  readonly keys: Keys;
  readonly names: Names;
  transmit(from: Inhabitant, to: Address, bytes: Uint8Array): void;
  /** After every step of a machine: what went in and what came out. */
  onSwim(node: SimNode, input: SwimInput, effects: readonly SwimEffect[]): void;
  onElection(node: SimNode, input: ElectionInput, effects: readonly ElectionEffect[]): void;
  /** An effect is really carried out: whatever it rests on is durable by now. */
  onSwimDone(node: SimNode, effect: SwimEffect): void;
  onElectionDone(node: SimNode, effect: ElectionEffect): void;
}

/** Requester of all operations in a simulation. */
export const OPERATOR: AuditRequester = { kind: "operator", name: "sim" };

const HELLO = {
  cluster: "sim",
  environment: "sim",
  versionMajor: PROTOCOL.major,
  versionMinor: PROTOCOL.minor,
  // Compression is a port, and not part of the simulation.
  capabilities: CAPABILITIES.filter((one) => one !== "compression"),
  nodeVersion: "sim",
};

interface Stashed {
  readonly timer: boolean;
  readonly run: () => void;
}

export class SimNode implements Inhabitant, StreamHost {
  readonly spec: NodeSpec;
  readonly id: NodeId;
  readonly clock: NodeClock;
  readonly disk: SimDisk;
  readonly #around: Surroundings;
  readonly #random: Random;
  state: "down" | "up" | "paused" = "down";
  /** Counts process starts; events of an earlier process are void. */
  life = 0;
  starts = 0;
  /** World time of the last pause and resumption. */
  pausedAt = Number.NEGATIVE_INFINITY;
  resumedAt = Number.NEGATIVE_INFINITY;
  process: MemberProcess | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  #stash: Stashed[] = [];
  readonly #inputs: MemberInput[] = [];
  #stepping = false;
  /** The file of former peers: whole or not at all. */
  #formerPeers: readonly CachedPeer[] = [];
  /** Last result of `durableVote`, and the disk version it was read from. */
  #durable: { readonly version: number; readonly vote: DurableVote } | null = null;

  constructor(spec: NodeSpec, around: Surroundings, clock: NodeClock, disk: SimDisk) {
    this.spec = spec;
    this.id = spec.options.self.id;
    this.clock = clock;
    this.disk = disk;
    this.#around = around;
    this.#random = around.world.random.fork(`node/${spec.index}`);
  }

  get address(): Address {
    return this.spec.options.self.address;
  }

  get place(): number {
    return this.spec.index;
  }

  get index(): number {
    return this.spec.index;
  }

  /** A paused process accepts: its machine does that for it. */
  get listens(): boolean {
    return this.state !== "down";
  }

  /** Processes die here, not machines. */
  get powered(): boolean {
    return true;
  }

  get local(): Millis {
    return this.clock.local(this.#around.world.now);
  }

  get swim(): Swim | null {
    return this.process?.swim ?? null;
  }

  get election(): Election | null {
    return this.process?.election ?? null;
  }

  start(): void {
    assert(this.state === "down", "a process starts once");
    this.state = "up";
    this.life++;
    this.starts++;
    this.resumedAt = Number.NEGATIVE_INFINITY;
    const { world, keys } = this.#around;
    world.note(`${this.id} starts`);
    const random = this.#random.fork(`life/${this.life}`);
    const { options, seeds, names, rules } = this.spec;
    const discovery = { seeds, names, formerPeers: this.#formerPeers };
    const { id: node, address: own, role, datacenter } = options.self;
    const hello = { ...HELLO, node, address: own, role, datacenter };
    const entropy = entropyOf(random.fork("entropy"));
    this.process = new MemberProcess(
      { ...options, hello, discovery, ring: keys.ring },
      { random, entropy, compressor: noCompressor, rules, watch: this.#watch() },
    );
    this.push({ kind: "start" });
  }

  #watch(): MemberWatch {
    const around = this.#around;
    return {
      onSwim: (input, effects) => around.onSwim(this, input, effects),
      onElection: (input, effects) => around.onElection(this, input, effects),
      onSwimDone: (effect) => around.onSwimDone(this, effect),
      onElectionDone: (effect) => around.onElectionDone(this, effect),
    };
  }

  /** Kills the process at once; unsynced writes are lost or torn. */
  crash(): void {
    if (this.state === "down") return;
    this.#around.world.note(`${this.id} crashes`);
    this.state = "down";
    this.life++;
    this.process = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
    this.#stash = [];
    this.#inputs.length = 0;
    this.disk.crash();
    this.#around.streams.abandon(this.index, false);
  }

  wipe(): void {
    this.disk.wipe();
    this.#formerPeers = [];
  }

  pause(): void {
    if (this.state !== "up") return;
    this.#around.world.note(`${this.id} pauses`);
    this.state = "paused";
    this.pausedAt = this.#around.world.now;
  }

  /** Delivers everything that waited, timers before or after the packets, as the seed decides. */
  resume(): void {
    if (this.state !== "paused") return;
    this.#around.world.note(`${this.id} resumes`);
    this.state = "up";
    this.resumedAt = this.#around.world.now;
    const stash = this.#stash;
    this.#stash = [];
    const sign = this.#random.chance(0.5) ? 1 : -1;
    stash.sort((a, b) => sign * (Number(b.timer) - Number(a.timer)));
    const { life } = this;
    for (const { run } of stash) if (this.life === life) run();
  }

  /** Runs now, or when the pause is over; not at all after the process has died. */
  inLife(life: number, timer: boolean, run: () => void): void {
    if (this.life !== life || this.state === "down") return;
    if (this.state === "paused") this.#stash.push({ timer, run });
    else run();
  }

  /** Runs later in this incarnation, unless it has ended by then. */
  #after(delayMs: number, name: "synced" | "step", run: () => void): void {
    const { world } = this.#around;
    const { life } = this;
    world.schedule(world.now + delayMs, name, this.spec.index, () => this.inLife(life, false, run));
  }

  /** Queues inputs caused by an effect, as in production. */
  push(input: MemberInput): void {
    this.#inputs.push(input);
    if (this.#stepping) return;
    this.#stepping = true;
    const { world } = this.#around;
    for (let next = this.#inputs.shift(); next !== undefined; next = this.#inputs.shift()) {
      const { life, process } = this;
      if (process === null) continue;
      const effects = process.step(next, this.clock.local(world.now), this.clock.wall(world.now));
      for (const effect of effects) {
        // An effect that ends the process drops those that follow it.
        if (this.life !== life) break;
        this.#run(effect);
      }
    }
    this.#stepping = false;
    this.#armTimer();
  }

  #armTimer(): void {
    const deadline = this.process?.nextDeadline() ?? null;
    if (deadline === null) return;
    const { world } = this.#around;
    // The two clocks round differently: a hair late, so that a timer is never early.
    const at = Math.max(world.now, this.clock.world(deadline) + 1e-6);
    if (at >= this.#timerAt) return;
    this.#timerAt = at;
    const { life } = this;
    world.schedule(at, "tick", this.spec.index, () => {
      if (this.life !== life || this.#timerAt !== at) return;
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.inLife(life, true, () => this.push({ kind: "tick" }));
    });
  }

  #run(effect: MemberEffect): void {
    const around = this.#around;
    switch (effect.kind) {
      case "datagram":
        around.transmit(this, effect.to, effect.bytes);
        return;
      case "readRegion":
      case "writeRegion":
      case "syncRegion":
        this.#runRegion(effect);
        return;
      case "dial":
      case "write":
      case "prove":
      case "end":
      case "destroy":
        around.streams.run(this, effect);
        return;
      case "resolve":
        this.#resolve(effect.name);
        return;
      case "savePeers":
        this.#formerPeers = effect.peers;
        return;
      case "fatal":
        around.world.note(`${this.id} ends: ${effect.reason}`);
        this.crash();
        return;
      case "unusable":
        // The disk's faults leave one intact copy of every record: a process that lost both wrote them wrongly.
        throw new Defect(`${effect.region}: ${effect.detail}`);
      default:
        // Logs, events and audit entries are for people.
        return;
    }
  }

  #runRegion(effect: RegionEffect): void {
    const { region } = effect;
    const { disk } = this;
    const tell = (result: RegionResult): void => this.push({ kind: "region", region, result });
    if (effect.kind === "readRegion") tell({ kind: "contents", region: disk.read(region) });
    else if (effect.kind === "writeRegion") {
      const written = disk.write(region, effect.at, effect.bytes);
      tell(written ? { kind: "written" } : { kind: "failed", problem: "disk full" });
    } else {
      this.#after(disk.drawSyncMs(), "synced", () => {
        const synced = disk.sync(region);
        tell(synced ? { kind: "synced" } : { kind: "failed", problem: "sync failed" });
      });
    }
  }

  #resolve(name: string): void {
    const { names } = this.#around;
    this.#after(names.drawDelayMs(), "step", () => {
      const answer = names.resolve();
      if (answer === null) this.push({ kind: "resolveFailed", name, problem: "no answer" });
      else this.push({ kind: "resolved", name, ...answer });
    });
  }

  arrive(source: Address, bytes: Uint8Array): void {
    if (this.state === "up") this.#receive(source, bytes);
    else this.inLife(this.life, false, () => this.#receive(source, bytes));
  }

  #receive(source: Address, bytes: Uint8Array): void {
    this.#around.world.mix(bytes.length);
    this.push({ kind: "datagram", source, bytes });
  }

  /** From the network. */
  deliver(life: number, input: LinkInput): void {
    this.inLife(life, false, () => this.push(input));
  }

  /** The vote that a new process would read from disk. */
  durableVote(): DurableVote {
    const { version } = this.disk;
    if (this.#durable?.version === version) return this.#durable.vote;
    const vote = voteOf(recoverRecord(this.disk.read("vote"))?.payload ?? null);
    this.#durable = { version, vote };
    return vote;
  }
}

export function entropyOf(random: Random): Entropy {
  return (count) => Uint8Array.from({ length: count }, () => random.below(256));
}

/** Decodes a process's record; one that it cannot have written is a defect here. */
function voteOf(found: Uint8Array | null): DurableVote {
  const vote = found === null ? NO_VOTE : decodeVote(found);
  assert(typeof vote !== "string", "a voter reads what it wrote");
  return vote;
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
