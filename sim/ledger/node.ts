/**
 * One simulated ledger process: the production machine over simulated streams and the production log on a simulated
 * disk. It keeps the driver's contract (effects in order, `durable` a prefix) and dies as processes do: memory lost,
 * disk as it is. A corrupt disk keeps the process from ever serving again. (WAL-12, VSR-30)
 */

import { assert } from "../../src/core/base/assert.ts";
import type { Millis } from "../../src/core/base/brand.ts";
import type { NodeId } from "../../src/core/base/ids.ts";
import type { Random } from "../../src/core/base/random.ts";
import {
  describeLedger,
  type LedgerDescription,
} from "../../src/core/cluster/node/describe-ledger.ts";
import type {
  GateProcessEffect,
  GateProcessInput,
} from "../../src/core/cluster/node/gate-process.ts";
import type { LedgerMachine } from "../../src/core/cluster/node/ledger-machine.ts";
import type { PeersWatcher } from "../../src/core/cluster/node/ledger-peers.ts";
import type { ProcessEffect } from "../../src/core/cluster/node/types.ts";
import type { Site } from "../../src/core/ledger/job/placement.ts";
import type { LedgerRequest } from "../../src/core/ledger/node/messages.ts";
import type { LedgerNode } from "../../src/core/ledger/node/node.ts";
import type { WatchRequest } from "../../src/core/ledger/node/watch.ts";
import type { StoreRefusal } from "../../src/core/ledger/store/types.ts";
import type { NodeClock } from "../kernel/clock.ts";
import type { Cpu } from "../kernel/cpu.ts";
import { ringOf } from "../kernel/keys.ts";
import type { StreamHost, Streams } from "../kernel/streams.ts";
import type { EventName, World } from "../kernel/world.ts";
import { Askers, type OnAnswer, type OnItems } from "./askers.ts";
import type { LedgerDisk } from "./disk.ts";
import { inTurn, TickTurn } from "./in-turn.ts";
import { type Above, type DrivenMachine, type MachineSpec, machineOf, wrongly } from "./machine.ts";
import {
  type LogObserver,
  type Opened,
  Storage,
  type StorageSpec,
  storeOptions,
} from "./storage.ts";

interface LedgerSpec extends MachineSpec, StorageSpec {
  /** So many of the sites found the ledger; the others join later. */
  readonly foundingSites: number;
  readonly above?: Above;
  readonly cpu?: Cpu;
}

/** Observers of a process. */
export interface LedgerWatcher {
  readonly observer: (process: LedgerProcess) => LogObserver;
  /** Something worth seeing in a run has happened. */
  mark(name: string): void;
  onRecovered(process: LedgerProcess, opened: Opened): void;
  onRefused(process: LedgerProcess, why: string): void;
  onEffect(process: LedgerProcess, effect: ProcessEffect): void;
  /** Observer of the traffic between a node and its links. */
  peersWatcher(process: LedgerProcess): PeersWatcher;
  /** After every turn, when all its effects are carried out. */
  onTurn(process: LedgerProcess): void;
}

export interface LedgerSurroundings {
  readonly world: World;
  readonly streams: Streams;
  readonly watcher: LedgerWatcher;
}

interface Stashed {
  readonly timer: boolean;
  readonly run: () => void;
}

type ProcessState = "down" | "starting" | "up" | "paused" | "corrupt";

/** Between two slices of a store's work. */
const TURN_MS_MAX = 3;
const STASH_MAX = 100_000;

export class LedgerProcess implements StreamHost {
  readonly spec: LedgerSpec;
  readonly id: NodeId;
  readonly clock: NodeClock;
  readonly disk: LedgerDisk;
  readonly #around: LedgerSurroundings;
  readonly #random: Random;
  state: ProcessState = "down";
  /** Number of leading sites in its configuration; it runs once it is one of them. */
  configured: number;
  /** Number of disks this name has had; each has its own identity. */
  #disks = 0;
  /** Counts process starts; events of an earlier process are void. */
  life = 0;
  powered = true;
  /** Content of the secret file. */
  #secrets: readonly string[];
  /** Whether the node is started with a list of nodes that differs from all others. */
  misconfigured = false;
  /** Ledger description announced to peers by this incarnation. */
  ledger: LedgerDescription;
  machine: LedgerMachine | null = null;
  #driven: DrivenMachine | null = null;
  /** The mark in its data directory: the first start on it is still to come. */
  #first: "found" | "join" | null;
  #turnDue = false;
  storage: Storage | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  readonly #ticks = new TickTurn();
  #stash: Stashed[] = [];
  readonly #askers = new Askers();
  #turning = false;
  #onLeft: () => void = () => undefined;

