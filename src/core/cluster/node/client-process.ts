/**
 * A client of gates or managers as one machine: a link to each of them, and requests that go to one that is
 * connected. A gate is a client of the managers of each datacenter.
 * Every request ends: with an answer, or without one when its connection breaks or its time is over. Whoever
 * asks decides whether to ask again; what must happen once carries a key.
 *
 * One manager that is known is enough: it tells where the others are, and they are called, too. Whom of them a
 * client asks is the affair of its pool; it stays with that one as long as it does well, since it has seen what
 * the client did before. (AD-28)
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

/** Managers of one datacenter, by all the addresses that they have. */
const MANAGERS_MAX = 32;
/** Whoever refuses our greeting for so long does not know us; one that ends or is full does so for less. */
const REFUSED_MS = 2_000;
/** Above all numbers that callers ask with. */
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
  /** To this manager, if it is connected; null: to one that is, the same as long as it is. */
  | {
      readonly kind: "ask";
      readonly id: number;
      readonly to: Address | null;
      readonly message: StreamEnvelope;
      readonly timeoutMs: number;
    }
  /** Another manager is asked from now on: this one when it is connected, else any other. */
  | { readonly kind: "turn"; readonly to: Address | null }
  | { readonly kind: "tick" };

export type ClientEffect =
  | LinkEffect
  /** Of whom; both null: none came. */
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

interface Asked {
  readonly to: Address;
  readonly at: Millis;
}

export class ClientProcess {
  readonly #links: Links;
  readonly #managers = new Set<Address>();
  readonly #up = new Set<Address>();
  /** The datacenters that those who were greeted say they are in. */
  readonly #datacenters = new Map<string, string>();
  readonly #datacenter: string;
  readonly #node: string;
  readonly #pool: PeerPool;
  readonly #asked = new Map<number, Asked>();
  /** Requests that wait for a connection. */
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

  /** Why each manager is not connected. */
  problems(): readonly string[] {
    return [...this.#managers].flatMap((manager) => {
      const { problem } = this.#links.view(manager);
      return problem === null ? [] : [`${manager}: ${problem}`];
    });
  }

  /**
   * Nobody takes us in, and at least one says so to our face: another secret, cluster or version. Asking again
   * changes nothing.
   */
  get isRefused(): boolean {
    if (this.#up.size > 0) return false;
    return [...this.#managers].some((manager) => {
      const { refusedSince } = this.#links.view(manager);
      return refusedSince !== null && this.#now - refusedSince >= REFUSED_MS;
    });
  }

  /** As far as it was told, nobody else can be asked. */
  get isOnly(): boolean {
    return this.#managers.size === 1;
  }

  get connected(): readonly Address[] {
    return [...this.#up];
  }

  /** Whom it asks, and how they do. */
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
    this.#asked.set(id, { to, at: this.#now });
    this.#links.send(to, encodeStreamMessage({ ...message, correlation: id }), this.#now);
  }

  /** The greeting again: whoever answers it would answer a question. */
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
    // In turn, and not the one that is turned away from while there is another.
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

  /** What is not understood has its answer: it would not be the next time either. */
  #onRefused(manager: Address, refusal: Extract<StreamEnvelope, { name: "refusal" }>): void {
    if (refusal.value.code !== NOT_UNDERSTOOD) return;
    const open = [...this.#asked].filter(([, { to }]) => to === manager).map(([id]) => id);
    // One of an earlier version does not say which one it means.
    const [only] = open.length === 1 ? open : [];
    const id = refusal.correlation === 0 ? only : refusal.correlation;
    if (id !== undefined && open.includes(id)) this.#settle(id, refusal);
  }

  #onDown(manager: Address, problem: string): void {
    this.#up.delete(manager);
    this.#pool.remove(manager, this.#now);
    this.#effects.push({ kind: "link", manager, up: false, problem });
    for (const [id, { to }] of [...this.#asked]) if (to === manager) this.#settle(id, null);
    if (this.isRefused) for (const { id } of this.#waiting) this.#settle(id, null);
  }

  #judge({ at, to }: Asked, isAnswered: boolean): void {
    if (isAnswered) this.#pool.succeeded(to, this.#now - at, this.#now);
    else this.#pool.failed(to, this.#now);
  }

  #settle(id: number, answer: StreamEnvelope | null): void {
    const asked = this.#asked.get(id);
    this.#asked.delete(id);
    if (asked !== undefined) this.#judge(asked, answer !== null);
    if (id > PROBE_IDS_FROM) {
      this.#deadlines.delete(id);
      return;
    }
    const waited = this.#waiting.some((ask) => ask.id === id);
    if (asked === undefined && !waited) return;
    this.#waiting = this.#waiting.filter((ask) => ask.id !== id);
    this.#deadlines.delete(id);
    const from = answer === null ? null : (asked?.to ?? null);
    this.#effects.push({ kind: "answered", id, from, answer });
  }
}
