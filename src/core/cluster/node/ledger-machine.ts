/**
 * A ledger node process as one state machine: the node, its storage, its links to peers, and its callers. Production
 * and the simulator both drive this object.
 *
 *     bytes    ─► links ─► messages of peers ─┐                ┌─► batches ─► links ─► bytes
 *     requests ─► admission ──────────────────┼─► LedgerNode ──┼─► records ─► store ─► file operations
 *     files    ─► store ─► durable(n) ────────┘                └─► answers, alarms
 *
 *     new ──open──► opening ─► recovered ──start──► waiting for the clock ─► serving
 *     serving ──leave──► handing over ─► draining ─► keeping ─► left
 *
 * The machine accepts connections from the beginning, so that a peer learns whether both belong to the same ledger
 * while this node still reads its disk. It ignores messages until it serves, and dials no peer before the first start
 * is durable and recorded. (CKPT-6)
 */

import { assert, assertNever } from "../../base/assert.ts";
import { type Millis, millis } from "../../base/brand.ts";
import type { NodeId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { FileEffect } from "../../ledger/log/files.ts";
import { RESERVED_FOR_CANCELS } from "../../ledger/node/config.ts";
import type { LedgerAnswer, LedgerRequest, NodeMessage } from "../../ledger/node/messages.ts";
import { LedgerNode } from "../../ledger/node/node.ts";
import { snapshotSlices } from "../../ledger/node/recovery.ts";
import { shareFor } from "../../ledger/node/submission.ts";
import type { LedgerEffect, LedgerOptions } from "../../ledger/node/types.ts";
import { LedgerStore } from "../../ledger/store/store.ts";
import type { StoreEvent, StoreInput, StoreOptions } from "../../ledger/store/types.ts";
import { HandOver } from "./hand-over.ts";
import { LeadChanges } from "./lead-changes.ts";
import { LedgerPeers, type LedgerPeersOptions, type PeersWatcher } from "./ledger-peers.ts";
import type { PeerClocks } from "./peer-clocks.ts";
import type { LogLevel, PeerView, ProcessCounts, ProcessEffect, ProcessInput } from "./types.ts";
import { Undurable } from "./undurable.ts";

/** Time for requests in progress to finish once others lead. */
const DRAIN_MS_MAX = 1_000;
/** Time for the last checkpoint after that; records it misses are in the log. */
const KEEP_MS_MAX = 30_000;
/** Interval of checking a clock that is behind. */
const CLOCK_CHECK_MS = 1_000;
/** Ids of one-time requests to the store. */
const FIRST_START = 1;
const LAST_CHECKPOINT = 1;
const STARTING = { kind: "retry", why: "the node is starting; ask another" } as const;
const GOING = { kind: "retry", why: "the node is going down; ask another" } as const;
const DISK_BEHIND: LedgerAnswer = { kind: "retry", why: "the disk is behind" };

interface LedgerMachineOptions {
  readonly node: LedgerOptions;
  readonly peers: LedgerPeersOptions;
  readonly store: StoreOptions;
  /** Groups per slice of a checkpoint. */
  readonly sliceGroupsMax?: number;
}

/** Observer for checkers; unused in production. */
interface ProcessWatcher extends PeersWatcher {
  /** A record is appended to the log. */
  readonly onAppend: (ticket: number, type: number, payload: Uint8Array) => void;
  readonly onStore: (event: StoreEvent) => void;
}

type Phase =
  | "new"
  | "opening"
  | "recovered"
  | "waiting"
  | "serving"
  | "handingOver"
  | "draining"
  | "keeping"
  | "left"
  | "failed";
const TAKING_PART: readonly Phase[] = ["serving", "handingOver", "draining"];
export class LedgerMachine {
  readonly node: LedgerNode;
  readonly store: LedgerStore;
  readonly #peers: LedgerPeers;
  readonly undurable = new Undurable();
  /** Tokens of unanswered requests. */
  readonly #waiting = new Set<number>();
  readonly #counts = { requests: 0, answers: 0, commits: 0, alarms: 0, shed: 0 };
  readonly #leads = new LeadChanges();
  #effects: ProcessEffect[] = [];
  #files: FileEffect[] = [];
  #phase: Phase = "new";
  /** Deadline of the current phase. */
  #phaseEndsAt = Number.POSITIVE_INFINITY;
  readonly #handOver = new HandOver();
  #opening: Extract<ProcessInput, { kind: "open" }> | null = null;
  /** Flush the records of the first start without waiting for more. */
  #flushFirst = false;
  #watcher: ProcessWatcher | null = null;
  readonly #sliceGroupsMax: number | undefined;
  #now = 0 as Millis;
  #wall = 0;

  constructor({ node, peers, store, sliceGroupsMax }: LedgerMachineOptions, random: Random) {
    this.node = new LedgerNode(node, random);
    this.store = new LedgerStore(store);
    this.#sliceGroupsMax = sliceGroupsMax;
    this.#peers = new LedgerPeers(
      peers,
      {
        emit: (effect) => this.#effects.push(effect),
        onMessages: (from, identity, messages) => this.#onMessages(from, identity, messages),
        onReached: (peer) => {
          if (this.#takesPart) this.node.take({ kind: "reached", peer }, this.#now, this.#wall);
        },
        refuseIdentity: (peer, identity) => this.node.refuseIdentity(peer, identity),
        lastRecord: () => this.store.view().durableLsn,
        wall: () => this.#wall,
      },
      random.fork("links"),
    );
  }

  /** File work is waiting for a turn. */
  get wantsTurn(): boolean {
    return this.store.wantsTurn;
  }

  get counts(): ProcessCounts {
    return { ...this.#counts };
  }

  /** Number of unanswered requests. */
  get waiting(): number {
    return this.#waiting.size;
  }

  get encryption(): string {
    return this.#peers.encryption;
  }

  peers(): readonly PeerView[] {
    return this.#peers.view();
  }

  /** How far this clock is ahead of a peer's; null while they agree. */
  get clockAhead(): PeerClocks["ahead"] {
    return this.#peers.clocks.ahead;
  }

  /** How long a start still waits for this clock to pass the timestamps in its own log. */
  get clockBehindMs(): number {
    return this.#phase === "waiting" ? this.node.clockBehindMs(this.#wall) : 0;
  }

  /** Installs an observer for checkers. */
  watch(watcher: ProcessWatcher): void {
    this.#watcher = watcher;
    this.#peers.watcher = watcher;
  }

  take(input: ProcessInput, now: Millis, wall: number): void {
    this.#now = now;
    this.#wall = wall;
    switch (input.kind) {
      case "done":
      case "turn":
        this.#stepStore(input);
        return;
      case "request":
        this.#onRequest(input.token, input.request);
        return;
      case "open":
        assert(this.#phase === "new", "a node opens once");
        this.#phase = "opening";
        this.#opening = input;
        this.#stepStore({ kind: "open" });
        return;
      case "start":
        assert(this.#phase === "recovered", "a node starts once, from what it has recovered");
        this.#phase = "waiting";
        this.#checkClock(true);
        return;
      case "founded":
        this.#connect();
        return;
      case "keys":
        this.#peers.useRing(input.ring);
        return;
      case "watch":
        this.#onWatch(input);
        return;
      case "giveUp":
        if (!this.#takesPart) return;
        this.#peers.drain(now);
        this.node.take(input, now, wall);
        return;
      case "watchRoom":
      case "watchEnd":
      case "passOver":
      case "mayRest":
      case "forget":
        if (this.#takesPart) this.node.take(input, now, wall);
        return;
      case "leave":
        this.#leave();
        return;
      case "tick":
        this.#onTick();
        return;
      case "say":
      case "askPeer":
      case "tellPeers":
      case "tellDisk":
      case "opened":
      case "dialFailed":
      case "bytes":
      case "drained":
      case "closed":
        this.#peers.take(input, now);
        return;
      default:
        assertNever(input);
    }
  }

  /** Returns all effects of the inputs since the last call, in execution order. */
  flush(): readonly ProcessEffect[] {
    while (this.#takesPart && this.#flushNode()) this.#stepStore({ kind: "tick" });
    if (this.#flushFirst) {
      this.#flushFirst = false;
      this.#stepStore({ kind: "flush", id: FIRST_START });
    }
    if (this.#phase === "handingOver") this.#followHandOver();
    const isBusy = this.#waiting.size > 0 || this.node.handingOver > 0;
    if (this.#phase === "draining" && !isBusy) this.#keep();
    const effects = this.#effects;
    this.#effects = [];
    for (const effect of this.takeFiles()) effects.push(effect);
    return effects;
  }

  /** File operations that need not wait for the end of the turn: the disk is idle until then. */
  takeFiles(): readonly FileEffect[] {
    const files = this.#files;
    if (files.length > 0) this.#files = [];
    return files;
  }

  nextDeadline(): Millis | null {
    const never = Number.POSITIVE_INFINITY;
    const at = Math.min(
      this.#takesPart ? (this.node.nextDeadline() ?? never) : never,
      this.#keepsFiles ? (this.store.nextDeadline() ?? never) : never,
      this.#peers.nextDeadline() ?? never,
      this.#leads.reportAt,
      this.#phaseEndsAt,
    );
    return at === never ? null : millis(at);
  }

  /** The node processes messages and timers. */
  get #takesPart(): boolean {
    return TAKING_PART.includes(this.#phase);
  }

  get #keepsFiles(): boolean {
    return this.#phase !== "new" && this.#phase !== "left" && this.#phase !== "failed";
  }

  get #isStarting(): boolean {
    const phase = this.#phase;
    return phase === "new" || phase === "opening" || phase === "recovered" || phase === "waiting";
  }

  /** Executes the effects of the node. Returns true if the store got work and may have new input for the node. */
  #flushNode(): boolean {
    let [records, bytes, reads] = [0, 0, 0];
    for (const effect of this.node.flush()) {
      if (effect.kind === "append") {
        records++;
        bytes += effect.payload.length;
        this.#append(effect);
      } else if (effect.kind === "readArchive") {
        reads++;
        this.#stepStore(effect);
      } else this.#onNodeEffect(effect);
    }
    if (records > 0) this.undurable.onAppended(records, bytes, this.#now);
    return records + reads > 0;
  }

  #append({ type, payload, wall, logical }: Extract<LedgerEffect, { kind: "append" }>): void {
    const ticket = this.store.append({ type, payload, wall, logical }, this.#now);
    assert(typeof ticket === "number", `the log takes every record of its node: ${ticket}`);
    this.#watcher?.onAppend(ticket, type, payload);
  }

  #stepStore(input: StoreInput): void {
    let durable = -1;
    for (const effect of this.store.step(input, this.#now, this.#wall)) {
      if (effect.kind === "file") this.#files.push(effect);
      else {
        if (effect.kind === "durable") durable = effect.count;
        this.#watcher?.onStore(effect);
        this.#effects.push({ kind: "store", event: effect });
        this.#onStoreEvent(effect);
      }
    }
    if (durable < 0) return;
    // The node is notified after all events of the store.
    this.undurable.onDurable(durable, this.#now);
    if (this.#takesPart) this.node.take({ kind: "durable", count: durable }, this.#now, this.#wall);
  }

  #onStoreEvent(event: StoreEvent): void {
    switch (event.kind) {
      case "opened": {
        this.node.recover(event.state, this.#now, this.#wall);
        this.#phase = "recovered";
        const groups = event.state.images.size;
        this.#effects.push({ kind: "recovered", groups, replayed: event.replayed });
        return;
      }
      case "refused":
      case "failed":
        this.#phase = "failed";
        this.#phaseEndsAt = Number.POSITIVE_INFINITY;
        return;
      case "flushed":
        this.#effects.push({ kind: "firstStart", groups: this.node.groups.size });
        return;
      case "forgotten":
        for (const jobId of event.jobIds) this.node.forget(jobId);
        return;
      case "archivedState":
        if (this.#takesPart) this.node.take(event, this.#now, this.#wall);
        return;
      case "checkpointEnded":
        if (this.#phase === "keeping") this.#stepStore({ kind: "close" });
        return;
      case "closed":
        this.#end();
        return;
      default:
    }
  }

  /** A node must not serve while its clock is behind its own log. (HLC-5) */
  #checkClock(isFirst: boolean): void {
    const behindMs = this.node.clockBehindMs(this.#wall);
    if (behindMs <= 0) {
      this.#serve();
      return;
    }
    if (isFirst) this.#log("warn", "clock.behind-own-log", { behindMs });
    this.#phaseEndsAt = this.#now + Math.min(behindMs, CLOCK_CHECK_MS);
  }

  #serve(): void {
    const { node } = this;
    const first = this.#opening?.first ?? null;
    this.#phase = "serving";
    this.#phaseEndsAt = Number.POSITIVE_INFINITY;
    node.start(this.#now, this.#wall, first);
    const sliceGroupsMax = this.#sliceGroupsMax;
    const source = {
      get appends(): number {
        return node.appends;
      },
      slices: () => snapshotSlices(node, sliceGroupsMax),
    };
    this.store.serve(source, this.#now);
    this.#effects.push({ kind: "serving" });
    if (first === null) this.#connect();
    else this.#flushFirst = true;
  }

  #connect(): void {
    assert(this.#opening !== null, "peers are called by a node that was opened");
    this.#peers.connect(this.#opening.identity, this.#now);
  }

  #onRequest(token: number, request: LedgerRequest): void {
    const refusal = this.#refusal(request);
    if (refusal !== null) {
      this.#effects.push({ kind: "answer", token, answer: refusal });
      return;
    }
    this.#counts.requests++;
    this.#waiting.add(token);
    this.node.take({ kind: "request", token, request }, this.#now, this.#wall);
  }

  #onWatch(input: Extract<ProcessInput, { kind: "watch" }>): void {
    if (this.#phase === "serving") {
      this.node.take(input, this.#now, this.#wall);
      return;
    }
    const { why } = this.#isStarting ? STARTING : GOING;
    const { token } = input;
    this.#effects.push({ kind: "watched", token, items: [{ kind: "refused", why }] });
  }

  #refusal(request: LedgerRequest): LedgerAnswer | null {
    if (this.#isStarting) return STARTING;
    if (this.#phase !== "serving") return GOING;
    return this.undurable.exceeds(shareFor(request)) ? DISK_BEHIND : null;
  }

  #onMessages(from: NodeId, identity: string, messages: readonly NodeMessage[]): void {
    if (!this.#takesPart || this.undurable.exceeds(1 - RESERVED_FOR_CANCELS)) {
      this.#counts.shed++;
      return;
    }
    this.node.take({ kind: "messages", from, identity, messages }, this.#now, this.#wall);
  }

  #onTick(): void {
    const now = this.#now;
    if (this.#keepsFiles && (this.store.nextDeadline() ?? now + 1) <= now) {
      this.#stepStore({ kind: "tick" });
    }
    if (this.#takesPart && (this.node.nextDeadline() ?? now + 1) <= now) {
      this.node.take({ kind: "tick" }, now, this.#wall);
    }
    this.#peers.tick(now);
    if (this.#leads.reportAt <= now) this.#reportLeads();
    if (this.#phaseEndsAt <= now) this.#onPhaseEnd();
  }

  #onPhaseEnd(): void {
    if (this.#phase === "waiting") this.#checkClock(false);
    else if (this.#phase === "handingOver") this.#followHandOver();
    else if (this.#phase === "draining") this.#keep();
    else this.#end();
  }

  #onNodeEffect(effect: Exclude<LedgerEffect, { kind: "append" | "readArchive" }>): void {
    switch (effect.kind) {
      case "archive":
        // Stored with the next checkpoint; until then it is in the log.
        this.store.archive.add(effect.jobId, effect.bytes, this.#wall);
        break;
      case "send":
        this.#peers.send(effect.to, effect.messages, this.#now);
        return;
      case "answer":
        // Skips requests that were already answered when the node left.
        if (!this.#waiting.delete(effect.token)) return;
        this.#counts.answers++;
        break;
      case "applied":
        this.#counts.commits++;
        break;
      case "leads":
        this.#leads.note(effect.leads, this.#now);
        break;
      case "alarm": {
        this.#counts.alarms++;
        const { group, why } = effect;
        this.#log("error", "ledger.alarm", { group, why });
        break;
      }
      default:
    }
    this.#effects.push(effect);
  }

  #reportLeads(): void {
    const change = { leading: this.node.status().leading, ...this.#leads.take() };
    this.#effects.push({ kind: "leading", ...change });
    this.#log("info", "ledger.leads", change);
  }

  #leave(): void {
    if (this.#phase !== "serving") return;
    this.#phase = "handingOver";
    this.#handOver.begin(this.#now);
    this.#peers.drain(this.#now);
    this.node.take({ kind: "giveUp" }, this.#now, this.#wall);
  }

  #followHandOver(): void {
    const isSuccessor = ({ name, up }: PeerView): boolean => up && !this.node.isLeaving(name);
    const left = this.node.handingOver > 0;
    this.#phaseEndsAt = this.#handOver.endsAt(this.peers().some(isSuccessor), this.#now);
    if (!left || this.#phaseEndsAt <= this.#now) this.#drain();
  }

  #drain(): void {
    [this.#phase, this.#phaseEndsAt] = ["draining", this.#now + DRAIN_MS_MAX];
  }

  /** Writes the last checkpoint, once no more changes are possible. */
  #keep(): void {
    this.#phase = "keeping";
    this.#phaseEndsAt = this.#now + KEEP_MS_MAX;
    const groups = this.node.handingOver;
    if (groups > 0) this.#log("warn", "ledger.notHandedOver", { groups });
    for (const token of this.#waiting) this.#effects.push({ kind: "answer", token, answer: GOING });
    this.#waiting.clear();
    this.#stepStore({ kind: "checkpoint", id: LAST_CHECKPOINT });
  }

  #end(): void {
    if (this.#phase !== "keeping") return;
    this.#phase = "left";
    this.#phaseEndsAt = Number.POSITIVE_INFINITY;
    this.#effects.push({ kind: "left", leading: this.node.handingOver });
  }

  #log(level: LogLevel, event: string, fields: Readonly<Record<string, string | number>>): void {
    this.#effects.push({ kind: "log", level, event, fields });
  }
}
