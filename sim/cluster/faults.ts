/** Carries out a plan's faults, and heals everything in the end. */

import type { CallsView } from "../../src/core/cluster/gate/calls.ts";
import { decodeRunEntry } from "../../src/core/cluster/manager/run-entries.ts";
import { RUN_PREFIX } from "../../src/core/cluster/manager/run-state.ts";
import type { ProcessEffect } from "../../src/core/cluster/node/types.ts";
import type { PressureView } from "../../src/core/cluster/overload/request-guard.ts";
import type { Cpu } from "../kernel/cpu.ts";
import { CALM_LINKS, type Network } from "../kernel/network.ts";
import { CALM_STREAMS, type Streams } from "../kernel/streams.ts";
import type { World } from "../kernel/world.ts";
import type { LedgerProcess } from "../ledger/node.ts";
import type { BlobDisk } from "./blob-disk.ts";
import type { SimClient } from "./client.ts";
import type { TiersFault, TiersPlan } from "./swarm.ts";
import type { SimWorker } from "./worker.ts";
import { datacenterName } from "./world.ts";

/** A manager or a gate. */
export interface SimLedger {
  readonly process: LedgerProcess;
  readonly blobs: BlobDisk;
  /** Datacenter of a manager; empty for a gate. */
  readonly datacenter: string;
  /** Jobs with work left on it. */
  readonly open: () => readonly string[];
  /** Links of a gate to each datacenter. */
  readonly ways: () => readonly CallsView[];
  /** Own overload state; null while it does not run. */
  readonly pressure: () => PressureView | null;
}

interface FaultTargets {
  readonly world: World;
  readonly network: Network;
  readonly streams: Streams;
  readonly managers: readonly SimLedger[];
  readonly gates: readonly SimLedger[];
  readonly workers: readonly SimWorker[];
  readonly clients: readonly SimClient[];
  readonly plan: TiersPlan;
  /** CPU of each node, where inputs cost time. */
  readonly cpus: readonly Cpu[];
}

/** Interface of all processes for faults. */
interface Node {
  start(): void;
  crash(power: boolean): void;
  pause(): void;
  resume(): void;
  /** Stops it as SIGTERM does; `then` runs when it would exit. */
  stop(then: () => void): void;
  jumpWall(ms: number): void;
  slowDisk(slowMs: number): void;
}

type LeaderTrouble = Extract<TiersFault, { kind: "leaderTrouble" }>;
type Ambush = Extract<TiersFault, { kind: "ambush" }>;

/** Interval at which crashed processes are restarted, unless a fault keeps them down. */
const SUPERVISE_MS = 2_000;
/** A draining worker is killed after this. */
const DRAIN_MS = 20_000;

export class TiersFaults {
  readonly #targets: FaultTargets;
  readonly #nodes: readonly Node[];
  /** Processes that a fault keeps down until a time. */
  readonly #downUntil = new Map<Node, number>();
  /** Faults waiting for their trigger. */
  #ambushes: Ambush[] = [];
  #healed = false;
  /** The latest time that any wall clock of a manager has shown when it was set. */
  #latestWall = 0;

  constructor(targets: FaultTargets) {
    this.#targets = targets;
    const { clients, gates, managers, workers } = targets;
    this.#nodes = [
      ...managers.map((one) => ledgerNode(one)),
      ...workers.map((one) => this.#workerNode(one)),
      ...clients.map(clientNode),
      ...gates.map((one) => ledgerNode(one)),
    ];
  }

