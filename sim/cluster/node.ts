/**
 * One simulated process: the production machines, sealing and codec, driven by the world instead of
 * sockets and timers. It keeps the driver's contract (effects in order, nothing passes a write that
 * is not durable yet) and dies as processes do: memory gone, disk kept.
 */

import { assert } from "../../src/core/base/assert.ts";
import { recoverRecord } from "../../src/core/base/durable-record.ts";
import type { Address, Incarnation, NodeId } from "../../src/core/base/ids.ts";
import { address, incarnation, nodeId } from "../../src/core/base/ids.ts";
import type { Random } from "../../src/core/base/random.ts";
import type { ElectionConfig } from "../../src/core/cluster/election/config.ts";
import { decodeVote, encodeVote, NO_VOTE } from "../../src/core/cluster/election/durable-vote.ts";
import { Election } from "../../src/core/cluster/election/election.ts";
import { electorateDigest } from "../../src/core/cluster/election/electorate.ts";
import type { ElectionRules } from "../../src/core/cluster/election/rules.ts";
import type {
  DurableVote,
  ElectionEffect,
  ElectionInput,
} from "../../src/core/cluster/election/types.ts";
import type { SwimConfig } from "../../src/core/cluster/swim/config.ts";
import { decodeCeiling, encodeCeiling } from "../../src/core/cluster/swim/durable-ceiling.ts";
import type { NodeRecord, SwimDatagram } from "../../src/core/cluster/swim/messages.ts";
import type { SwimRules } from "../../src/core/cluster/swim/rules.ts";
import { Swim } from "../../src/core/cluster/swim/swim.ts";
import type { SwimEffect, SwimInput } from "../../src/core/cluster/swim/types.ts";
import { checksumAead } from "../../src/wire/checksum-aead.ts";
import type { Datagram } from "../../src/wire/datagram.ts";
import { decodeDatagram, encodeDatagram } from "../../src/wire/datagram.ts";
import { DatagramGuard } from "../../src/wire/guard.ts";
import { KeyRing } from "../../src/wire/key-ring.ts";
import type { Entropy } from "../../src/wire/seal.ts";
import { StreamGuard } from "../../src/wire/stream-guard.ts";
import { CAPABILITIES, PROTOCOL } from "../../src/wire/version.ts";
import type { NodeClock } from "../kernel/clock.ts";
import type { SimDisk } from "../kernel/disk.ts";
import type { Network } from "../kernel/network.ts";
import type { World } from "../kernel/world.ts";
import type { LaneHost, LaneRules } from "./lane.ts";
import { Lane } from "./lane.ts";
import { openSimStream } from "./streams.ts";

export interface Electorate {
  readonly voters: readonly NodeId[];
  readonly config: ElectionConfig;
  readonly rules: ElectionRules;
}

interface NodeSpec {
  readonly index: number;
  readonly record: NodeRecord;
  readonly swimConfig: SwimConfig;
  readonly swimRules: SwimRules;
  readonly seeds: readonly Address[];
  readonly electorate: Electorate | null;
  readonly laneRules: LaneRules;
}

/** What the scenario gives to every node. */
export interface Surroundings {
  readonly world: World;
  readonly network: Network;
  /** Who lives at an address. */
  resolve(to: Address): SimNode | undefined;
  byId(id: NodeId): SimNode | undefined;
  /** After every step of a machine: what went in and what came out. */
  onSwim(node: SimNode, input: SwimInput, effects: readonly SwimEffect[]): void;
  onElection(node: SimNode, input: ElectionInput, effects: readonly ElectionEffect[]): void;
  /** An effect is really carried out: whatever it rests on is durable by now. */
  onSwimDone(node: SimNode, effect: SwimEffect): void;
  onElectionDone(node: SimNode, effect: ElectionEffect): void;
}

const ring = KeyRing.create(checksumAead, ["simulated-secret-0123456789"], "sim");
assert(ring.ok, "the simulator's secret is strong enough");
const RING = ring.ring;
const GROUP = "managers";
const HELLO = {
  cluster: "sim",
  environment: "sim",
  versionMajor: PROTOCOL.major,
  versionMinor: PROTOCOL.minor,
  capabilities: CAPABILITIES,
  nodeVersion: "sim",
};

