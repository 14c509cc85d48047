/**
 * Datacenters that were cut off from the gates and have returned: requests that waited for them are delivered.
 *
 *   P6   60 s after a gate can reach all managers of a datacenter again its circuit is closed, and nothing waits in it
 */

import type { CallsView } from "../../src/core/cluster/gate/calls.ts";
import type { Network } from "../kernel/network.ts";
import type { World } from "../kernel/world.ts";
import type { Violations } from "../membership/checkers/violations.ts";
import type { SimLedger } from "./faults.ts";
import type { TiersPlan } from "./swarm.ts";

/** Limit of CB-7. */
const RETURNED_MS_MAX = 60_000;

interface ReturnsOptions {
  readonly world: World;
  readonly violations: Violations;
  readonly plan: TiersPlan;
  readonly network: Network;
  readonly managers: readonly SimLedger[];
  readonly gates: readonly SimLedger[];
}

export class Returns {
  readonly marks = new Set<string>();
  readonly #options: ReturnsOptions;
  /** Since when a gate and a datacenter are connected, by the processes on both sides. */
  readonly #since = new Map<string, { readonly lives: string; readonly at: number }>();
  /** By gate process and datacenter: what it has resent waited before. */
  readonly #waited = new Set<string>();

  constructor(options: ReturnsOptions) {
    this.#options = options;
  }

  /** Runs once a second. */
  sample(): void {
    for (const gate of this.#options.gates)
      for (const way of gate.process.state === "up" ? gate.ways() : []) {
        this.#mark(gate, way);
        this.#check(gate, way);
      }
  }

  #mark({ process }: SimLedger, { circuit, datacenter }: CallsView): void {
    const key = `${process.id} ${process.life} ${datacenter}`;
    if (circuit.state !== "CLOSED") this.marks.add(`circuit.${circuit.state}`);
    if (circuit.queued > 0) {
      this.marks.add("circuit.queued");
      this.#waited.add(key);
    } else if (circuit.state === "CLOSED" && this.#waited.delete(key))
      this.marks.add("circuit.replayed");
  }

  #check(gate: SimLedger, { circuit, datacenter }: CallsView): void {
    const { violations, world } = this.#options;
    const backMs = world.now - this.#reachedSince(gate, datacenter);
    const isDone = circuit.state === "CLOSED" && circuit.queued === 0;
    violations.check(isDone || backMs < RETURNED_MS_MAX, "P6", () => {
      const { queued, state } = circuit;
      return `${gate.process.id} has ${datacenter} back for ${backMs} ms: ${state}, ${queued} wait`;
    });
  }

  /** Now where it is cut off, or where nodes may be too slow to answer. */
  #reachedSince({ process }: SimLedger, datacenter: string): number {
    const { managers, network, plan, world } = this.#options;
    const own = managers.filter((one) => one.datacenter === datacenter);
    const key = `${process.id} ${datacenter}`;
    const isJudged = plan.scope === "away" || world.now >= plan.healAt;
    const isReached = own.every(({ process: { index, state } }) => {
      const isCut = network.isCut(index, process.index) || network.isCut(process.index, index);
      return state === "up" && !isCut;
    });
    const lives = [process, ...own.map((one) => one.process)].map(({ life }) => life).join(" ");
    const known = this.#since.get(key);
    if (isJudged && isReached && known?.lives === lives) return known.at;
    if (isJudged && isReached) this.#since.set(key, { lives, at: world.now });
    else this.#since.delete(key);
    return world.now;
  }
}
