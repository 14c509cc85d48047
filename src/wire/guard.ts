/**
 * The guard of a member's datagrams: seals outgoing packets, and accepts only packets that a holder of the key made for
 * us, now, once.
 *
 * Every process draws a random session at its start. A data packet names the session it comes from and the session it
 * is meant for. So a recorded packet is rejected
 *
 * - by the window of its sender's counters, while we have it;
 * - by the name of our former session, after we restarted;
 * - by the window again, after its sender restarted: the old session's window stays.
 *
 * Neither clock nor disk is involved. The price is one round trip at first contact: a sender that does not know the
 * receiver's session greets it and queues its packets; the receiver answers with an introduction, bound to the sender's
 * session and to the greeting's counter, and only then do packets flow. A packet bound to a former session of ours is
 * treated as a greeting, so a restart heals in one round trip.
 *
 *     A                                   B
 *       greeting  (from a, to nobody)  →      nothing inside is believed: it may be a recording
 *       ←  introduction (from b, to a, echo of the greeting's counter)
 *       data      (from a, to b)       →      fresh: b exists only since B's start
 *
 * S1: a packet's content is passed on at most once. S2: never when sealed before our current session. S3: memory is
 * bounded, and forgetting never reopens the past: when too many closed sessions are remembered we take a new session
 * ourselves, which rejects everything older.
 */

import type { Address } from "../core/base/ids.ts";
import { hostKey, hostOf } from "./address.ts";
import { type KeyRing, type RingKey, sessionKey } from "./key-ring.ts";
import {
  DESTINATIONS_MAX,
  GREETING_REPEAT_MS,
  HELD_MAX,
  HELD_MS_MAX,
  HELD_PER_DESTINATION_MAX,
  MEMBER_BUCKET_PER_SECOND,
  MEMBER_BUCKET_SIZE,
  SESSION_PACKETS_MAX,
  SESSIONS_CLOSED_MAX,
  SESSIONS_MAX,
  SOURCE_BUCKET_PER_SECOND,
  SOURCE_BUCKET_SIZE,
  SOURCES_MAX,
  STRANGERS_BUCKET_PER_SECOND,
  STRANGERS_BUCKET_SIZE,
} from "./limits.ts";
import { BucketTable, TokenBucket } from "./rate-limit.ts";
import { ReplayWindow } from "./replay-window.ts";
import {
  type Entropy,
  type Heading,
  isFor,
  isFrom,
  NO_PEER,
  openPacket,
  type PacketKind,
  peerTag,
  readHeader,
  SESSION_BYTES,
  sealPacket,
  sessionOf,
  sessionText,
} from "./seal.ts";

interface GuardOptions {
  readonly ring: KeyRing;
  readonly entropy: Entropy;
}

export interface OutgoingPacket {
  readonly to: Address;
  readonly bytes: Uint8Array;
}

type GuardRefusal =
  | "short"
  | "version"
  | "kind"
  | "unknownKey"
  | "limited" // by the rate limit of its source, of all strangers, or of its session
  | "forged" // does not open
  | "reflected" // our own packet came back
  | "replayed"
  | "stale" // meant for a session that we are no longer; answered with an introduction
  | "unasked"; // an introduction that answers nothing of ours

interface Opened {
  readonly plain: Uint8Array | null;
  readonly refusal: GuardRefusal | null;
  /** Packets to send now: an introduction, or the packets queued for this source. */
  readonly send: readonly OutgoingPacket[];
}

interface Session {
  /** Place in the order in which we met sessions; a later one of the same address replaces. */
  readonly order: number;
  readonly tag: Uint8Array;
  readonly window: ReplayWindow;
  readonly bucket: TokenBucket;
  readonly keys: Map<number, Uint8Array>;
}

interface Destination {
  /** Null until it introduced itself. */
  tag: Uint8Array | null;
  order: number;
  /** Our first packet to it after we learned its session: an introduction must echo this one or a later. */
  since: number;
  greetedAt: number | null;
  held: { readonly plain: Uint8Array; readonly at: number }[];
}

const NOTHING: readonly OutgoingPacket[] = [];

export class DatagramGuard {
  readonly #entropy: Entropy;
  #ring: KeyRing;
  #session: Uint8Array;
  #tag: Uint8Array;
  #sealKey: Uint8Array;
  #counter = 0;
  #order = 0;
  #heldCount = 0;
  /** By the session's bytes, in the order in which we met them. */
  readonly #sessions = new Map<string, Session>();
  readonly #closed = new Map<string, number>();
  readonly #destinations = new Map<Address, Destination>();
  readonly #sources = new BucketTable(SOURCE_BUCKET_SIZE, SOURCE_BUCKET_PER_SECOND, SOURCES_MAX);
  readonly #strangers = new TokenBucket(STRANGERS_BUCKET_SIZE, STRANGERS_BUCKET_PER_SECOND, 0);
  readonly #refused = new Map<GuardRefusal, number>();
  readonly #openedBy = new Map<number, number>();

