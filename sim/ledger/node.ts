/**
 * One simulated ledger process: the production node over the production log on a simulated disk, the
 * production codec between nodes. It keeps the driver's contract (records in order, `durable` a prefix)
 * and dies as processes do: memory gone, disk as it is. A disk that is found corrupt keeps the process
 * from ever serving again. (WAL-12, VSR-30)
 */

import { assert } from "../../src/core/base/assert.ts";
import type { Millis } from "../../src/core/base/brand.ts";
import { ByteWriter } from "../../src/core/base/bytes.ts";
import type { NodeId } from "../../src/core/base/ids.ts";
import type { Random } from "../../src/core/base/random.ts";
import type { Site } from "../../src/core/ledger/job/placement.ts";
import type { WalConfig } from "../../src/core/ledger/log/limits.ts";
import type { WalRules } from "../../src/core/ledger/log/rules.ts";
import { decodeBatch, encodeBatch } from "../../src/core/ledger/node/codec.ts";
import type { LedgerAnswer, LedgerRequest } from "../../src/core/ledger/node/messages.ts";
import { LedgerNode } from "../../src/core/ledger/node/node.ts";
import { snapshotSlices } from "../../src/core/ledger/node/recovery.ts";
import type {
  LedgerEffect,
  LedgerInput,
  LedgerNodeConfig,
  LedgerRules,
} from "../../src/core/ledger/node/types.ts";
import type { WatchItem, WatchRequest } from "../../src/core/ledger/node/watch.ts";
import type { StoreRules } from "../../src/core/ledger/store/rules.ts";
import type { StoreOptions, StoreRefusal } from "../../src/core/ledger/store/types.ts";
import type { NodeClock } from "../kernel/clock.ts";
import type { EventName, World } from "../kernel/world.ts";
import type { LedgerDisk } from "./disk.ts";
import type { Links } from "./links.ts";
import { identityText, type LogObserver, type Opened, Storage } from "./storage.ts";

interface LedgerSpec {
  readonly index: number;
  readonly id: NodeId;
  readonly sites: readonly Site[];
  readonly shards: readonly number[];
  readonly config: LedgerNodeConfig;
  readonly rules: LedgerRules;
  readonly wal: WalConfig;
  readonly walRules: WalRules;
  readonly storeRules: StoreRules;
  readonly checkpointEveryMs: number;
  readonly checkpointsKept: number;
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
  onEffect(process: LedgerProcess, effect: LedgerEffect): void;
  /** After every turn, when all its effects are carried out. */
  onTurn(process: LedgerProcess): void;
}

export interface LedgerSurroundings {
  readonly world: World;
  readonly links: Links;
  readonly watcher: LedgerWatcher;
  byId(id: NodeId): LedgerProcess | undefined;
}

interface Stashed {
  readonly timer: boolean;
  readonly run: () => void;
}

type ProcessState = "down" | "starting" | "up" | "paused" | "corrupt";

/** What a node does between two slices of its store's work. */
const TURN_MS_MAX = 3;
/** Longer than any run. */
const ARCHIVE_KEEP_MS = 400 * 86_400_000;
const STASH_MAX = 5_000;
const HAND_OVER_MS_MAX = 3_000;
const HAND_OVER_LOOK_MS = 50;

export class LedgerProcess {
  readonly spec: LedgerSpec;
  readonly id: NodeId;
  readonly clock: NodeClock;
  readonly disk: LedgerDisk;
  readonly #around: LedgerSurroundings;
  readonly #random: Random;
  readonly #writer = new ByteWriter(4_096);
  state: ProcessState = "down";
  /** Disks this name has had; each has an identity of its own. */
  #disks = 0;
  /** Counts process starts; events of an earlier process are void. */
  life = 0;
  node: LedgerNode | null = null;
  storage: Storage | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  #stash: Stashed[] = [];
  #tokens = 0;
  #answers = new Map<number, (answer: LedgerAnswer | null) => void>();
  readonly #watchers = new Map<number, (items: readonly WatchItem[] | null) => void>();
  #turning = false;