  #workerNode(worker: SimWorker): Node {
    return {
      start: () => worker.start(),
      crash: (power) => worker.crash(power),
      pause: () => worker.lifetime.pause(),
      resume: () => worker.lifetime.resume(),
      stop: (then) => {
        const { life } = worker;
        let ended = false;
        const end = (): void => {
          if (!ended && worker.life === life) then();
          ended = true;
        };
        worker.drain(end);
        this.#later(DRAIN_MS, end);
      },
      jumpWall: (ms) => worker.lifetime.clock.jumpWall(ms),
      slowDisk: (slowMs) => {
        worker.blobs.slowMs = slowMs;
      },
    };
  }

  /** `keep`: the indices of the faults to use; null for all. */
  schedule(keep: ReadonlySet<number> | null): void {
    const { world, plan, network, streams } = this.#targets;
    plan.faults.forEach(({ at, fault }, index) => {
      if (keep !== null && !keep.has(index)) return;
      world.schedule(at, "fault", 0, () => this.#strike(fault));
    });
    network.faults = plan.links;
    streams.faults = plan.streams;
    world.schedule(plan.healAt, "fault", 0, () => this.#heal());
    this.#supervise();
  }

  /** Restarts dead processes, as a supervisor would. */
  #supervise(): void {
    const { world } = this.#targets;
    for (const node of this.#nodes) if (world.now >= (this.#downUntil.get(node) ?? 0)) node.start();
    world.schedule(world.now + SUPERVISE_MS, "fault", 0, () => this.#supervise());
  }

  #strike(fault: TiersFault): void {
    const { network, streams, world } = this.#targets;
    world.note(`fault ${JSON.stringify(fault)}`);
    const node = "at" in fault ? this.#nodes[fault.at] : undefined;
    switch (fault.kind) {
      case "crash":
        if (node !== undefined) this.#crash(node, fault.power, fault.forMs);
        return;
      case "stop":
        if (node !== undefined) this.#stop(node, fault.forMs);
        return;
      case "pause":
        if (node !== undefined) this.#pause(node, fault.forMs);
        return;
      case "partition":
        this.#partition(fault.sides, fault.oneWay, fault.forMs);
        return;
      case "isolate":
        this.#isolate(fault.at, this.#others(fault.at), fault);
        return;
      case "reset":
        for (const other of this.#others(fault.at)) streams.breakBetween(fault.at, other);
        return;
      case "slow":
        network.slow(fault.at, fault.delayMs);
        this.#later(fault.forMs, () => network.slow(fault.at, 0));
        return;
      case "slowDisk":
        node?.slowDisk(fault.slowMs);
        this.#later(fault.forMs, () => node?.slowDisk(0));
        return;
      case "fullDisk":
      case "killCore":
      case "wipeWorker":
        this.#strikeOne(fault, node);
        return;
      case "wallJump":
        this.#seeWalls();
        node?.jumpWall(fault.ms);
        this.#seeWalls();
        return;
      case "leaderTrouble":
        this.#troubleLeader(fault);
        return;
      case "ambush":
        this.#ambushes.push(fault);
        return;
      case "slowCpu":
        this.#slowCpu(fault.at, fault.costMs, fault.forMs);
        return;
      case "flood":
        this.#flood(fault);
        return;
      case "frames":
        this.#frames(fault);
        return;
      case "freeze":
        this.#freeze(fault);
        return;
      case "loseDatacenter":
        this.#loseDatacenter(fault);
        return;
      case "cutDatacenter":
        this.#cutFromGates(fault.place, fault.forMs);
        return;
      case "restartAll":
        this.#nodes.forEach((one, index) => {
          this.#crash(one, fault.power, 100 + (fault.spreadMs * index) / this.#nodes.length);
        });
    }
  }

  /** One at a time, and only where another manager has space: otherwise results would be lost. */
  #fillDisk({ at, forMs }: Extract<TiersFault, { kind: "fullDisk" }>): void {
    const { managers } = this.#targets;
    const manager = managers[at];
    if (manager === undefined || managers.some(({ blobs }) => blobs.isFull)) return;
    if (managers.filter(({ datacenter }) => datacenter === manager.datacenter).length < 3) return;
    manager.blobs.isFull = true;
    this.#later(forMs, () => {
      manager.blobs.isFull = false;
    });
  }

  #strikeOne(
    fault: Extract<TiersFault, { kind: "fullDisk" | "killCore" | "wipeWorker" }>,
    node: Node | undefined,
  ): void {
    const { managers, workers } = this.#targets;
    const worker = workers[fault.at - managers.length];
    if (fault.kind === "fullDisk") this.#fillDisk(fault);
    else if (fault.kind === "killCore") worker?.killCore(fault.draw);
    else if (node !== undefined) {
      this.#crash(node, false, fault.forMs);
      worker?.wipe();
    }
  }

  #freeze({ forMs, workers: frozen }: Extract<TiersFault, { kind: "freeze" }>): void {
    const { managers, workers, world } = this.#targets;
    for (const at of frozen) {
      const worker = workers[at - managers.length];
      if (worker !== undefined && worker.frozen.until <= world.now)
        worker.frozen = { from: world.now, until: world.now + forMs };
    }
  }

  #slowCpu(at: number, costMs: number, forMs: number): void {
    const { cpus, plan } = this.#targets;
    const cpu = cpus[at];
    if (cpu === undefined) return;
    cpu.costMs = costMs;
    this.#later(forMs, () => {
      cpu.costMs = plan.costMs ?? 0;
    });
  }

  #flood({ at, forMs, perSecond, submissions }: Extract<TiersFault, { kind: "flood" }>): void {
    const { clients, managers, workers, world } = this.#targets;
    const client = clients[at - managers.length - workers.length];
    client?.flood.begin({ perSecond, submissions, until: world.now + forMs });
  }

  #frames({ at, everyMs, forMs }: Extract<TiersFault, { kind: "frames" }>): void {
    const worker = this.#targets.workers[at - this.#targets.managers.length];
    if (worker === undefined) return;
    worker.frameEveryMs = everyMs;
    this.#later(forMs, () => {
      worker.frameEveryMs = Number.POSITIVE_INFINITY;
    });
  }

  /** Managers and workers of a datacenter. */
  #datacenter(place: number): readonly number[] {
    const { managers, workers } = this.#targets;
    const name = datacenterName(place);
    return [
      ...managers.flatMap(({ datacenter, process }) =>
        datacenter === name ? [process.index] : [],
      ),
      ...workers.flatMap(({ index, spec }) => (spec.datacenter === name ? [index] : [])),
    ];
  }

  #loseDatacenter({ forMs, place, power }: Extract<TiersFault, { kind: "loseDatacenter" }>): void {
    for (const at of this.#datacenter(place)) {
      const lost = this.#nodes[at];
      if (lost !== undefined) this.#crash(lost, power, forMs);
    }
  }

  #cutFromGates(place: number, forMs: number): void {
    const gates = this.#targets.gates.map(({ process }) => process.index);
    const ways = this.#datacenter(place).flatMap((at) =>
      gates.flatMap((gate): (readonly [number, number])[] => [
        [at, gate],
        [gate, at],
      ]),
    );
    this.#cut(ways, forMs);
  }

  #seeWalls(): void {
    const { gates, managers, world } = this.#targets;
    const shown = [...managers, ...gates].map(({ process }) => process.clock.wall(world.now));
    this.#latestWall = Math.max(this.#latestWall, ...shown);
  }

  #others(at: number): readonly number[] {
    return this.#nodes.flatMap((_, other) => (other === at ? [] : [other]));
  }

  #later(delayMs: number, run: () => void): void {
    const { world } = this.#targets;
    world.schedule(world.now + delayMs, "fault", 0, () => {
      if (!this.#healed) run();
    });
  }

  #crash(node: Node, power: boolean, forMs: number): void {
    node.crash(power);
    this.#downUntil.set(node, this.#targets.world.now + forMs);
    this.#later(forMs, () => node.start());
  }

  #stop(node: Node, forMs: number): void {
    node.stop(() => {
      if (!this.#healed) this.#crash(node, false, forMs);
      else {
        node.crash(false);
        node.start();
      }
    });
  }

  #pause(node: Node, forMs: number): void {
    node.pause();
    this.#later(forMs, () => node.resume());
  }

  #cut(ways: readonly (readonly [number, number])[], forMs: number): void {
    const { network } = this.#targets;
    for (const [from, to] of ways) network.cut(from, to);
    this.#later(forMs, () => {
      for (const [from, to] of ways) network.mend(from, to);
    });
  }

  #partition(sides: readonly number[], oneWay: boolean, forMs: number): void {
    const ways: (readonly [number, number])[] = [];
    sides.forEach((a, from) => {
      sides.forEach((b, to) => {
        if (a !== b && (!oneWay || a < b)) ways.push([from, to]);
      });
    });
    this.#cut(ways, forMs);
  }

  #isolate(
    at: number,
    from: readonly number[],
    way: { readonly hears: boolean; readonly isHeard: boolean; readonly forMs: number },
  ): void {
    const ways = from.flatMap((other): (readonly [number, number])[] => [
      ...(way.hears ? [] : [[other, at] as const]),
      ...(way.isHeard ? [] : [[at, other] as const]),
    ]);
    this.#cut(ways, way.forMs);
  }

  /** Checks effects of managers and gates for the trigger of an ambush. */
  onEffect({ index }: LedgerProcess, effect: ProcessEffect): void {
    if (this.#healed || this.#ambushes.length === 0) return;
    const moment = momentOf(effect);
    const at = this.#ambushes.findIndex(({ on }) => on === moment);
    const [ambush] = at < 0 ? [] : this.#ambushes.splice(at, 1);
    if (ambush === undefined) return;
    // The process is in the middle of its step.
    this.#later(0, () => this.#strikeAt(index, ambush.what, ambush.forMs, true));
  }

  /** Strikes the current leader of a group. */
  #troubleLeader({ draw, forMs, what }: LeaderTrouble): void {
    const { gates, managers, plan } = this.#targets;
    const all = plan.scope === "gates" ? gates : [...managers, ...gates];
    const leaders = all.flatMap(({ process }) => {
      const leads = [...(process.node?.groups ?? [])].some(
        ([id, { app, replica }]) =>
          (id.startsWith("run/") || app.kind === "job") && replica.state.acting,
      );
      return leads ? [process.index] : [];
    });
    const at = leaders[draw % Math.max(1, leaders.length)];
    if (at !== undefined) this.#strikeAt(at, what, forMs, draw % 2 === 0);
  }

  #strikeAt(at: number, what: LeaderTrouble["what"], forMs: number, power: boolean): void {
    const { gates, managers, world } = this.#targets;
    const node = this.#nodes[at];
    if (node === undefined) return;
    world.note(`${what} at ${at}`);
    const way = { hears: false, isHeard: false, forMs };
    if (what === "crash") this.#crash(node, power, forMs);
    else if (what === "pause") this.#pause(node, forMs);
    else if (what === "stop") this.#stop(node, forMs);
    else if (what === "isolate") this.#isolate(at, this.#others(at), way);
    else
      this.#isolate(
        at,
        (at < managers.length ? managers : gates)
          .map(({ process }) => process.index)
          .filter((other) => other !== at),
        way,
      );
  }

  #heal(): void {
    const { clients, cpus, gates, managers, network, plan, streams, workers, world } =
      this.#targets;
    world.note("healing");
    for (const cpu of cpus) cpu.costMs = plan.costMs ?? 0;
    for (const { flood } of clients) flood.end();
    for (const worker of workers) {
      worker.frameEveryMs = Number.POSITIVE_INFINITY;
      worker.frozen = { ...worker.frozen, until: Math.min(worker.frozen.until, world.now) };
    }
    this.#healed = true;
    this.#ambushes = [];
    network.mendAll();
    network.faults = CALM_LINKS;
    streams.faults = CALM_STREAMS;
    this.#downUntil.clear();
    // A node waits until its clock has passed the times in its own log, so clocks are corrected once for all.
    this.#seeWalls();
    for (const { blobs } of managers) blobs.isFull = false;
    for (const { process } of [...managers, ...gates]) {
      process.clock.jumpWall(this.#latestWall - process.clock.wall(world.now));
      process.disk.calm = true;
    }
    for (const node of this.#nodes) {
      node.slowDisk(0);
      node.resume();
      node.start();
    }
  }
}

