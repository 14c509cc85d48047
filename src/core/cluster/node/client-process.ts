/**
 * Client of gates or managers as one state machine: a link to each of them, and requests to a connected one. A gate is
 * a client of the managers of each datacenter. Every request completes: with an answer, or without one when its
 * connection breaks or its deadline passes. The caller decides whether to retry; operations that must happen once carry
 * a key.
 *
 * One known manager is enough: it returns the addresses of the others, which are dialled too. The pool selects the
 * manager to ask, and stays with it while it is healthy, because it has seen the client's earlier requests. (AD-28)
 */

import type { Compressor } from "../../../host/ports/compressor.ts";
import type { Hello } from "../../../wire/hello.ts";
import type { KeyRing } from "../../../wire/key-ring.ts";
import { encodeStreamMessage, type StreamEnvelope } from "../../../wire/registry.ts";
import type { Entropy } from "../../../wire/seal.ts";
import type { Millis } from "../../base/brand.ts";
import { Deadlines } from "../../base/deadlines.ts";
import type { Address } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { QUEUE_LIMITS } from "../link/limits.ts";
import { Links } from "../link/links.ts";
import { NOT_UNDERSTOOD } from "../link/refusal.ts";
import { LINK_RULES } from "../link/rules.ts";
import type { LinkEffect, LinkInput } from "../link/types.ts";
import { PeerPool, type PoolView } from "../routing/peer-pool.ts";

/** Maximum number of manager addresses of one datacenter. */
const MANAGERS_MAX = 32;
/**
 * A peer that rejects our greeting for this long does not trust us; one that is exiting or full does so only briefly.
 */
const REFUSED_MS = 2_000;
/** First id of probes, above all ids of callers. */
const PROBE_IDS_FROM = 2 ** 32;
const PROBE_MS = 5_000;

interface ClientProcessOptions {
  readonly hello: Hello;
  readonly managers: readonly Address[];
  readonly ring: KeyRing;
  readonly entropy: Entropy;
  readonly compressor: Compressor;
}

export type ClientInput =
  | LinkInput
  | { readonly kind: "start" }
  /** Asks this manager, if connected; null for the preferred one. */
  | {
      readonly kind: "ask";
      readonly id: number;
      readonly to: Address | null;
      readonly message: StreamEnvelope;
      readonly timeoutMs: number;
    }
  /** Switches to another manager: this one if connected, else any other. */
  | { readonly kind: "turn"; readonly to: Address | null }
  | { readonly kind: "tick" };

export type ClientEffect =
  | LinkEffect
  /** Answer and its sender; both null if none came. */
  | {
      readonly kind: "answered";
      readonly id: number;
      readonly from: Address | null;
      readonly answer: StreamEnvelope | null;
    }
  | {
      readonly kind: "link";
      readonly manager: Address;
      readonly up: boolean;
      readonly problem: string | null;
    };

interface PendingRequest {
  readonly to: Address;
  readonly at: Millis;
}

export class ClientProcess {
  readonly #links: Links;
  readonly #managers = new Set<Address>();
  readonly #up = new Set<Address>();
  /** Datacenter that each greeted peer reports. */
  readonly #datacenters = new Map<string, string>();
  readonly #datacenter: string;
  readonly #node: string;
  readonly #pool: PeerPool;
  readonly #pending = new Map<number, PendingRequest>();
  /** Requests waiting for a connection. */
  #waiting: Extract<ClientInput, { kind: "ask" }>[] = [];
  readonly #deadlines = new Deadlines<number>();
  #preferred: Address | null = null;
  #isCalling = false;
  #probes = 0;
  #effects: ClientEffect[] = [];
  #now = 0 as Millis;