  constructor(spec: LedgerSpec, around: LedgerSurroundings, clock: NodeClock, disk: LedgerDisk) {
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
    this.life++;
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
      durable: (count: number) => this.#input({ kind: "durable", count }),
      forgotten: (jobIds: readonly string[]) => {
        for (const jobId of jobIds) this.node?.forget(jobId);
      },
      mark: (name: string) => watcher.mark(name),
      die: (why: string) => this.#dieOfDisk(why),
    };
    const storage = new Storage(host, this.#storeOptions());
    storage.step({ kind: "open" });
  }

  #storeOptions(): StoreOptions {
    const { index, wal, walRules, storeRules, checkpointEveryMs, checkpointsKept } = this.spec;
    const due = checkpointEveryMs === 0 ? Number.POSITIVE_INFINITY : checkpointEveryMs;
    return {
      identity: identityText(index),
      log: { ...wal, fullDisk: "wait" },
      checkpoint: {
        intervalEntries: Number.POSITIVE_INFINITY,
        intervalMs: due * (0.5 + this.#random.float()),
        keptMax: checkpointsKept,
      },
      archiveKeepMs: ARCHIVE_KEEP_MS,
      logRules: walRules,
      rules: storeRules,
    };
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
    const { sites, config, rules, shards, sliceGroupsMax } = this.spec;
    const boot = `b${this.life}`;
    const options = { self: this.id, sites, config, boot, rules, shards };
    const node = new LedgerNode(options, this.#random.fork(`life/${this.life}`));
    this.node = node;
    this.#turning = true;
    node.recover(opened.state, this.local, this.wall);
    // The ledger is new where nothing was ever durable; a damaged disk has been refused before.
    const isEmpty = opened.records.length === 0 && opened.checkpoint === null;
    const first = this.lostDisk ? "join" : "found";
    node.start(this.local, this.wall, isEmpty ? first : null);
    storage.serve({
      get appends(): number {
        return node.appends;
      },
      slices: () => snapshotSlices(node, sliceGroupsMax),
    });
    this.#turning = false;
    this.#settle();
  }

  request(request: LedgerRequest, done: (answer: LedgerAnswer | null) => void): void {
    if (!this.serves) {
      done(null);
      return;
    }
    this.#inLife(false, () => {
      const token = ++this.#tokens;
      this.#answers.set(token, done);
      this.#input({ kind: "request", token, request });
    });
  }

  /** Null when the process ends; 0: it does not serve. A paused one hears of it when it wakes. */
  watch(
    request: WatchRequest,
    room: number,
    told: (items: readonly WatchItem[] | null) => void,
  ): number {
    if (!this.serves) return 0;
    const token = ++this.#tokens;
    this.#watchers.set(token, told);
    this.#inLife(false, () => this.#input({ kind: "watch", token, request, room }));
    return token;
  }

  makeRoom(token: number, count: number): void {
    this.#inLife(false, () => this.#input({ kind: "watchRoom", token, count }));
  }

  endWatch(token: number): void {
    this.#watchers.delete(token);
    this.#inLife(false, () => this.#input({ kind: "watchEnd", token }));
  }

  #input(input: LedgerInput): void {
    const { node } = this;
    if (node === null || this.state === "down") return;
    node.take(input, this.local, this.wall);
    this.#settle();
  }

  /** Until nothing is left to do at this moment: effects of the node, then of the log, and again. */
  #settle(): void {
    // The log answers from within; what it brings is taken by the turn under way.
    if (this.#turning) return;
    const { node, storage } = this;
    if (node === null || storage === null) return;
    this.#turning = true;
    for (let round = 0; this.node === node; round++) {
      assert(round < 1_000, "a turn ends");
      const effects = node.flush();
      if (effects.length === 0) break;
      let appended = false;
      for (const effect of effects) {
        appended ||= effect.kind === "append";
        this.#carryOut(effect);
      }
      if (appended) storage.step({ kind: "tick" });
    }
    this.#turning = false;
    if (this.node !== node) return;
    this.#around.watcher.onTurn(this);
    this.#arm();
  }

  #carryOut(effect: LedgerEffect): void {
    const { watcher, links } = this.#around;
    watcher.onEffect(this, effect);
    switch (effect.kind) {
      case "append": {
        const { type, payload, wall, logical } = effect;
        this.storage?.append({ type, payload, wall, logical });
        return;
      }
      case "send": {
        const target = this.#around.byId(effect.to);
        assert(target !== undefined, "nodes speak to nodes");
        const { identity } = this;
        const bytes = encodeBatch(this.#writer, effect.messages);
        links.send(this.spec.index, target.spec.index, bytes, (batch) =>
          target.deliver(this.id, identity, batch),
        );
        return;
      }
      case "archive":
        this.storage?.store.archive.add(effect.jobId, effect.bytes, this.wall);
        return;
      case "answer": {
        const done = this.#answers.get(effect.token);
        this.#answers.delete(effect.token);
        done?.(effect.answer);
        return;
      }
      case "watched":
        this.#watchers.get(effect.token)?.(effect.items);
        return;
      default:
    }
  }

  deliver(from: NodeId, identity: string, bytes: Uint8Array): void {
    if (!this.serves) return;
    this.#inLife(false, () => {
      const decoded = decodeBatch(bytes);
      assert(
        decoded.ok,
        `what a node sends can be read${decoded.ok ? "" : `: ${decoded.problem}`}`,
      );
      const { messages } = decoded;
      this.#input({ kind: "messages", from, identity, messages });
    });
  }

  #arm(): void {
    const { node, storage } = this;
    if (node === null || storage === null) return;
    const due = Math.min(node.nextDeadline() ?? Number.POSITIVE_INFINITY, storage.nextDeadline());
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
    const { node, storage } = this;
    if (node === null || storage === null) return;
    const now = this.local;
    this.#turning = true;
    if (storage.nextDeadline() <= now) storage.step({ kind: "tick" });
    if ((node.nextDeadline() ?? Number.POSITIVE_INFINITY) <= now) {
      node.take({ kind: "tick" }, now, this.wall);
    }
    this.#turning = false;
    if (this.node === node) this.#settle();
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
  giveUp(then: () => void): void {
    if (this.state !== "up") return;
    this.#around.world.note(`${this.id} gives up`);
    this.#input({ kind: "giveUp", group: null });
    const until = this.#around.world.now + HAND_OVER_MS_MAX;
    const look = (): void => {
      const isDone = (this.node?.handingOver ?? 0) === 0;
      if (isDone || this.#around.world.now >= until) then();
      else this.#after(HAND_OVER_LOOK_MS, "step", look);
    };
    this.#after(HAND_OVER_LOOK_MS, "step", look);
  }

  /** Kill: what was written stays readable. Power loss: what was not synced is at chance's mercy. */
  crash(power: boolean): void {
    if (this.state === "down" || this.state === "corrupt") return;
    this.#around.world.note(`${this.id} ${power ? "loses power" : "is killed"}`);
    if (power) {
      this.disk.powerLoss();
      this.clock.reboot(this.#around.world.now);
    }
    this.#end();
  }

  #dieOfDisk(why: string): void {
    if (this.state === "down") return;
    this.#around.world.note(`${this.id} dies: ${why}`);
    this.disk.dropCaches();
    this.#end();
  }

  #end(): void {
    this.state = "down";
    this.node = null;
    this.storage = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
    this.#stash = [];
    this.#around.links.breakAll(this.spec.index);
    const answers = this.#answers;
    this.#answers = new Map();
    for (const done of answers.values()) done(null);
    const watchers = [...this.#watchers.values()];
    this.#watchers.clear();
    for (const told of watchers) told(null);
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