  constructor(
    spec: LedgerSpec,
    around: LedgerSurroundings,
    clock: NodeClock,
    disk: LedgerDisk,
    secrets: readonly string[],
  ) {
    this.#secrets = secrets;
    this.spec = spec;
    this.configured = spec.foundingSites;
    this.#first = this.#position < spec.foundingSites ? "found" : "join";
    this.ledger = describeLedger(this.#sites, spec.config);
    this.id = spec.id;
    this.#around = around;
    this.clock = clock;
    this.disk = disk;
    this.#random = around.world.random.fork(`ledger/${spec.index}`);
  }

  get local(): Millis {
    return this.clock.local(this.#around.world.now);
  }

  get wall(): number {
    return this.clock.wall(this.#around.world.now);
  }

  get index(): number {
    return this.spec.index;
  }

  get listens(): boolean {
    return this.machine !== null;
  }

  /** Null while it does not serve. */
  get node(): LedgerNode | null {
    return this.serves ? (this.machine?.node ?? null) : null;
  }

  /** Among its sites. */
  get #position(): number {
    return this.spec.index - (this.spec.firstIndex ?? 0);
  }

  /** All nodes, as configured at this one. */
  get #sites(): readonly Site[] {
    const sites = this.spec.sites.slice(0, this.configured);
    return this.misconfigured ? wrongly(sites, this.#position) : sites;
  }

  get identity(): string {
    return `${this.id}/${this.#disks}`;
  }

  /** Whether the node serves from an empty disk under the name of one that did not come back. */
  get lostDisk(): boolean {
    return this.#disks > 0;
  }

  get serves(): boolean {
    return this.state === "up" || this.state === "paused";
  }

  start(): void {
    if (this.state !== "down" || this.#position >= this.configured) return;
    this.state = "starting";
    this.powered = true;
    this.life++;
    this.ledger = describeLedger(this.#sites, this.spec.config);
    const { watcher } = this.#around;
    const { life } = this;
    const storage = new Storage({
      disk: this.disk,
      observer: watcher.observer(this),
      after: (delayMs, run) => this.#after(delayMs, "synced", run),
      answer: (id, result) => this.#input({ kind: "done", id, result }),
      opened: (opened) => {
        this.#around.world.note(`${this.id} recovers up to record ${opened.outcome.maxLsn}`);
        watcher.onRecovered(this, opened);
      },
      refused: (refusal) => this.#refuse(refusal),
      mark: (name) => watcher.mark(name),
      die: (why) => this.#dieOfDisk(why),
    });
    this.storage = storage;
    const machine = this.#makeMachine(storage);
    this.machine = machine;
    this.#driven = this.spec.above?.compose(machine, `b${this.life}`) ?? machine;
    const observer = watcher.observer(this);
    machine.watch({
      ...watcher.peersWatcher(this),
      onAppend: (ticket, type, payload) => observer.appended(ticket, type, payload),
      onStore: (event) => {
        if (this.life === life) storage.onEvent(event, machine.store);
      },
    });
    this.#input({ kind: "open", first: this.#first, identity: this.identity });
  }

  #refuse(refusal: StoreRefusal): void {
    const { world, watcher } = this.#around;
    if (refusal.code === "FILE_ERROR") {
      this.#dieOfDisk(`it does not open: ${refusal.problem.code}`);
      return;
    }
    const why = JSON.stringify(refusal);
    world.note(`${this.id} refuses its disk: ${why}`);
    this.state = "corrupt";
    watcher.onRefused(this, why);
  }

  #makeMachine(storage: Storage): LedgerMachine {
    const { spec, ledger } = this;
    const random = this.#random.fork(`life/${this.life}`);
    const boot = `b${this.life}`;
    const store = { ...storeOptions(spec, this.#random), onEntry: storage.onEntry };
    return machineOf(
      { ...spec, sites: this.#sites },
      { ledger, boot, random, store, ring: ringOf(this.#secrets) },
    );
  }

  /** Writes new secrets and, if the process runs, notifies it. */
  useSecrets(secrets: readonly string[]): void {
    this.#secrets = secrets;
    if (this.machine === null) return;
    this.#inLife(false, () => this.#input({ kind: "keys", ring: ringOf(secrets) }));
  }

  request(request: LedgerRequest, onAnswer: OnAnswer): void {
    if (!this.serves) {
      onAnswer(null);
      return;
    }
    this.#inLife(false, () => {
      this.#input({ kind: "request", token: this.#askers.ask(onAnswer), request });
    });
  }

  /** Returns 0 if it does not serve. A paused process handles the request when it resumes. */
  watch(request: WatchRequest, room: number, onItems: OnItems): number {
    if (!this.serves) return 0;
    const token = this.#askers.watch(onItems);
    this.#inLife(false, () => this.#input({ kind: "watch", token, request, room }));
    return token;
  }

  makeRoom(token: number, count: number): void {
    this.#inLife(false, () => this.#input({ kind: "watchRoom", token, count }));
  }

  endWatch(token: number): void {
    this.#askers.endWatch(token);
    this.#inLife(false, () => this.#input({ kind: "watchEnd", token }));
  }

  /** Inputs of the application, beside the node's. */
  tell(input: GateProcessInput): void {
    this.#input(input);
  }

  /** Runs after this much time, unless the process is dead by then. */
  after(delayMs: number, run: () => void): void {
    this.#after(delayMs, "synced", run);
  }

  #input(input: GateProcessInput): void {
    const machine = this.#driven;
    if (machine === null || this.state === "down") return;
    machine.take(input, this.local, this.wall);
    this.#settle();
  }

  #settle(): void {
    // Inputs caused by an effect are handled by the turn in progress.
    if (this.#turning) return;
    const machine = this.#driven;
    if (machine === null) return;
    this.#turning = true;
    for (let round = 0; this.#driven === machine; round++) {
      assert(round < 1_000, "a turn ends");
      const effects = machine.flush();
      if (effects.length === 0) break;
      for (const effect of effects) if (this.#driven === machine) this.#carryOut(effect);
    }
    this.#turning = false;
    if (this.#driven !== machine) return;
    this.#around.watcher.onTurn(this);
    this.#arm();
    if (!machine.wantsTurn || this.#turnDue) return;
    this.#turnDue = true;
    this.#after(this.#random.float() * TURN_MS_MAX, "synced", () => {
      this.#turnDue = false;
      this.#input({ kind: "turn" });
    });
  }

  #carryOut(effect: GateProcessEffect): void {
    const { watcher, streams, world } = this.#around;
    switch (effect.kind) {
      case "dial":
      case "write":
      case "prove":
      case "end":
      case "destroy":
        streams.run(this, effect);
        return;
      case "file":
        this.storage?.run(effect);
        return;
      case "store":
        // Seen when it happened.
        return;
      case "recovered":
        this.#input({ kind: "start" });
        return;
      case "serving":
        this.state = "up";
        world.note(`${this.id} serves`);
        this.spec.above?.onServing();
        return;
      case "keepBlob":
      case "readBlob":
      case "blobGet":
      case "blobPut":
      case "pinBlobs":
      case "toDatacenter":
        this.spec.above?.run(effect);
        return;
      case "firstStart":
        this.#first = null;
        this.#input({ kind: "founded" });
        return;
      case "answer":
        this.#askers.answer(effect.token, effect.answer);
        return;
      case "watched":
        this.#askers.tell(effect.token, effect.items);
        return;
      case "left":
        // The process ends in the next turn: this one is not over yet.
        this.#after(0, "step", this.#onLeft);
        return;
      case "log":
        world.note(`${this.id} ${effect.event} ${JSON.stringify(effect.fields)}`);
        watcher.onEffect(this, effect);
        return;
      default:
        // The simulator has no reports and no audit log.
        if (effect.kind !== "report" && effect.kind !== "steered") watcher.onEffect(this, effect);
    }
  }

  /** Delivers to the process of that incarnation, or to the application in it. */
  deliver(life: number, input: GateProcessInput): void {
    if (this.life !== life || this.machine === null) return;
    inTurn(this.spec.cpu, input, () => this.#inLife(false, () => this.#input(input)));
  }

  #arm(): void {
    const due = this.#driven?.nextDeadline() ?? null;
    if (due === null) return;
    const { world } = this.#around;
    // Rounding must not leave the clock a hair short of the deadline.
    const at = Math.max(world.now, this.clock.world(due) + 1e-4);
    if (at >= this.#timerAt) return;
    this.#timerAt = at;
    this.#schedule(at, "tick", true, () => {
      if (this.#timerAt === at) this.#timerAt = Number.POSITIVE_INFINITY;
      this.#ticks.due(this.spec.cpu, this.life, () => this.#input({ kind: "tick" }));
    });
  }

  #after(delayMs: number, name: EventName, run: () => void): void {
    this.#schedule(this.#around.world.now + delayMs, name, false, () => {
      run();
      if (!this.#turning) this.#settle();
    });
  }

  #schedule(at: number, name: EventName, timer: boolean, run: () => void): void {
    const { life } = this;
    this.#around.world.schedule(at, name, this.spec.index, () => {
      if (this.life === life && this.state !== "down" && this.state !== "corrupt") {
        this.#inLife(timer, run);
      }
    });
  }

  /** Now, or when a paused process wakes. */
  #inLife(timer: boolean, run: () => void): void {
    if (this.state !== "paused") run();
    else if (this.#stash.length < STASH_MAX) this.#stash.push({ timer, run });
  }

  pause(): void {
    if (this.state !== "up") return;
    this.state = "paused";
    this.#around.world.note(`${this.id} pauses`);
  }

  resume(): void {
    if (this.state !== "paused") return;
    this.state = "up";
    this.#around.world.note(`${this.id} resumes`);
    const stash = this.#stash;
    this.#stash = [];
    const timersFirst = this.#timersFirst();
    const { life } = this;
    for (const first of [true, false]) {
      for (const { timer, run } of stash) {
        if (timer !== (first === timersFirst)) continue;
        if (this.life === life && this.state === "up") run();
      }
    }
    this.#timerAt = Number.POSITIVE_INFINITY;
    this.#arm();
  }

  /** With an application, silence is judged by heartbeats: the production loop reads pending input before it ticks. */
  #timersFirst(): boolean {
    return this.spec.above === undefined && this.#random.chance(0.5);
  }

  /** As at SIGTERM: `then` runs when others lead its groups, or after the time a node waits for that. */
  leave(then: () => void): void {
    if (this.state !== "up") return;
    this.#around.world.note(`${this.id} leaves`);
    this.#onLeft = then;
    this.#input({ kind: "leave" });
  }

  /** Kill: what was written stays readable. Power loss: what was not synced is at chance's mercy. */
  crash(power: boolean): void {
    if (this.state === "down" || this.state === "corrupt") return;
    this.#around.world.note(`${this.id} ${power ? "loses power" : "is killed"}`);
    if (power) {
      this.disk.powerLoss();
      this.clock.reboot(this.#around.world.now);
      this.powered = false;
    }
    this.#end(power);
  }

  #dieOfDisk(why: string): void {
    if (this.state === "down") return;
    this.#around.world.note(`${this.id} dies: ${why}`);
    this.disk.dropCaches();
    this.#end(false);
  }

  #end(power: boolean): void {
    this.state = "down";
    this.machine = null;
    this.#driven = null;
    this.#turnDue = false;
    this.storage = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
    this.#stash = [];
    this.spec.cpu?.clear();
    this.#around.streams.abandon(this.spec.index, power);
    this.#askers.end();
  }

  /** Loses the disk; the next start finds an empty one and is instructed to join. */
  loseDisk(): void {
    this.crash(true);
    this.#around.world.note(`${this.id} has lost its disk`);
    this.disk.wipe();
    this.#disks++;
    this.#first = "join";
  }

  /** Flips a bit of something that was proven durable: the file's name, null when nothing is yet. */
  rot(): string | null {
    const place = this.storage?.provenPlace((below) => this.#random.below(below)) ?? null;
    if (place === null) return null;
    this.disk.rot(place.name, place.at);
    this.#around.world.note(`${this.id} has a rotten bit in ${place.name} at ${place.at}`);
    return place.name;
  }
}
