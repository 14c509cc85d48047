/**
 * A world with members in it: builds nodes, moves them between up, down and paused, and lets checkers
 * watch every effect.
 */

import type { Address, NodeId } from "../../src/core/base/ids.ts";
import {
  type Electorate,
  MEMBER_RULES,
  type MemberRules,
} from "../../src/core/cluster/node/member-types.ts";
import type { ElectionConfig } from "../../src/core/membership/election/config.ts";
import type { SwimConfig } from "../../src/core/membership/swim/config.ts";
import { NodeClock } from "../kernel/clock.ts";
import { SimDisk } from "../kernel/disk.ts";
import { Network } from "../kernel/network.ts";
import { Streams } from "../kernel/streams.ts";
import { World } from "../kernel/world.ts";
import { Insider } from "./insider.ts";
import { Keys } from "./keys.ts";
import { MEMBERS_NAME, Names } from "./names.ts";
import type { Inhabitant, Surroundings } from "./node.ts";
import { memberRecord, SimNode } from "./node.ts";

interface ClusterOptions {
  readonly seed: number;
  /** Members that only take part in membership. */
  readonly members: number;
  /** Members that elect a leader among them, besides. */
  readonly electing?: number;
  readonly swimConfig: SwimConfig;
  readonly electionConfig?: ElectionConfig;
  readonly rules?: MemberRules;
  /** Each node's clock runs within 1 ± this. */
  readonly clockDrift?: number;
  /** How many of the first members everyone is configured with. */
  readonly seedCount?: number;
  /** All nodes also ask a name server for the others. */
  readonly named?: boolean;
}

/** Observer of all events: checkers, counters, printers. */
type Watcher = Partial<
  Pick<Surroundings, "onSwim" | "onElection" | "onSwimDone" | "onElectionDone">
>;

export class Cluster {
  readonly world: World;
  readonly network: Network;
  readonly streams: Streams;
  readonly keys = new Keys();
  readonly names: Names;
  readonly insider: Insider;
  readonly nodes: SimNode[] = [];
  readonly voters: readonly NodeId[];
  readonly #byAddress = new Map<Address, SimNode>();
  readonly #byId = new Map<NodeId, SimNode>();
  /** Callbacks by event: most watchers observe only some. */
  readonly #hooks: { readonly [Hook in keyof Required<Watcher>]: Required<Watcher>[Hook][] } = {
    onSwim: [],
    onElection: [],
    onSwimDone: [],
    onElectionDone: [],
  };

  constructor(options: ClusterOptions) {
    const { seed, members, electing = 0, clockDrift = 0, seedCount = 3 } = options;
    const count = members + electing;
    this.world = new World(seed);
    this.network = new Network(count, this.world.random.fork("network"));
    const records = Array.from({ length: count }, (_, index) =>
      memberRecord(index, index < electing || electing === 0 ? "manager" : "worker"),
    );
    this.voters = records.slice(0, electing).map(({ id }) => id);
    const { electionConfig, rules = MEMBER_RULES, named = false } = options;
    const electorate: Electorate | null =
      electionConfig === undefined
        ? null
        : { voters: this.voters, config: electionConfig, priority: 0 };
    const seeds = records.slice(0, seedCount).map(({ address }) => address);
    const clocks = this.world.random.fork("clocks");
    const addresses = records.map(({ address }) => address);
    this.names = new Names(addresses, this.world.random.fork("names"));
    const random = this.world.random.fork("streams");
    this.streams = new Streams(this.world, this.network, random, this.#byAddress);
    const around = this.#surroundings();
    this.insider = new Insider(around, this.world.random.fork("insider"));
    records.forEach((self, index) => {
      const rate = 1 + clockDrift * (2 * clocks.float() - 1);
      const spec = {
        index,
        options: {
          self,
          swim: options.swimConfig,
          electorate: index < electing ? electorate : null,
        },
        seeds,
        names: named ? [MEMBERS_NAME] : [],
        rules,
      };
      const clock = new NodeClock(clocks.float() * 1_000_000, rate);
      const disk = new SimDisk(this.world.random.fork(`disk/${index}`));
      const node = new SimNode(spec, around, clock, disk);
      this.nodes.push(node);
      this.#byAddress.set(node.address, node);
      this.#byId.set(node.id, node);
    });
  }

  #surroundings(): Surroundings {
    const { onSwim, onElection, onSwimDone, onElectionDone } = this.#hooks;
    return {
      world: this.world,
      network: this.network,
      streams: this.streams,
      keys: this.keys,
      names: this.names,
      transmit: (from, to, bytes) => this.#transmit(from, to, bytes),
      onSwim: (node, input, effects) => {
        for (const hook of onSwim) hook(node, input, effects);
      },
      onElection: (node, input, effects) => {
        for (const hook of onElection) hook(node, input, effects);
      },
      onSwimDone: (node, effect) => {
        for (const hook of onSwimDone) hook(node, effect);
      },
      onElectionDone: (node, effect) => {
        for (const hook of onElectionDone) hook(node, effect);
      },
    };
  }

  /** One datagram on its way, and now and then a recorded one behind it. */
  #transmit(from: Inhabitant, to: Address, bytes: Uint8Array): void {
    const { network, insider } = this;
    const target = to === insider.address ? insider : this.#byAddress.get(to);
    if (target === undefined) return;
    this.#carry(from, target, network.mangle(bytes));
    const old = network.record(from.place, target.place, bytes);
    if (old !== null) this.#carry(from, target, old);
  }

  #carry(from: Inhabitant, target: Inhabitant, packet: Uint8Array): void {
    const { world, network } = this;
    const { place } = target;
    network.datagram(from.place, place, packet.length, world.now, (at) =>
      world.schedule(at, "datagram", place, () => target.arrive(from.address, packet)),
    );
  }

  watch(watcher: Watcher): void {
    const { onSwim, onElection, onSwimDone, onElectionDone } = watcher;
    if (onSwim !== undefined) this.#hooks.onSwim.push(onSwim.bind(watcher));
    if (onElection !== undefined) this.#hooks.onElection.push(onElection.bind(watcher));
    if (onSwimDone !== undefined) this.#hooks.onSwimDone.push(onSwimDone.bind(watcher));
    if (onElectionDone !== undefined) this.#hooks.onElectionDone.push(onElectionDone.bind(watcher));
  }

  byId(id: NodeId): SimNode | undefined {
    return this.#byId.get(id);
  }

  /** All start within `spreadMs`. */
  startAll(spreadMs: number): void {
    const random = this.world.random.fork(`start/${this.world.now}`);
    for (const node of this.nodes) {
      const at = this.world.now + random.float() * spreadMs;
      this.world.schedule(at, "start", node.spec.index, () => {
        if (node.state === "down") node.start();
      });
    }
  }

  up(): SimNode[] {
    return this.nodes.filter((node) => node.state === "up");
  }

  /** True when every running member sees exactly the running members as alive. */
  viewsAgree(): boolean {
    const up = this.up();
    return up.every((node) => {
      const view = node.swim?.snapshot();
      if (view === undefined) return false;
      // Names that no node bears (planted by floods) are not judged.
      const real = view.members.filter(({ id }) => this.#byId.has(id));
      const alive = real.filter(({ status }) => status === "alive");
      if (alive.length !== up.length - 1) return false;
      return alive.every(({ id }) => this.#byId.get(id)?.state === "up");
    });
  }

  /** Leaders that may act now. */
  acting(): SimNode[] {
    return this.nodes.filter((node) => node.state === "up" && node.election?.mayAct(node.local));
  }
}
