/**
 * The process of a ledger node as one machine: the node, its links to its peers, and whoever asks it
 * something. Production and simulator drive this object; there is no other composition of it.
 *
 *     bytes    ─► links ─► messages of peers ─┐                 ┌─► batches ─► links ─► bytes
 *     requests ─► room for them? ─────────────┼─► LedgerNode ───┼─► append, durable(n) comes back
 *     durable  ───────────────────────────────┘                 └─► answers, archive, alarms
 *
 *     starting ──start──► serving ──leave──► handing over ──► draining ──► idle
 *
 * It accepts connections from the beginning, so that a peer learns whether they belong together while
 * this node still reads its disk. Nothing is taken from anybody before `start`, and nobody is called
 * before `connect`. (CKPT-6)
 */

import { assert, assertNever } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import { millis } from "../../base/brand.ts";
import type { NodeId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { LedgerAnswer, LedgerRequest, NodeMessage } from "../../ledger/node/messages.ts";
import { LedgerNode, type RecoveredLedger } from "../../ledger/node/node.ts";
import type { LedgerEffect, LedgerOptions } from "../../ledger/node/types.ts";
import { LedgerPeers, type LedgerPeersOptions, type PeersWatcher } from "./ledger-peers.ts";
import type { PeerView, ProcessCounts, ProcessEffect, ProcessInput } from "./types.ts";
import { Undurable } from "./undurable.ts";

/** Changes of who leads are told together this long after the first. */
const LEADS_EVERY_MS = 1_000;
/** The groups this node leads find another primary, for so long, before it goes. */
const HAND_OVER_MS_MAX = 3_000;
/** After that, requests under way may finish for so long. */
const DRAIN_MS_MAX = 1_000;

const STARTING = { kind: "retry", why: "the node is starting; ask another" } as const;
const GOING = { kind: "retry", why: "the node is going down; ask another" } as const;
const DISK_BEHIND: LedgerAnswer = { kind: "retry", why: "the disk is behind" };

interface LedgerMachineOptions {
  readonly node: LedgerOptions;
  readonly peers: LedgerPeersOptions;
}

export class LedgerMachine {
  readonly node: LedgerNode;
  readonly #peers: LedgerPeers;
  readonly #undurable = new Undurable();
  /** Tokens of requests without an answer yet. */
  readonly #waiting = new Set<number>();
  readonly #counts = { requests: 0, answers: 0, commits: 0, alarms: 0, shed: 0 };
  readonly #leads = { gained: 0, lost: 0, tellAt: Number.POSITIVE_INFINITY };
  #effects: ProcessEffect[] = [];
  #phase: "starting" | "serving" | "handingOver" | "draining" | "idle" = "starting";
  /** The phases of leaving end by then. */
  #phaseEndsAt = Number.POSITIVE_INFINITY;
  #now = 0 as Millis;
  #wall = 0;

  constructor({ node, peers }: LedgerMachineOptions, random: Random) {
    this.node = new LedgerNode(node, random);
    this.#peers = new LedgerPeers(
      peers,
      {
        emit: (effect) => this.#effects.push(effect),
        onMessages: (from, identity, messages) => this.#onMessages(from, identity, messages),
        refuseIdentity: (peer, identity) => this.node.refuseIdentity(peer, identity),
      },
      random.fork("links"),
    );
  }

  get counts(): ProcessCounts {
    return { ...this.#counts };
  }

  /** Requests without an answer yet. */
  get waiting(): number {
    return this.#waiting.size;
  }

  get encryption(): string {
    return this.#peers.encryption;
  }

  peers(): readonly PeerView[] {
    return this.#peers.view();
  }

  /** For checkers. */
  watch(watcher: PeersWatcher): void {
    this.#peers.watcher = watcher;
  }

  /** Before `start`: what the log says about each group. */
  recover(recovered: RecoveredLedger, now: Millis, wall: number): void {
    assert(this.#phase === "starting", "a node recovers before it starts");
    this.node.recover(recovered, now, wall);
  }

  /** See `LedgerNode.start` for `first`. */
  start(first: "found" | "join" | null, now: Millis, wall: number): void {
    assert(this.#phase === "starting", "a node starts once");
    this.#phase = "serving";
    this.node.start(now, wall, first);
  }

  take(input: ProcessInput, now: Millis, wall: number): void {
    this.#now = now;
    this.#wall = wall;
    switch (input.kind) {
      case "durable":
        this.#undurable.onDurable(input.count);
        this.node.take(input, now, wall);
        return;
      case "request":
        this.#onRequest(input.token, input.request);
        return;
      case "connect":
        this.#peers.connect(input.identity, now);
        return;
      case "keys":
        this.#peers.useRing(input.ring);
        return;
      case "watch":
        this.#onWatch(input);
        return;
      case "watchRoom":
      case "watchEnd":
        if (this.#phase !== "starting") this.node.take(input, now, wall);
        return;
      case "leave":
        this.#leave();
        return;
      case "tick":
        this.#onTick();
        return;
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

  /** Everything that the inputs since the last call brought about, in the order to carry it out. */
  flush(): readonly ProcessEffect[] {
    let [records, bytes] = [0, 0];
    for (const effect of this.node.flush()) {
      if (effect.kind === "append") {
        records++;
        bytes += effect.payload.length;
      }
      this.#onNodeEffect(effect);
    }
    if (records > 0) this.#undurable.onAppended(records, bytes);
    if (this.#phase === "handingOver" && this.node.handingOver === 0) this.#drain();
    if (this.#phase === "draining" && this.#waiting.size === 0) this.#end();
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  nextDeadline(): Millis | null {
    const node = this.#phase === "starting" ? null : this.node.nextDeadline();
    const at = Math.min(
      node ?? Number.POSITIVE_INFINITY,
      this.#peers.nextDeadline() ?? Number.POSITIVE_INFINITY,
      this.#leads.tellAt,
      this.#phaseEndsAt,
    );
    return at === Number.POSITIVE_INFINITY ? null : millis(at);
  }

  #onRequest(token: number, request: LedgerRequest): void {
    const refusal = this.#refusal();
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
    const { why } = this.#phase === "starting" ? STARTING : GOING;
    const { token } = input;
    this.#effects.push({ kind: "watched", token, items: [{ kind: "refused", why }] });
  }

  #refusal(): LedgerAnswer | null {
    if (this.#phase === "starting") return STARTING;
    if (this.#phase !== "serving") return GOING;
    return this.#undurable.isTooMuch ? DISK_BEHIND : null;
  }

  #onMessages(from: NodeId, identity: string, messages: readonly NodeMessage[]): void {
    if (this.#phase === "starting" || this.#undurable.isTooMuch) {
      this.#counts.shed++;
      return;
    }
    this.node.take({ kind: "messages", from, identity, messages }, this.#now, this.#wall);
  }

  #onTick(): void {
    const now = this.#now;
    if (this.#phase !== "starting" && (this.node.nextDeadline() ?? now + 1) <= now) {
      this.node.take({ kind: "tick" }, now, this.#wall);
    }
    this.#peers.tick(now);
    if (this.#leads.tellAt <= now) this.#tellLeads();
    if (this.#phaseEndsAt > now) return;
    if (this.#phase === "handingOver") this.#drain();
    else this.#end();
  }

  #onNodeEffect(effect: LedgerEffect): void {
    switch (effect.kind) {
      case "send":
        this.#peers.send(effect.to, effect.messages, this.#now);
        return;
      case "answer":
        // One that was told when the node went has its answer.
        if (!this.#waiting.delete(effect.token)) return;
        this.#counts.answers++;
        break;
      case "applied":
        this.#counts.commits++;
        break;
      case "leads":
        this.#onLeads(effect.leads);
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

  #onLeads(leads: boolean): void {
    if (leads) this.#leads.gained++;
    else this.#leads.lost++;
    this.#leads.tellAt = Math.min(this.#leads.tellAt, this.#now + LEADS_EVERY_MS);
  }

  #tellLeads(): void {
    const { gained, lost } = this.#leads;
    Object.assign(this.#leads, { gained: 0, lost: 0, tellAt: Number.POSITIVE_INFINITY });
    const { leading } = this.node.status();
    this.#effects.push({ kind: "leading", leading, gained, lost });
    this.#log("info", "ledger.leads", { leading, gained, lost });
  }

  #leave(): void {
    if (this.#phase !== "serving") return;
    this.#phase = "handingOver";
    this.#phaseEndsAt = this.#now + HAND_OVER_MS_MAX;
    this.node.take({ kind: "giveUp", group: null }, this.#now, this.#wall);
  }

  #drain(): void {
    this.#phase = "draining";
    this.#phaseEndsAt = this.#now + DRAIN_MS_MAX;
  }

  #end(): void {
    this.#phase = "idle";
    this.#phaseEndsAt = Number.POSITIVE_INFINITY;
    for (const token of this.#waiting) this.#effects.push({ kind: "answer", token, answer: GOING });
    this.#waiting.clear();
    this.#effects.push({ kind: "idle" });
  }

  #log(
    level: "info" | "error",
    event: string,
    fields: Readonly<Record<string, string | number>>,
  ): void {
    this.#effects.push({ kind: "log", level, event, fields });
  }
}
