/**
 * One simulated ledger process: the production machine over simulated streams and the production log on a
 * simulated disk. It keeps the driver's contract (effects in order, `durable` a prefix) and dies as
 * processes do: memory gone, disk as it is. A disk that is found corrupt keeps the process from ever
 * serving again. (WAL-12, VSR-30)
 */

import { assert } from "../../src/core/base/assert.ts";
import type { Millis } from "../../src/core/base/brand.ts";
import type { NodeId } from "../../src/core/base/ids.ts";
import type { Random } from "../../src/core/base/random.ts";
import type { Site } from "../../src/core/ledger/job/placement.ts";
import type { LedgerRequest } from "../../src/core/ledger/node/messages.ts";
import type { LedgerNode } from "../../src/core/ledger/node/node.ts";
import { snapshotSlices } from "../../src/core/ledger/node/recovery.ts";
import type { WatchRequest } from "../../src/core/ledger/node/watch.ts";
import type { StoreRefusal } from "../../src/core/ledger/store/types.ts";
import type { LinkInput } from "../../src/core/tiers/link/types.ts";
import {
  describeLedger,
  type LedgerDescription,
} from "../../src/core/tiers/process/describe-ledger.ts";
import type { LedgerMachine } from "../../src/core/tiers/process/ledger-machine.ts";
import type { PeersWatcher } from "../../src/core/tiers/process/ledger-peers.ts";
import type { ProcessEffect, ProcessInput } from "../../src/core/tiers/process/types.ts";
import type { NodeClock } from "../kernel/clock.ts";
import { ringOf } from "../kernel/keys.ts";
import type { StreamHost, Streams } from "../kernel/streams.ts";
import type { EventName, World } from "../kernel/world.ts";
import { Askers, type OnAnswer, type OnItems } from "./askers.ts";
import type { LedgerDisk } from "./disk.ts";
import { type MachineSpec, machineOf } from "./machine.ts";
import {
  type LogObserver,
  type Opened,
  Storage,
  type StorageSpec,
  storeOptions,
} from "./storage.ts";

interface LedgerSpec extends MachineSpec, StorageSpec {
  /** Groups in one slice of a checkpoint. */
  readonly sliceGroupsMax: number;
}

/** Who looks on. */
export interface LedgerWatcher {
  readonly observer: (process: LedgerProcess) => LogObserver;
  /** Something worth seeing in a run has happened. */
  mark(name: string): void;
  onRecovered(process: LedgerProcess, opened: Opened): void;
  onRefused(process: LedgerProcess, why: string): void;
  onEffect(process: LedgerProcess, effect: ProcessEffect): void;
  /** Who sees what passes between a node and its links. */
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

/** What a node does between two slices of its store's work. */
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
  /** Disks this name has had; each has an identity of its own. */
  #disks = 0;
  /** Counts process starts; events of an earlier process are void. */
  life = 0;
  powered = true;
  /** What stands in its secret file. */
  #secrets: readonly string[];
  /** It is started with a list of nodes that nobody else has. */
  misconfigured = false;
  /** What it tells its peers of the ledger, in this life. */
  ledger: LedgerDescription;
  machine: LedgerMachine | null = null;
  /** Records that must be durable before peers are called. */
  #connectAt = Number.POSITIVE_INFINITY;
  storage: Storage | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  #stash: Stashed[] = [];
  readonly #askers = new Askers();
  #turning = false;
  #onIdle: () => void = () => undefined;

  constructor(
    spec: LedgerSpec,
    around: LedgerSurroundings,
    clock: NodeClock,
    disk: LedgerDisk,
    secrets: readonly string[],
  ) {
    this.#secrets = secrets;
    this.ledger = describeLedger(spec.sites, spec.config);
    this.spec = spec;
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

  get node(): LedgerNode | null {
    return this.machine?.node ?? null;
  }

  /** All nodes, as this one is told. */
  get #sites(): readonly Site[] {
    const { sites, index } = this.spec;
    if (!this.misconfigured) return sites;
    const wrong = (index + 1) % sites.length;
    return sites.map((site, i) => (i === wrong ? { ...site, region: "elsewhere" } : site));
  }

