/**
 * The guard of one stream connection. Both sides draw a session for this connection alone; after one greeting and one
 * answer every frame is bound to the other side's session and counted without gaps.
 *
 *     client                                     server
 *       greeting · hello            →              judged: cluster, environment, version, certificate
 *       ←  introduction · welcome or refusal
 *       data 1, data 2, …           ⇄              data 1, data 2, …
 *
 * A client has a different kind of key: the server answers it under that key, and accepts only clients with it.
 *
 * A replayed greeting earns an answer and nothing more: later frames cannot be bound to a freshly drawn session. A
 * frame lost, repeated, reordered or changed closes the connection.
 */

import { assert } from "../core/base/assert.ts";
import type { Aead } from "../host/ports/aead.ts";
import type { Claims } from "./claims.ts";
import { type Hello, type HelloAnswer, hello, helloAnswer, judgeHello } from "./hello.ts";
import { type KeyRing, type RingKey, sessionKey } from "./key-ring.ts";
import { decode, encode } from "./schema.ts";
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
} from "./seal.ts";

interface StreamGuardOptions {
  readonly ring: KeyRing;
  readonly entropy: Entropy;
  readonly side: "client" | "server";
  readonly hello: Hello;
  /** Claims of the peer's certificate; null without mutual TLS. */
  readonly claims: Claims | null;
}

export type StreamEvent =
  /** Both sides know each other; data may flow. `reply` is to be sent first. */
  | {
      readonly kind: "ready";
      readonly peer: Hello;
      readonly features: readonly string[];
      readonly reply: Uint8Array | null;
    }
  | { readonly kind: "data"; readonly plain: Uint8Array }
  /** Send the reply, if any, and close. */
  | { readonly kind: "refused"; readonly problem: string; readonly reply: Uint8Array | null };

const CLIENT_AS_NODE = {
  code: "ROLE",
  text: "a client's credential speaks for clients only",
} as const;

export class StreamGuard {
  readonly #options: StreamGuardOptions;
  readonly #session: Uint8Array;
  readonly #tag: Uint8Array;
  /** Key we seal with: the ring's first key, or the key of the client that greeted. */
  #seals: { readonly key: RingKey; readonly session: Uint8Array };
  #sent = 0;
  #received = 0;
  #state: "new" | "greeted" | "ready" | "ended" = "new";
  /** The other side's session, and the key it seals with. */
  #peer: { readonly session: Uint8Array; readonly key: Uint8Array; readonly aead: Aead } | null =
    null;

  constructor(options: StreamGuardOptions) {
    this.#options = options;
    this.#session = options.entropy(SESSION_BYTES);
    this.#tag = peerTag(this.#session);
    this.#seals = this.#sealing(options.ring.current);
  }

  get ready(): boolean {
    return this.#state === "ready";
  }

