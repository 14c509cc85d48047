/** Carries out a plan's faults, and heals everything in the end. */

import { secretOf } from "../kernel/keys.ts";
import type { Network } from "../kernel/network.ts";
import { CALM_LINKS } from "../kernel/network.ts";
import { CALM_STREAMS, type Streams } from "../kernel/streams.ts";
import type { World } from "../kernel/world.ts";
import type { LedgerCheckers } from "./checkers.ts";
import type { LedgerClients } from "./clients.ts";
import type { LedgerProcess } from "./node.ts";
import type { LedgerFault, LedgerPlan } from "./swarm.ts";

interface FaultTargets {
  readonly world: World;
  readonly network: Network;
  readonly streams: Streams;
  readonly processes: readonly LedgerProcess[];
  readonly checkers: LedgerCheckers;
  readonly clients: LedgerClients;
  readonly plan: LedgerPlan;
}

/** A restarted machine starts its process after this, unless it is stopped. */
const SUPERVISE_MS = 3_000;
const RESTART_MS = 200;
/** A replacement is over by then, or has not happened. */
const REPLACING_MS = 60_000;
/** Wall clocks are set right this often, as machines do it. */
const CLOCK_SYNC_MS = 5_000;

export class LedgerFaults {
  readonly #targets: FaultTargets;
  readonly #damaged = new Set<LedgerProcess>();
  /** Processes that a fault holds down until a time. */
  readonly #downUntil = new Map<LedgerProcess, number>();
  #healed = false;
  /** The latest time that any wall clock has shown when it was set. */
  #latestWall = 0;
  #rotating = false;
  #generation = 0;

  constructor(targets: FaultTargets) {
    this.#targets = targets;
  }

  /** `keep`: the indices of the faults to use; null for all. */
  schedule(keep: ReadonlySet<number> | null): void {
    const { world, plan, network, streams } = this.#targets;
    plan.faults.forEach(({ at, fault }, index) => {
      if (keep !== null && !keep.has(index)) return;
      world.schedule(at, "fault", 0, () => this.#strike(fault));
    });
    world.schedule(1_000, "fault", 0, () => {
      network.faults = plan.links;
      streams.faults = plan.streams;
    });
    world.schedule(plan.healAt, "fault", 0, () => this.#heal());
    this.#supervise();
    this.#setClocks();
  }

  /** A dead process is started again, as a supervisor would. */
  #supervise(): void {
    const { world, processes } = this.#targets;
    for (const process of processes) {
      if (world.now >= (this.#downUntil.get(process) ?? 0)) process.start();
    }
    world.schedule(world.now + SUPERVISE_MS, "fault", 0, () => this.#supervise());
  }

  #setClocks(): void {
    const { world, processes, plan } = this.#targets;
    if (plan.wallDisciplined) {
      for (const { clock } of processes)
        clock.jumpWall(trueWall(world.now) - clock.wall(world.now));
    }
    world.schedule(world.now + CLOCK_SYNC_MS, "fault", 0, () => this.#setClocks());
  }

  #strike(fault: LedgerFault): void {
    const { world, network, processes } = this.#targets;
    world.note(`fault ${JSON.stringify(fault)}`);
    const process = "node" in fault ? processes[fault.node] : undefined;
    switch (fault.kind) {
      case "crash":
        if (process !== undefined) this.#crash(process, fault.power, fault.forMs);
        return;
      case "stop":
        if (process !== undefined) this.#stop(process, fault.forMs);
        return;
      case "pause":
        if (process !== undefined) this.#pause(process, fault.forMs);
        return;
      case "partition":
        this.#partition(fault.sides, fault.oneWay, fault.forMs);
        return;
      case "clog":
        network.clog(fault.from, fault.to, world.now + fault.forMs);
        return;
      case "slow":
        network.slow(fault.node, fault.delayMs);
        this.#later(fault.forMs, () => network.slow(fault.node, 0));
        return;
      case "diskFull": {
        if (process === undefined) return;
        process.disk.full = fault.space;
        this.#later(fault.forMs, () => {
          process.disk.full = "free";
        });
        return;
      }
      case "rot":
        if (process !== undefined) this.#rot(process);
        return;
      case "rotCheckpoint":
        if (process !== undefined && process.disk.rotCheckpoint() !== null) {
          this.#crash(process, fault.power, fault.forMs);
        }
        return;
      case "diskLost":
        if (process !== undefined) this.#loseDisk(process, fault.forMs);
        return;
      case "wallJump":
        this.#seeWalls();
        process?.clock.jumpWall(fault.ms);
        this.#seeWalls();
        return;
      case "leaderTrouble":
        this.#troubleLeader(fault);
        return;
      case "rotateKeys":
        this.#rotateKeys(fault.stepMs);
        return;
      case "misconfigured":
        if (process !== undefined) this.#misconfigure(process, fault.forMs);
        return;
      case "restartAll":
        processes.forEach((one, index) => {
          this.#crash(one, fault.power, 100 + (fault.spreadMs * index) / processes.length);
        });
    }
  }

  #seeWalls(): void {
    const { world, processes } = this.#targets;
    const shown = processes.map(({ clock }) => clock.wall(world.now));
    this.#latestWall = Math.max(this.#latestWall, ...shown);
  }

  #later(delayMs: number, run: () => void): void {
    const { world } = this.#targets;
    world.schedule(world.now + delayMs, "fault", 0, () => {
      if (!this.#healed) run();
    });
  }

