/** A world with members in it: builds nodes, moves them between up, down and paused, and lets checkers watch. */

import type { Address, NodeId } from "../src/core/base/ids.ts";
import type { SwimConfig } from "../src/core/swim/config.ts";
import type { SwimEffect } from "../src/core/swim/face.ts";
import type { SwimRules } from "../src/core/swim/rules.ts";
import { SWIM_RULES } from "../src/core/swim/rules.ts";
import { NodeClock } from "./clock.ts";
import { SimDisk } from "./disk.ts";
import { Network } from "./network.ts";
import type { Surroundings } from "./node.ts";
import { memberRecord, SimNode } from "./node.ts";
import { World } from "./world.ts";

export interface ClusterOptions {
  readonly seed: number;
  readonly members: number;
  readonly swimConfig: SwimConfig;
  readonly swimRules?: SwimRules;
  /** Each node's clock runs within 1 ± this. */
  readonly clockDrift?: number;
  /** How many of the first members everyone is configured with. */
  readonly seedCount?: number;
}

export type Watcher = (node: SimNode, effect: SwimEffect) => void;

export class Cluster {
  readonly world: World;
  readonly network: Network;
  readonly nodes: SimNode[] = [];
  readonly #byAddress = new Map<Address, SimNode>();
  readonly #byId = new Map<NodeId, SimNode>();
  readonly #watchers: Watcher[] = [];

  constructor(options: ClusterOptions) {
    const { seed, members, swimConfig, clockDrift = 0, seedCount = 3 } = options;
    this.world = new World(seed);
    this.network = new Network(members, this.world.random.fork("network"));
    const around: Surroundings = {
      world: this.world,
      network: this.network,
      resolve: (to) => this.#byAddress.get(to),
      observe: (node, effect) => {
        for (const watch of this.#watchers) watch(node, effect);
      },
    };
    const clocks = this.world.random.fork("clocks");
    const seeds = Array.from({ length: Math.min(seedCount, members) }, (_, index) => {
      return memberRecord(index, "manager").address;
    });
    for (let index = 0; index < members; index++) {
      const rate = 1 + clockDrift * (2 * clocks.float() - 1);
      const node = new SimNode(
        {
          index,
          record: memberRecord(index, "manager"),
          swimConfig,
          swimRules: options.swimRules ?? SWIM_RULES,
          seeds,
        },
        around,
        new NodeClock(clocks.float() * 1_000_000, rate),
        new SimDisk(this.world.random.fork(`disk/${index}`)),
      );
      this.nodes.push(node);
      this.#byAddress.set(node.address, node);
      this.#byId.set(node.id, node);
    }
  }

  watch(watcher: Watcher): void {
    this.#watchers.push(watcher);
  }

  byId(id: NodeId): SimNode | undefined {
    return this.#byId.get(id);
  }

  /** All start within `spreadMs`. */
  startAll(spreadMs: number): void {
    const random = this.world.random.fork("start");
    for (const node of this.nodes) {
      this.world.schedule(
        this.world.now + random.float() * spreadMs,
        "start",
        node.spec.index,
        () => {
          if (node.state === "down") node.start();
        },
      );
    }
  }

  up(): SimNode[] {
    return this.nodes.filter((node) => node.state === "up");
  }

  /** True when every running member sees exactly the running members as live. */
  viewsAgree(): boolean {
    const up = this.up();
    for (const node of up) {
      const view = node.swim?.snapshot();
      if (view === undefined) return false;
      const live = view.members.filter(({ status }) => status === "alive");
      if (live.length !== up.length - 1) return false;
      if (!live.every(({ id }) => this.#byId.get(id)?.state === "up")) return false;
    }
    return true;
  }
}