  constructor(options: ClientProcessOptions, random: Random) {
    const { hello, ring, entropy, compressor, managers } = options;
    this.#datacenter = hello.datacenter;
    this.#node = hello.node;
    this.#pool = new PeerPool({ selector: hello.node, role: hello.role }, random.fork("pool"));
    this.#links = new Links(
      {
        ...{ hello, ring, entropy, compressor },
        ...{ limits: QUEUE_LIMITS, rules: LINK_RULES },
        emit: (effect) => this.#effects.push(effect),
      },
      {
        refusePeer: (peer, { datacenter, node, role }) => {
          this.#datacenters.set(peer, datacenter);
          return role === "manager" || (role === "gate" && hello.role === "client")
            ? null
            : `"${node}" is a ${role} and takes no jobs`;
        },
        opening: () => ({ name: "clientOpening", correlation: 1, value: { client: hello.node } }),
        refuseOpened: (_peer, answer) => {
          if (answer.name !== "opened") return `a manager does not answer with ${answer.name}`;
          for (const address of answer.value.addresses) this.#know(address as Address);
          return null;
        },
        onSent: () => undefined,
        onUp: (peer) => this.#onUp(peer as Address),
        onRefused: (peer, refusal) => this.#onRefused(peer as Address, refusal),
        onDown: (peer, problem) => this.#onDown(peer as Address, problem),
        onPush: (_peer, message) => this.#settle(message.correlation, message),
        onDropped: () => undefined,
        onRequest: (incoming) =>
          this.#links.refuse(incoming, "ROLE", "a client is not called", this.#now),
        onMessage: ({ stream }) => this.#links.destroy(stream, "a client is not called", this.#now),
        onGone: () => undefined,
      },
      random,
    );
    for (const address of managers) this.#know(address);
  }

  /** Reasons why managers are not connected. */
  problems(): readonly string[] {
    return [...this.#managers].flatMap((manager) => {
      const { problem } = this.#links.view(manager);
      return problem === null ? [] : [`${manager}: ${problem}`];
    });
  }

  /**
   * No manager is connected, and at least one rejects us explicitly: wrong secret, cluster or version. Retrying is
   * pointless.
   */
  get isRefused(): boolean {
    if (this.#up.size > 0) return false;
    return [...this.#managers].some((manager) => {
      const { refusedSince } = this.#links.view(manager);
      return refusedSince !== null && this.#now - refusedSince >= REFUSED_MS;
    });
  }

  /** Only one manager is known. */
  get isOnly(): boolean {
    return this.#managers.size === 1;
  }

  get connected(): readonly Address[] {
    return [...this.#up];
  }

  /** Pool of managers and their health. */
  get pool(): PoolView {
    return this.#pool.view(this.#now);
  }

  step(input: ClientInput, now: Millis): readonly ClientEffect[] {
    this.#now = now;
    switch (input.kind) {
      case "start":
        this.#isCalling = true;
        this.#links.call(now);
        break;
      case "ask":
        this.#deadlines.set(input.id, now + input.timeoutMs);
        this.#ask(input);
        break;
      case "turn":
        this.#turn(input.to);
        break;
      case "tick":
        this.#links.tick(now);
        for (const id of this.#deadlines.takeDue(now)) this.#settle(id, null);
        if (now >= this.#pool.nextDeadline())
          for (const evicted of this.#pool.onTick(now)) this.#probe(evicted as Address);
        break;
      default:
        this.#links.take(input, now);
    }
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  nextDeadline(): Millis | null {
    const never = Number.POSITIVE_INFINITY;
    const at = Math.min(
      this.#links.nextDeadline() ?? never,
      this.#deadlines.next() ?? never,
      this.#pool.nextDeadline(),
    );
    return at === never ? null : (at as Millis);
  }

  #know(manager: Address): void {
    if (this.#managers.has(manager) || this.#managers.size >= MANAGERS_MAX) return;
    this.#managers.add(manager);
    this.#links.keep(manager, manager);
    if (this.#isCalling) this.#links.call(this.#now);
  }

  #ask(ask: Extract<ClientInput, { kind: "ask" }>): void {
    const to = ask.to ?? this.#chosen();
    if (to === null || !this.#up.has(to)) {
      this.#waiting.push(ask);
      if (to !== null) this.#settle(ask.id, null);
      return;
    }
    this.#send(to, ask.id, ask.message);
  }

  #send(to: Address, id: number, message: StreamEnvelope): void {
    this.#pending.set(id, { to, at: this.#now });
    this.#links.send(to, encodeStreamMessage({ ...message, correlation: id }), this.#now);
  }

  /** Repeats the greeting: a manager that answers it would answer a request. */
  #probe(to: Address): void {
    const id = PROBE_IDS_FROM + ++this.#probes;
    this.#deadlines.set(id, this.#now + PROBE_MS);
    this.#send(to, id, { name: "clientOpening", correlation: id, value: { client: this.#node } });
  }

  #chosen(): Address | null {
    if (this.#preferred === null || !this.#up.has(this.#preferred))
      this.#preferred = this.#pool.choose() as Address | null;
    return this.#preferred;
  }

  #turn(to: Address | null): void {
    if (to !== null) this.#know(to);
    if (to !== null && this.#up.has(to)) {
      this.#preferred = to;
      return;
    }
    const last = this.#preferred;
    this.#preferred = this.#pool.choose() as Address | null;
    // Draws once more if the pool returned the current manager.
    if (this.#preferred === last) this.#preferred = this.#pool.choose() as Address | null;
  }

  #onUp(manager: Address): void {
    this.#up.add(manager);
    const isNear = this.#datacenter !== "" && this.#datacenters.get(manager) === this.#datacenter;
    this.#pool.add(manager, isNear ? "same_dc" : "global", this.#now);
    this.#effects.push({ kind: "link", manager, up: true, problem: null });
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const ask of waiting) this.#ask(ask);
  }

  /** Completes a message that the peer does not understand: a retry would fail too. */
  #onRefused(manager: Address, refusal: Extract<StreamEnvelope, { name: "refusal" }>): void {
    if (refusal.value.code !== NOT_UNDERSTOOD) return;
    const open = [...this.#pending].filter(([, { to }]) => to === manager).map(([id]) => id);
    // Earlier versions do not send the correlation.
    const [only] = open.length === 1 ? open : [];
    const id = refusal.correlation === 0 ? only : refusal.correlation;
    if (id !== undefined && open.includes(id)) this.#settle(id, refusal);
  }

  #onDown(manager: Address, problem: string): void {
    this.#up.delete(manager);
    this.#pool.remove(manager, this.#now);
    this.#effects.push({ kind: "link", manager, up: false, problem });
    for (const [id, { to }] of [...this.#pending]) if (to === manager) this.#settle(id, null);
    if (this.isRefused) for (const { id } of this.#waiting) this.#settle(id, null);
  }

  #judge({ at, to }: PendingRequest, isAnswered: boolean): void {
    if (isAnswered) this.#pool.succeeded(to, this.#now - at, this.#now);
    else this.#pool.failed(to, this.#now);
  }

  #settle(id: number, answer: StreamEnvelope | null): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (pending !== undefined) this.#judge(pending, answer !== null);
    if (id > PROBE_IDS_FROM) {
      this.#deadlines.delete(id);
      return;
    }
    const waited = this.#waiting.some((ask) => ask.id === id);
    if (pending === undefined && !waited) return;
    this.#waiting = this.#waiting.filter((ask) => ask.id !== id);
    this.#deadlines.delete(id);
    const from = answer === null ? null : (pending?.to ?? null);
    this.#effects.push({ kind: "answered", id, from, answer });
  }
}