  get identity(): string {
    return `${this.id}/${this.#disks}`;
  }

  /** It serves from an empty disk under the name of one that did not come back. */
  get lostDisk(): boolean {
    return this.#disks > 0;
  }

  get serves(): boolean {
    return this.state === "up" || this.state === "paused";
  }

  start(): void {
    if (this.state !== "down") return;
    this.state = "starting";
    this.powered = true;
    this.life++;
    this.ledger = describeLedger(this.#sites, this.spec.config);
    const { watcher } = this.#around;
    const host = {
      disk: this.disk,
      observer: watcher.observer(this),
      local: () => this.local,
      wall: () => this.wall,
      after: (delayMs: number, run: () => void) => this.#after(delayMs, "synced", run),
      drawTurnMs: () => this.#random.float() * TURN_MS_MAX,
      opened: (opened: Opened) => this.#serve(storage, opened),
      refused: (refusal: StoreRefusal) => this.#refuse(refusal),
      durable: (count: number) => this.#onDurable(count),
      forgotten: (jobIds: readonly string[]) => {
        for (const jobId of jobIds) this.node?.forget(jobId);
      },
      mark: (name: string) => watcher.mark(name),
      die: (why: string) => this.#dieOfDisk(why),
    };
    const storage = new Storage(host, storeOptions(this.spec, this.#random));
    storage.step({ kind: "open" });
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

  #serve(storage: Storage, opened: Opened): void {
    const { world, watcher } = this.#around;
    this.state = "up";
    world.note(`${this.id} serves from record ${opened.outcome.maxLsn}`);
    this.storage = storage;
    watcher.onRecovered(this, opened);
    const machine = this.#makeMachine();
    const { node } = machine;
    this.#turning = true;
    machine.recover(opened.state, this.local, this.wall);
    // The ledger is new where nothing was ever durable; a damaged disk has been refused before.
    const isEmpty = opened.records.length === 0 && opened.checkpoint === null;
    const first = this.lostDisk ? "join" : "found";
    machine.start(isEmpty ? first : null, this.local, this.wall);
    this.machine = machine;
    storage.serve({
      get appends(): number {
        return node.appends;
      },
      slices: () => snapshotSlices(node, this.spec.sliceGroupsMax),
    });
    this.#turning = false;
    this.#settle();
    // As production does it: nobody is called before the first start is durable.
    this.#connectAt = isEmpty ? node.appends : 0;
    if (this.#connectAt === 0) this.#connect();
  }

  #makeMachine(): LedgerMachine {
    const { watcher } = this.#around;
    const random = this.#random.fork(`life/${this.life}`);
    const { spec, ledger } = this;
    const boot = `b${this.life}`;
    const machine = machineOf(
      { ...spec, sites: this.#sites },
      { ledger, boot, random, ring: ringOf(this.#secrets) },
    );
    machine.watch(watcher.peersWatcher(this));
    return machine;
  }

  #connect(): void {
    this.#connectAt = Number.POSITIVE_INFINITY;
    this.#input({ kind: "connect", identity: this.identity });
  }

  #onDurable(count: number): void {
    this.#input({ kind: "durable", count });
    if (count >= this.#connectAt) this.#connect();
  }

  /** An operator has written new secrets, and told the process if it runs. */
  useSecrets(secrets: readonly string[]): void {
    this.#secrets = secrets;
    if (!this.serves) return;
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

  /** 0: it does not serve. A paused one hears of it when it wakes. */
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

  #input(input: ProcessInput): void {
    const { machine } = this;
    if (machine === null || this.state === "down") return;
    machine.take(input, this.local, this.wall);
    this.#settle();
  }

  /** Until nothing is left to do at this moment: effects of the machine, then of the log, and again. */
  #settle(): void {
    // The log answers from within; what it brings is taken by the turn under way.
    if (this.#turning) return;
    const { machine, storage } = this;
    if (machine === null || storage === null) return;
    this.#turning = true;
    for (let round = 0; this.machine === machine; round++) {
      assert(round < 1_000, "a turn ends");
      const effects = machine.flush();
      if (effects.length === 0) break;
      let appended = false;
      for (const effect of effects) {
        appended ||= effect.kind === "append";
        this.#carryOut(effect);
      }
      if (appended) storage.step({ kind: "tick" });
    }
    this.#turning = false;
    if (this.machine !== machine) return;
    this.#around.watcher.onTurn(this);
    this.#arm();
  }

  #carryOut(effect: ProcessEffect): void {
    const { watcher, streams, world } = this.#around;
    switch (effect.kind) {
      case "dial":
      case "write":
      case "prove":
      case "end":
      case "destroy":
        streams.run(this, effect);
        return;
      case "append": {
        const { type, payload, wall, logical } = effect;
        this.storage?.append({ type, payload, wall, logical });
        return;
      }
      case "archive":
        watcher.onEffect(this, effect);
        this.storage?.store.archive.add(effect.jobId, effect.bytes, this.wall);
        return;
      case "answer":
        this.#askers.answer(effect.token, effect.answer);
        return;
      case "watched":
        this.#askers.tell(effect.token, effect.items);
        return;
      case "idle":
        // Its process ends in the next turn: this one is not over yet.
        this.#after(0, "step", this.#onIdle);
        return;
      case "log":
        world.note(`${this.id} ${effect.event} ${JSON.stringify(effect.fields)}`);
        return;
      default:
        watcher.onEffect(this, effect);
    }
  }

  deliver(life: number, input: LinkInput): void {
    if (this.life !== life || !this.serves) return;
    this.#inLife(false, () => this.#input(input));
  }

  #arm(): void {
    const { machine, storage } = this;
    if (machine === null || storage === null) return;
    const due = Math.min(
      machine.nextDeadline() ?? Number.POSITIVE_INFINITY,
      storage.nextDeadline(),
    );
    if (due === Number.POSITIVE_INFINITY) return;
    const { world } = this.#around;
    // Rounding must not leave the clock a hair short of the deadline.
    const at = Math.max(world.now, this.clock.world(due) + 1e-4);
    if (at >= this.#timerAt) return;
    this.#timerAt = at;
    this.#schedule(at, "tick", true, () => {
      if (this.#timerAt === at) this.#timerAt = Number.POSITIVE_INFINITY;
      this.#onTimer();
    });
  }

  #onTimer(): void {
    const { machine, storage } = this;
    if (machine === null || storage === null) return;
    const now = this.local;
    this.#turning = true;
    if (storage.nextDeadline() <= now) storage.step({ kind: "tick" });
    if ((machine.nextDeadline() ?? Number.POSITIVE_INFINITY) <= now) {
      machine.take({ kind: "tick" }, now, this.wall);
    }
    this.#turning = false;
    if (this.machine === machine) this.#settle();
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
    const timersFirst = this.#random.chance(0.5);
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

  /** As at SIGTERM: `then` runs when others lead its groups, or after the time a node waits for that. */
  leave(then: () => void): void {
    if (this.state !== "up") return;
    this.#around.world.note(`${this.id} leaves`);
    this.#onIdle = then;
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
    this.#connectAt = Number.POSITIVE_INFINITY;
    this.storage = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
    this.#stash = [];
    this.#around.streams.abandon(this.spec.index, power);
    this.#askers.end();
  }

  /** The disk is gone; the next start finds an empty one, and was told to join. */
  loseDisk(): void {
    this.crash(true);
    this.#around.world.note(`${this.id} has lost its disk`);
    this.disk.wipe();
    this.#disks++;
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