/** Trigger in the group of a job that this effect reaches. */
function momentOf(effect: ProcessEffect): Ambush["on"] | null {
  if (!("group" in effect) || !String(effect.group).startsWith(RUN_PREFIX)) return null;
  if (effect.kind === "leads") return effect.leads ? "leads" : null;
  if (effect.kind !== "applied" || effect.entry.kind !== "op") return null;
  const entry = effect.outcome === "rejected" ? null : decodeRunEntry(effect.entry.data);
  if (entry?.kind === "end") return "end";
  return entry?.kind === "step" && entry.step.kind === "report" ? "report" : null;
}

function clientNode(client: SimClient): Node {
  return {
    start: () => client.start(),
    crash: (power) => client.crash(power),
    pause: () => client.lifetime.pause(),
    resume: () => client.lifetime.resume(),
    stop: (then) => then(),
    jumpWall: (ms) => client.lifetime.clock.jumpWall(ms),
    slowDisk: () => undefined,
  };
}

function ledgerNode({ blobs, process }: SimLedger): Node {
  return {
    start: () => process.start(),
    crash: (power) => process.crash(power),
    pause: () => process.pause(),
    resume: () => process.resume(),
    stop: (then) => process.leave(then),
    jumpWall: (ms) => process.clock.jumpWall(ms),
    slowDisk: (slowMs) => {
      process.disk.slowMs = slowMs;
      blobs.slowMs = slowMs;
    },
  };
}