  #crash(process: LedgerProcess, power: boolean, forMs: number): void {
    process.crash(power);
    this.#downUntil.set(process, this.#targets.world.now + forMs);
    this.#later(forMs, () => process.start());
  }

  #stop(process: LedgerProcess, forMs: number): void {
    const { life } = process;
    process.leave(() => {
      if (process.life !== life) return;
      if (!this.#healed) this.#crash(process, false, forMs);
      else {
        process.crash(false);
        process.start();
      }
    });
  }

  /** Add the new secret, seal with it, remove the old one; each step on one node after the other. */
  #rotateKeys(stepMs: number): void {
    if (this.#rotating) return;
    this.#rotating = true;
    const { processes, checkers } = this.#targets;
    const [old, next] = [secretOf(this.#generation), secretOf(++this.#generation)];
    const steps = [[old, next], [next, old], [next]];
    steps.forEach((secrets, step) => {
      processes.forEach((process, index) => {
        const at = stepMs * (step + index / processes.length);
        this.#later(at, () => process.useSecrets(secrets));
      });
    });
    this.#later(stepMs * steps.length, () => {
      this.#rotating = false;
      checkers.marks.add("link.keysRotated");
    });
  }

  /** Only for a node that has groups already: a first start with a wrong list would found others. */
  #misconfigure(process: LedgerProcess, forMs: number): void {
    if ((process.node?.groups.size ?? 0) === 0 || process.misconfigured) return;
    process.misconfigured = true;
    this.#crash(process, false, RESTART_MS);
    this.#later(RESTART_MS + forMs, () => {
      process.misconfigured = false;
      this.#crash(process, false, RESTART_MS);
    });
  }

  #pause(process: LedgerProcess, forMs: number): void {
    process.pause();
    this.#later(forMs, () => process.resume());
  }

  #partition(sides: readonly number[], oneWay: boolean, forMs: number): void {
    const { network } = this.#targets;
    const ways: (readonly [number, number])[] = [];
    sides.forEach((a, from) => {
      sides.forEach((b, to) => {
        if (a !== b && (!oneWay || a < b)) ways.push([from, to]);
      });
    });
    for (const [from, to] of ways) network.cut(from, to);
    this.#later(forMs, () => {
      for (const [from, to] of ways) network.mend(from, to);
    });
  }

  /** The atlas: a minority of any group is damaged at most, so that what was acked can be kept. */
  #rot(process: LedgerProcess): void {
    const { plan, checkers } = this.#targets;
    if (this.#damaged.size >= plan.damagedMax || this.#damaged.has(process)) return;
    if (this.#isReplacing()) return;
    const name = process.rot();
    if (name === null) return;
    this.#damaged.add(process);
    checkers.observer(process).rotten.add(name);
  }

  /** Under the same name, as an empty volume and a script that runs `join` would have it. (VSR-30) */
  #loseDisk(process: LedgerProcess, forMs: number): void {
    const { plan, checkers, processes } = this.#targets;
    if (this.#damaged.size >= plan.damagedMax || this.#damaged.has(process)) return;
    // Peers cannot distinguish a node's second disk from the first if they never met the first.
    const others = processes.filter((one) => one !== process);
    if (!others.every(({ node }) => node?.knows(process.id) === true)) return;
    if (this.#isReplacing()) return;
    this.#damaged.add(process);
    this.#crash(process, true, forMs);
    process.loseDisk();
    checkers.observer(process).lost();
  }

  /** Someone may have joined a group and not have its log yet: one damaged disk more would be too many. */
  #isReplacing(): boolean {
    const { world, processes, clients } = this.#targets;
    if (world.now - clients.replacedAt < REPLACING_MS) return true;
    return processes.some(({ node }) =>
      [...(node?.groups.values() ?? [])].some(({ replica }) => replica.state.learner),
    );
  }

  #troubleLeader(fault: Extract<LedgerFault, { kind: "leaderTrouble" }>): void {
    const { processes } = this.#targets;
    const leaders = processes.filter(({ node }) =>
      [...(node?.groups.values() ?? [])].some(({ replica }) => replica.state.acting),
    );
    const leader = leaders[fault.draw % Math.max(1, leaders.length)];
    if (leader === undefined) return;
    if (fault.what === "crash") this.#crash(leader, fault.draw % 2 === 0, fault.forMs);
    else if (fault.what === "pause") this.#pause(leader, fault.forMs);
    else {
      const sides = processes.map((process) => (process === leader ? 1 : 0));
      this.#partition(sides, false, fault.forMs);
      if (fault.what === "isolate") return;
      // A restarted backup runs for election at once, while others may still be bound to the leader.
      const others = processes.filter((process) => process !== leader);
      const other = others[fault.draw % others.length];
      if (other !== undefined) this.#crash(other, false, RESTART_MS);
    }
  }

  #heal(): void {
    const { world, network, streams, processes, plan } = this.#targets;
    world.note("healing");
    this.#healed = true;
    network.mendAll();
    network.faults = CALM_LINKS;
    streams.faults = CALM_STREAMS;
    this.#downUntil.clear();
    this.#seeWalls();
    for (const process of processes) {
      // A node waits until its clock has passed the times in its own log: clocks are set right, once for all.
      if (!plan.wallDisciplined) {
        process.clock.jumpWall(this.#latestWall - process.clock.wall(world.now));
      }
      process.disk.calm = true;
      process.disk.full = "free";
      process.resume();
      if (process.misconfigured) process.crash(false);
      process.misconfigured = false;
      process.start();
    }
  }
}

/** True wall time; see sim/kernel/clock.ts. */
function trueWall(worldMs: number): number {
  return 1_700_000_000_000 + worldMs;
}