interface Stashed {
  readonly timer: boolean;
  readonly run: () => void;
}

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
  starts = 0;
  /** World time of the last pause and resumption. */
  pausedAt = Number.NEGATIVE_INFINITY;
  resumedAt = Number.NEGATIVE_INFINITY;
  swim: Swim | null = null;
  election: Election | null = null;
  #guard: DatagramGuard | null = null;
  #entropy: Entropy = (count) => new Uint8Array(count);
  #swimLane: Lane<SwimEffect> | null = null;
  #electionLane: Lane<ElectionEffect> | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  #stash: Stashed[] = [];
  #connections = 0;
  #healthScore = 0;
  /** What `durableVote` said last, and of which state of the disk. */
  #durable: { readonly version: number; readonly vote: DurableVote } | null = null;
  readonly #answers = new Map<
    number,
    (effect: Extract<SwimEffect, { kind: "answerStream" }>) => void
  >();

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

  get local(): number {
    return this.clock.local(this.#around.world.now);
  }

  start(): void {
    assert(this.state === "down", "a process starts once");
    this.state = "up";
    this.life++;
    this.starts++;
    this.resumedAt = Number.NEGATIVE_INFINITY;
    this.#around.world.note(`${this.id} starts`);
    const random = this.#random.fork(`life/${this.life}`);
    const entropy = random.fork("entropy");
    this.#entropy = (count) => Uint8Array.from({ length: count }, () => entropy.below(256));
    this.#guard = new DatagramGuard({ ring: RING, entropy: this.#entropy });
    this.#openLanes(random);
  }

  /** As the agent does: what the disk holds first, all of it, and only then anybody hears of us. */
  #openLanes(random: Random): void {
    const host = this.#laneHost();
    const { laneRules, electorate } = this.spec;
    const swim = new Lane<SwimEffect>(host, "swim", (it) => this.#carryOutSwim(it), laneRules);
    const vote = new Lane<ElectionEffect>(
      host,
      "vote",
      (effect) => this.#carryOutElection(effect),
      laneRules,
    );
    swim.open((ceiling) => {
      if (electorate === null) {
        this.#swimLane = swim;
        this.#startSwim(random.fork("swim"), ceiling);
        return;
      }
      vote.open((found) => {
        this.#swimLane = swim;
        this.#electionLane = vote;
        this.#startSwim(random.fork("swim"), ceiling);
        if (!this.#isDown()) this.#startElection(random.fork("election"), electorate, found);
      });
    });
  }

  #isDown(): boolean {
    return this.state === "down";
  }

  #startSwim(random: Random, payload: Uint8Array | null): void {
    const ceiling = ceilingOf(payload);
    const { swimConfig: config, swimRules, seeds, record: self } = this.spec;
    const boot = this.clock.wall(this.#around.world.now);
    this.swim = new Swim(
      { self, boot, incarnationCeiling: ceiling, config, seeds },
      random,
      swimRules,
    );
    this.stepSwim({ kind: "start" });
  }

  #startElection(random: Random, electorate: Electorate, found: Uint8Array | null): void {
    const durable = voteOf(found);
    const { voters, config, rules } = electorate;
    this.election = new Election(
      { self: this.id, voters, durable, config, priority: 0, mustSync: this.starts > 1 },
      random,
      rules,
    );
    this.stepElection({ kind: "start" });
  }

  /** The process is gone at once; unsynced writes are lost or torn. */
  crash(): void {
    if (this.state === "down") return;
    this.#around.world.note(`${this.id} crashes`);
    this.state = "down";
    this.life++;
    this.swim = null;
    this.election = null;
    this.#guard = null;
    this.#swimLane = null;
    this.#electionLane = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
    this.#stash = [];
    this.#healthScore = 0;
    this.#answers.clear();
    this.disk.crash();
  }

  pause(): void {
    if (this.state !== "up") return;
    this.#around.world.note(`${this.id} pauses`);
    this.state = "paused";
    this.pausedAt = this.#around.world.now;
  }

  /** What waited comes in at once, timers before or after the packets, as the seed has it. */
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

  /** Runs now, or when the pause is over; not at all after the process has gone. */
  inLife(life: number, timer: boolean, run: () => void): void {
    if (this.life !== life || this.state === "down") return;
    if (this.state === "paused") this.#stash.push({ timer, run });
    else run();
  }

  stepSwim(input: SwimInput): void {
    const { swim } = this;
    if (swim === null) return;
    const effects = swim.step(input, this.clock.local(this.#around.world.now));
    this.#around.onSwim(this, input, effects);
    for (const effect of effects) this.#swimLane?.push(effect);
    const score = swim.healthScore;
    if (score !== this.#healthScore) {
      this.#healthScore = score;
      this.stepElection({ kind: "health", score, alive: true });
    }
    this.#armTimer();
  }

  stepElection(input: ElectionInput): void {
    const { election } = this;
    if (election === null) return;
    const effects = election.step(input, this.clock.local(this.#around.world.now));
    this.#around.onElection(this, input, effects);
    for (const effect of effects) this.#electionLane?.push(effect);
    this.#armTimer();
  }

  #armTimer(): void {
    if (this.state === "down") return;
    const { world } = this.#around;
    const swimAt = this.swim?.nextDeadline() ?? Number.POSITIVE_INFINITY;
    const electionAt = this.election?.nextDeadline() ?? Number.POSITIVE_INFINITY;
    const deadline = Math.min(swimAt, electionAt);
    if (deadline === Number.POSITIVE_INFINITY) return;
    // The two clocks round differently: a hair late, so that a timer is never early.
    const at = Math.max(world.now, this.clock.world(deadline) + 1e-6);
    if (at >= this.#timerAt) return;
    this.#timerAt = at;
    const { life } = this;
    world.schedule(at, "tick", this.spec.index, () => {
      if (this.life !== life || this.#timerAt !== at) return;
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.inLife(life, true, () => this.#onTimer(life));
    });
  }

  #onTimer(life: number): void {
    const now = this.local;
    if ((this.swim?.nextDeadline() ?? Number.POSITIVE_INFINITY) <= now) {
      this.stepSwim({ kind: "tick" });
    }
    if (this.life !== life) return;
    if ((this.election?.nextDeadline() ?? Number.POSITIVE_INFINITY) <= now) {
      this.stepElection({ kind: "tick" });
    }
    this.#armTimer();
  }

  #laneHost(): LaneHost {
    const { life } = this;
    const { world } = this.#around;
    return {
      disk: this.disk,
      afterSync: (delayMs, run) => {
        world.schedule(world.now + delayMs, "synced", this.spec.index, () =>
          this.inLife(life, false, run),
        );
      },
      die: (why) => {
        world.note(`${this.id} ${why}`);
        this.crash();
      },
    };
  }

  #carryOutSwim(effect: SwimEffect): void {
    this.#around.onSwimDone(this, effect);
    switch (effect.kind) {
      case "send":
        this.#seal(effect.to, { protocol: "swim", packet: effect.packet });
        return;
      case "openStream":
        openSimStream(this, effect, this.#around);
        return;
      case "answerStream":
        this.#answers.get(effect.connection)?.(effect);
        this.#answers.delete(effect.connection);
        return;
      case "persistIncarnation":
        this.#swimLane?.persist(encodeCeiling(effect.ceiling));
        return;
      default:
        return;
    }
  }

  #carryOutElection(effect: ElectionEffect): void {
    const { world } = this.#around;
    this.#around.onElectionDone(this, effect);
    switch (effect.kind) {
      case "send": {
        const to = this.#around.byId(effect.to)?.address;
        const electorate = electorateDigest(this.spec.electorate?.voters ?? []);
        const packet = { from: this.id, group: GROUP, electorate, message: effect.message };
        if (to !== undefined) this.#seal(to, { protocol: "election", packet });
        return;
      }
      case "persistVote":
        this.#electionLane?.persist(encodeVote(effect.vote));
        return;
      case "requestSync": {
        const { life } = this;
        const leader = this.#around.byId(effect.leader);
        world.schedule(world.now + 20, "step", this.spec.index, () =>
          this.inLife(life, false, () => {
            const ok = leader?.election?.state === "leader" && this.#reaches(leader);
            this.stepElection({ kind: ok ? "syncDone" : "syncFailed" });
          }),
        );
        return;
      }
      default:
        return;
    }
  }

  #reaches(other: SimNode): boolean {
    const { network } = this.#around;
    const [a, b] = [this.spec.index, other.spec.index];
    return other.state === "up" && !network.isCut(a, b) && !network.isCut(b, a);
  }

  #seal(to: Address, datagram: Datagram): void {
    const local = this.clock.local(this.#around.world.now);
    const packets = this.#guard?.seal(to, encodeDatagram(datagram), local) ?? [];
    for (const packet of packets) this.#transmit(packet.to, packet.bytes);
  }

  #transmit(to: Address, bytes: Uint8Array): void {
    const { network } = this.#around;
    const target = this.#around.resolve(to);
    if (target === undefined) return;
    this.#carry(target, network.mangle(bytes));
    const old = network.record(this.spec.index, target.spec.index, bytes);
    if (old !== null) this.#carry(target, old);
  }

  #carry(target: SimNode, packet: Uint8Array): void {
    const { world, network } = this.#around;
    const into = target.spec.index;
    network.datagram(this.spec.index, into, packet.length, world.now, (at) =>
      world.schedule(at, "datagram", into, () => target.#arrive(this.address, packet)),
    );
  }

  #arrive(source: Address, bytes: Uint8Array): void {
    if (this.state === "up") this.#receive(source, bytes);
    else this.inLife(this.life, false, () => this.#receive(source, bytes));
  }

  #receive(source: Address, bytes: Uint8Array): void {
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
    } else if (datagram.protocol === "election") {
      const { from, electorate, message } = datagram.packet;
      this.stepElection({ kind: "message", from, electorate, message });
    }
  }

  /** Sends a packet that the machines did not make: stray pings, floods of names. */
  inject(to: Address, packet: SwimDatagram): void {
    this.#seal(to, { protocol: "swim", packet });
  }

  /** The guard of this node's end of one connection. */
  streamGuard(side: "client" | "server"): StreamGuard {
    const { id, address: own, role, datacenter } = this.spec.record;
    const hello = { ...HELLO, node: id, address: own, role, datacenter };
    return new StreamGuard({ ring: RING, entropy: this.#entropy, side, hello, claims: null });
  }

  /** The server's side of a stream; `answer` sends the one reply. */
  serve(
    packet: Extract<SwimInput, { kind: "streamRequest" }>["packet"],
    answer: (effect: Extract<SwimEffect, { kind: "answerStream" }>) => void,
  ): void {
    const connection = ++this.#connections;
    this.#answers.set(connection, answer);
    this.stepSwim({ kind: "streamRequest", connection, packet });
  }

  /** How fast this node's clock runs against the world's. */
  get rate(): number {
    return this.clock.local(1) - this.clock.local(0);
  }

  /** What the disk would tell a new process. */
  durableVote(): DurableVote {
    const { version } = this.disk;
    if (this.#durable?.version === version) return this.#durable.vote;
    const vote = voteOf(recoverRecord(this.disk.read("vote"))?.payload ?? null);
    this.#durable = { version, vote };
    return vote;
  }
}

/** What a process makes of its record; one that it cannot have written is a defect here. */
function voteOf(found: Uint8Array | null): DurableVote {
  const vote = found === null ? NO_VOTE : decodeVote(found);
  assert(typeof vote !== "string", "a voter reads what it wrote");
  return vote;
}

function ceilingOf(found: Uint8Array | null): Incarnation {
  const ceiling = found === null ? incarnation(0) : decodeCeiling(found);
  assert(typeof ceiling !== "string", "a member reads what it wrote");
  return ceiling;
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