  /** The client's first frame. */
  greet(): Uint8Array {
    assert(this.#options.side === "client" && this.#state === "new", "a client greets once, first");
    this.#state = "greeted";
    return this.#seal("greeting", encode(hello, this.#options.hello));
  }

  seal(plain: Uint8Array): Uint8Array {
    assert(this.#state === "ready", "data is sealed after the greeting");
    return this.#seal("data", plain);
  }

  push(packet: Uint8Array): StreamEvent {
    const header = readHeader(packet);
    if (typeof header === "string") return this.#end(`an unreadable frame (${header})`);
    switch (this.#state) {
      case "new":
        return this.#onGreeting(packet, header);
      case "greeted":
        return this.#onAnswer(packet, header);
      case "ready":
        return this.#onData(packet, header);
      case "ended":
        return this.#end("a frame after the end");
    }
  }

  #onGreeting(packet: Uint8Array, header: Heading): StreamEvent {
    if (header.kind !== "greeting") return this.#end("a connection begins with a greeting");
    const { ring } = this.#options;
    const clientKey = ring.findOfClient(header.keyId);
    const plain = this.#meet(packet, header, clientKey ?? ring.find(header.keyId));
    if (plain === null) return this.#end("a greeting under another key");
    const theirs = decode(hello, plain);
    if (!theirs.ok) return this.#end(theirs.problem);
    if (clientKey !== undefined) {
      this.#seals = this.#sealing(clientKey);
      if (theirs.value.role !== "client") return this.#refuse(CLIENT_AS_NODE);
    }
    const { hello: ours, claims } = this.#options;
    const judged = judgeHello(ours, theirs.value, claims);
    if (!judged.ok) return this.#refuse(judged);
    const reply = this.#introduce({ kind: "welcome", hello: ours });
    this.#state = "ready";
    return { kind: "ready", peer: theirs.value, features: judged.features, reply };
  }

  #onAnswer(packet: Uint8Array, header: Heading): StreamEvent {
    if (header.kind !== "introduction" || !this.#meantForUs(packet)) {
      return this.#end("an answer to another greeting");
    }
    const plain = this.#meet(packet, header, this.#options.ring.find(header.keyId));
    if (plain === null) return this.#end("an answer under another key");
    const answer = decode(helloAnswer, plain);
    if (!answer.ok) return this.#end(answer.problem);
    if (answer.value.kind === "refused") return this.#end(answer.value.text);
    const { hello: ours, claims } = this.#options;
    const judged = judgeHello(ours, answer.value.hello, claims);
    if (!judged.ok) return this.#end(judged.text);
    this.#state = "ready";
    return { kind: "ready", peer: answer.value.hello, features: judged.features, reply: null };
  }

  #onData(packet: Uint8Array, header: Heading): StreamEvent {
    const peer = this.#peer;
    assert(peer !== null, "a ready connection knows its peer");
    const expected =
      header.kind === "data" &&
      isFrom(packet, peer.session) &&
      this.#meantForUs(packet) &&
      header.counter === this.#received;
    if (!expected) return this.#end("a frame out of place");
    const plain = openPacket(peer.aead, peer.key, packet);
    if (plain === null) return this.#end("a forged frame");
    this.#received++;
    return { kind: "data", plain };
  }

  /** Opens the other side's first frame and remembers who it is. */
  #meet(packet: Uint8Array, header: Heading, ringKey: RingKey | undefined): Uint8Array | null {
    const { ring } = this.#options;
    if (ringKey === undefined || header.counter !== 0) return null;
    if (isFrom(packet, this.#session)) return null;
    const { aead } = ringKey;
    const key = sessionKey(ring, ringKey, "stream", sessionOf(packet));
    const plain = openPacket(aead, key, packet);
    if (plain === null) return null;
    this.#peer = { session: sessionOf(packet).slice(), key, aead };
    this.#received = 1;
    return plain;
  }

  #meantForUs(packet: Uint8Array): boolean {
    return isFor(packet, this.#tag);
  }

  #sealing(key: RingKey): { readonly key: RingKey; readonly session: Uint8Array } {
    return { key, session: sessionKey(this.#options.ring, key, "stream", this.#session) };
  }

  #introduce(answer: HelloAnswer): Uint8Array {
    return this.#seal("introduction", encode(helloAnswer, answer));
  }

  #refuse({ code, text }: Omit<Extract<HelloAnswer, { kind: "refused" }>, "kind">): StreamEvent {
    return this.#end(text, this.#introduce({ kind: "refused", code, text }));
  }

  #seal(kind: PacketKind, plain: Uint8Array): Uint8Array {
    const { key, session: sealKey } = this.#seals;
    const { id: keyId, aead } = key;
    const header = {
      kind,
      keyId,
      session: this.#session,
      peer: this.#peer === null ? NO_PEER : peerTag(this.#peer.session),
      counter: this.#sent++,
    };
    return sealPacket(aead, sealKey, header, plain);
  }

  #end(problem: string, reply: Uint8Array | null = null): StreamEvent {
    this.#state = "ended";
    return { kind: "refused", problem, reply };
  }
}