  constructor(options: GuardOptions) {
    this.#entropy = options.entropy;
    this.#ring = options.ring;
    this.#session = this.#entropy(SESSION_BYTES);
    this.#tag = peerTag(this.#session);
    this.#sealKey = this.#deriveOwn();
  }

  /** A rotated ring takes effect at once; sessions and counters go on under the new key. */
  setRing(ring: KeyRing): void {
    this.#ring = ring;
    this.#sealKey = this.#deriveOwn();
    for (const session of this.#sessions.values()) {
      for (const id of session.keys.keys()) {
        if (ring.find(id) === undefined) session.keys.delete(id);
      }
    }
  }

  /** Returns the packets to send: the sealed packet, or a greeting while the receiver is unknown. */
  seal(to: Address, plain: Uint8Array, now: number): readonly OutgoingPacket[] {
    const destination = this.#destination(to);
    if (destination.tag !== null) {
      return [{ to, bytes: this.#sealAs("data", destination.tag, plain) }];
    }
    this.#hold(destination, plain, now);
    const { greetedAt } = destination;
    if (greetedAt !== null && now - greetedAt < GREETING_REPEAT_MS) return NOTHING;
    destination.greetedAt = now;
    return [{ to, bytes: this.#sealAs("greeting", NO_PEER, new Uint8Array(0)) }];
  }

  open(source: Address, packet: Uint8Array, now: number): Opened {
    const header = readHeader(packet);
    if (typeof header === "string") return this.#refuse(header);
    const key = this.#ring.find(header.keyId);
    if (key === undefined) return this.#refuse("unknownKey");
    if (isFrom(packet, this.#session)) return this.#refuse("reflected");
    const session = this.#sessions.get(sessionText(packet));
    if (session !== undefined && header.kind === "data" && isFor(packet, this.#tag)) {
      return this.#openKnown(source, packet, header, key, session, now);
    }
    return this.#openStranger(source, packet, header, key, now);
  }

  /** For metrics and status. */
  get counts(): {
    readonly refused: ReadonlyMap<GuardRefusal, number>;
    readonly openedBy: ReadonlyMap<number, number>;
    readonly sessions: number;
    readonly destinations: number;
    readonly held: number;
  } {
    return {
      refused: this.#refused,
      openedBy: this.#openedBy,
      sessions: this.#sessions.size + this.#closed.size,
      destinations: this.#destinations.size,
      held: this.#heldCount,
    };
  }

  #openKnown(
    source: Address,
    packet: Uint8Array,
    header: Heading,
    key: RingKey,
    session: Session,
    now: number,
  ): Opened {
    if (!session.window.isFresh(header.counter)) return this.#refuse("replayed");
    const plain = openPacket(key.aead, this.#keyOf(session, key, packet), packet);
    if (plain === null) return this.#refuse("forged");
    // Charge the limit only after opening: headers are visible on the way, and an attacker copying one must not use up
    // the member's rate.
    session.window.accept(header.counter);
    if (!session.bucket.take(now)) return this.#refuse("limited");
    this.#count(this.#openedBy, key.id);
    return { plain, refusal: null, send: this.#learn(source, session, now) };
  }

  /** Somebody we have not met, or who has not met our present self: dear, hence limited. */
  #openStranger(
    source: Address,
    packet: Uint8Array,
    header: Heading,
    key: RingKey,
    now: number,
  ): Opened {
    // By host: one host has 65,000 ports to send from.
    if (!this.#sources.take(hostKey(hostOf(source)), now) || !this.#strangers.take(now)) {
      return this.#refuse("limited");
    }
    const sender = sessionKey(this.#ring, key, "datagram", sessionOf(packet));
    const plain = openPacket(key.aead, sender, packet);
    if (plain === null) return this.#refuse("forged");
    if (header.kind === "greeting") return this.#introduce(source, packet, header, null);
    if (!isFor(packet, this.#tag)) return this.#introduce(source, packet, header, "stale");
    if (header.kind === "introduction" && !this.#wasAsked(source, plain)) {
      return this.#refuse("unasked");
    }
    const session = this.#meet(packet, now);
    session.keys.set(key.id, sender);
    if (!session.window.accept(header.counter)) return this.#refuse("replayed");
    this.#count(this.#openedBy, key.id);
    const introduced = header.kind === "introduction";
    const send = this.#learn(source, session, now, introduced);
    return { plain: introduced ? null : plain, refusal: null, send };
  }

  /** Introduces our current session, bound to the asker's session and to its greeting. */
  #introduce(
    source: Address,
    packet: Uint8Array,
    header: Heading,
    refusal: GuardRefusal | null,
  ): Opened {
    if (refusal !== null) this.#count(this.#refused, refusal);
    const echo = new Uint8Array(6);
    let rest = header.counter;
    for (let i = 5; i >= 0; i--) {
      echo[i] = rest % 256;
      rest = Math.floor(rest / 256);
    }
    const bytes = this.#sealAs("introduction", peerTag(sessionOf(packet)), echo);
    return { plain: null, refusal, send: [{ to: source, bytes }] };
  }

  #wasAsked(source: Address, echo: Uint8Array): boolean {
    const destination = this.#destinations.get(source);
    if (destination === undefined || echo.length !== 6) return false;
    let counter = 0;
    for (const byte of echo) counter = counter * 256 + byte;
    return counter >= destination.since && counter < this.#counter;
  }

  #meet(packet: Uint8Array, now: number): Session {
    const id = sessionText(packet);
    const held = this.#sessions.get(id);
    if (held !== undefined) return held;
    const session: Session = {
      order: ++this.#order,
      tag: peerTag(sessionOf(packet)),
      window: new ReplayWindow(this.#closed.get(id) ?? -1),
      bucket: new TokenBucket(MEMBER_BUCKET_SIZE, MEMBER_BUCKET_PER_SECOND, now),
      keys: new Map(),
    };
    this.#closed.delete(id);
    this.#sessions.set(id, session);
    this.#boundSessions();
    return session;
  }

  #boundSessions(): void {
    if (this.#sessions.size <= SESSIONS_MAX) return;
    for (const [id, oldest] of this.#sessions) {
      this.#sessions.delete(id);
      this.#closed.set(id, oldest.window.highest);
      break;
    }
    // S3: rather than forget a window, become somebody whom no recorded packet is meant for.
    if (this.#closed.size > SESSIONS_CLOSED_MAX) this.#renew();
  }

  /** The source speaks from this session: what we send it from now on is meant for that session. */
  #learn(
    source: Address,
    session: Session,
    now: number,
    introduced = false,
  ): readonly OutgoingPacket[] {
    const destination = this.#destination(source);
    // A late packet of a former session changes nothing; an introduction that we requested always does.
    const newer = destination.tag === null || session.order > destination.order;
    if (!newer && !introduced) return NOTHING;
    destination.tag = session.tag;
    destination.order = session.order;
    destination.since = this.#counter;
    destination.greetedAt = null;
    const { held } = destination;
    if (held.length === 0) return NOTHING;
    destination.held = [];
    this.#heldCount -= held.length;
    return held
      .filter(({ at }) => now - at <= HELD_MS_MAX)
      .map(({ plain }) => ({ to: source, bytes: this.#sealAs("data", session.tag, plain) }));
  }

  #destination(to: Address): Destination {
    const known = this.#destinations.get(to);
    if (known !== undefined) return known;
    const destination: Destination = {
      tag: null,
      order: 0,
      since: this.#counter,
      greetedAt: null,
      held: [],
    };
    this.#destinations.set(to, destination);
    if (this.#destinations.size > DESTINATIONS_MAX) {
      for (const [oldest, { held }] of this.#destinations) {
        this.#heldCount -= held.length;
        this.#destinations.delete(oldest);
        break;
      }
    }
    return destination;
  }

  #hold(destination: Destination, plain: Uint8Array, now: number): void {
    destination.held.push({ plain, at: now });
    this.#heldCount++;
    const tooMany = destination.held.length > HELD_PER_DESTINATION_MAX;
    if (!tooMany && this.#heldCount <= HELD_MAX) return;
    destination.held.shift();
    this.#heldCount--;
  }

  #keyOf(session: Session, key: RingKey, packet: Uint8Array): Uint8Array {
    const held = session.keys.get(key.id);
    if (held !== undefined) return held;
    const derived = sessionKey(this.#ring, key, "datagram", sessionOf(packet));
    session.keys.set(key.id, derived);
    return derived;
  }

  #sealAs(kind: PacketKind, peer: Uint8Array, plain: Uint8Array): Uint8Array {
    if (this.#counter >= SESSION_PACKETS_MAX) this.#renew();
    const { id: keyId, aead } = this.#ring.current;
    const header = {
      kind,
      keyId,
      session: this.#session,
      peer,
      counter: this.#counter++,
    };
    return sealPacket(aead, this.#sealKey, header, plain);
  }

  /** As after a restart: nothing sealed for us before this time will open. */
  #renew(): void {
    this.#session = this.#entropy(SESSION_BYTES);
    this.#tag = peerTag(this.#session);
    this.#sealKey = this.#deriveOwn();
    this.#counter = 0;
    this.#sessions.clear();
    this.#closed.clear();
    for (const destination of this.#destinations.values()) destination.since = 0;
  }

  #deriveOwn(): Uint8Array {
    return sessionKey(this.#ring, this.#ring.current, "datagram", this.#session);
  }

  #refuse(refusal: GuardRefusal): Opened {
    this.#count(this.#refused, refusal);
    return { plain: null, refusal, send: NOTHING };
  }

  #count<Key>(counts: Map<Key, number>, key: Key): void {
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
}
