import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Compressor } from "../../../host/ports/compressor.ts";
import { checksumAead } from "../../../wire/checksum-aead.ts";
import type { Hello } from "../../../wire/hello.ts";
import { KeyRing } from "../../../wire/key-ring.ts";
import { encodeStreamMessage, type StreamEnvelope } from "../../../wire/registry.ts";
import { CAPABILITIES, PROTOCOL } from "../../../wire/version.ts";
import { type Millis, millis } from "../../base/brand.ts";
import { address } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import {
  BACKOFF_MS_MAX,
  KEEP_ALIVE_MS,
  QUEUE_LIMITS,
  SILENCE_MS_MAX,
  STALL_MS_MAX,
} from "./limits.ts";
import { type Incoming, Links } from "./links.ts";
import { LINK_RULES } from "./rules.ts";
import { Pipes } from "./testing/pipes.ts";
import type { LinkEffect, LinkInput, StreamId } from "./types.ts";

const SECRET = "gh7Kq2-vT9xLw4Zm";

function ringOf(secret: string): KeyRing {
  const made = KeyRing.create(checksumAead, [secret], "test/links");
  if (!made.ok) throw new Error(made.problem);
  return made.ring;
}

function helloOf(node: string, more: Partial<Hello> = {}): Hello {
  return {
    ...{ cluster: "c", environment: "e", nodeVersion: "0", datacenter: "d" },
    ...{ versionMajor: PROTOCOL.major, versionMinor: PROTOCOL.minor },
    capabilities: CAPABILITIES.filter((one) => one !== "compression"),
    ...{ node, address: `${node}:1`, role: "gate" },
    ...more,
  };
}

interface SideOptions {
  readonly secret?: string;
  readonly hello?: Partial<Hello>;
  readonly limits?: typeof QUEUE_LIMITS;
  /** Answer to an opening; null refuses it. */
  readonly answer?: StreamEnvelope | null;
  readonly compressor?: Compressor;
}

const NO_COMPRESSOR: Compressor = { deflate: (bytes) => bytes, inflate: () => null };

/** A process with links only; records everything it receives. */
class Side {
  readonly log: string[] = [];
  readonly links: Links;
  readonly emitted: LinkEffect[] = [];
  now: Millis = millis(0);
  sent = 0;
  onEffect: (effect: LinkEffect) => void = (effect) => this.emitted.push(effect);

  constructor(name: string, options: SideOptions = {}) {
    const random = new Random(name);
    const { limits = QUEUE_LIMITS, secret = SECRET, answer = OPENED } = options;
    this.links = new Links(
      {
        hello: helloOf(name, options.hello),
        ring: ringOf(secret),
        entropy: (count) => Uint8Array.from({ length: count }, () => random.below(256)),
        compressor: options.compressor ?? NO_COMPRESSOR,
        ...{ limits, rules: LINK_RULES },
        emit: (effect) => this.onEffect(effect),
      },
      {
        refusePeer: (peer, { node }) => (peer === node ? null : `called ${node}`),
        opening: () => OPENING,
        refuseOpened: (_peer, { name: said }) => (said === "ledgerOpened" ? null : `says ${said}`),
        onSent: () => this.sent++,
        onUp: (peer) => this.log.push(`up ${peer}`),
        onPush: (peer, message) => this.log.push(`${peer} says ${textOf(message)}`),
        onDown: (peer, problem) => this.log.push(`down ${peer}: ${problem}`),
        onDropped: (peer, count) => this.log.push(`dropped ${count} to ${peer}`),
        onRequest: (incoming) => this.#onRequest(incoming, answer),
        onMessage: ({ message }) => this.log.push(textOf(message)),
        onGone: (_stream, { name: who, problem, wasReset }) =>
          this.log.push(`gone ${who}: ${wasReset ? "reset" : problem}`),
      },
      random,
    );
  }

  #onRequest(incoming: Incoming, answer: StreamEnvelope | null): void {
    if (answer === null) this.links.refuse(incoming, "LEDGER", "not ours", this.now);
    else this.links.answer(incoming.stream, answer, this.now);
  }

  take(input: LinkInput): void {
    this.links.take(input, this.now);
  }

  say(text: string): void {
    this.links.send("b", messageOf(text), this.now);
  }
}

const OPENING: StreamEnvelope = {
  name: "ledgerOpening",
  correlation: 1,
  value: { digest: "d", described: "", identity: "i", lastRecord: null },
};
const OPENED: StreamEnvelope = { name: "ledgerOpened", correlation: 1, value: { node: "b" } };

function messageOf(text: string): Uint8Array {
  const value = new TextEncoder().encode(text);
  return encodeStreamMessage({ name: "ledgerBatch", correlation: 0, value });
}

function textOf(message: StreamEnvelope): string {
  return message.name === "ledgerBatch" ? new TextDecoder().decode(message.value) : message.name;
}

/** `a` dials `b`. */
class Pair {
  readonly pipes = new Pipes();
  readonly a: Side;
  readonly b: Side;

  constructor(a: SideOptions = {}, b: SideOptions = {}, name = "b") {
    this.a = new Side("a", a);
    this.b = new Side(name, b);
    for (const side of [this.a, this.b]) {
      const end = this.pipes.add(side === this.a ? "a:1" : "b:1", (input) => side.take(input));
      side.onEffect = (effect) => this.pipes.run(end, effect);
    }
    this.a.links.keep("b", address("b:1"));
  }

  open(): this {
    this.a.links.call(this.a.now);
    this.pipes.settle();
    return this;
  }

  /** Advances the time of both, firing every deadline on the way. */
  pass(ms: number): void {
    const until = this.a.now + ms;
    for (;;) {
      const due = [this.a, this.b].map(
        ({ links }) => links.nextDeadline() ?? Number.POSITIVE_INFINITY,
      );
      const next = Math.min(until, ...due);
      for (const side of [this.a, this.b]) side.now = millis(Math.max(side.now, next));
      for (const side of [this.a, this.b]) side.links.tick(side.now);
      this.pipes.settle();
      if (next >= until) return;
    }
  }
}

const lines = (count: number): string[] => Array.from({ length: count }, (_, i) => `message ${i}`);

describe("a kept link", () => {
  it.each([1, 2, 3, 5, 7, 64, 1_000])(
    "delivers messages in order from pieces of %i bytes",
    (size) => {
      const pair = new Pair();
      pair.pipes.pieceBytes = size;
      pair.open();
      for (const line of lines(20)) pair.a.say(line);
      pair.pipes.settle();
      expect(pair.a.log).toEqual(["up b"]);
      expect(pair.b.log).toEqual(lines(20));
    },
  );

  it("queues messages sent before it is up, in order", () => {
    const pair = new Pair();
    for (const line of lines(3)) pair.a.say(line);
    pair.open();
    expect(pair.b.log).toEqual(lines(3));
  });

  it("drops stale messages after a second of disconnection and counts them", () => {
    const pair = new Pair();
    pair.a.say("old");
    pair.a.now = millis(1_001);
    pair.a.say("fresh");
    pair.open();
    expect(pair.b.log).toEqual(["fresh"]);
    expect(pair.a.links.view("b")).toMatchObject({ sent: 1, dropped: 1, queued: 0 });
    expect(pair.a.sent).toBe(1);
  });

  it("serialises, then compresses, then seals, then prefixes (FRAME-2)", () => {
    const text = "one and the same ".repeat(100);
    const serialised = messageOf(text);
    const deflated = new Uint8Array(40).fill(0xde);
    const given: Uint8Array[] = [];
    const hello = { capabilities: CAPABILITIES };
    const deflate = (bytes: Uint8Array): Uint8Array => {
      given.push(bytes.slice());
      return deflated;
    };
    const compressor = { deflate, inflate: () => serialised };
    const pair = new Pair({ hello, compressor }, { hello, compressor }).open();
    const written: Uint8Array[] = [];
    const { onEffect } = pair.a;
    pair.a.onEffect = (effect) => {
      if (effect.kind === "write") written.push(effect.bytes);
      onEffect(effect);
    };
    pair.a.say(text);
    pair.pipes.settle();
    expect(pair.b.log).toEqual([text]);
    expect(given).toEqual([serialised]);
    const [bytes = new Uint8Array(4)] = written;
    const payload = bytes.subarray(4);
    expect(new DataView(bytes.buffer, bytes.byteOffset).getUint32(0)).toBe(payload.length);
    // The seal of this test hides nothing: the compressed bytes precede its 16 bytes unchanged.
    expect(payload.subarray(-16 - deflated.length, -16)).toEqual(deflated);
    expect(payload.at(-16)).not.toBe(0xde);
  });

  it("carries a message of many frames", () => {
    const pair = new Pair().open();
    const long = "x".repeat(2_500_000);
    pair.a.say(long);
    pair.pipes.settle();
    expect(pair.b.log).toEqual([long]);
  });

  it("redials with a bounded backoff and reports the reason", () => {
    const side = new Side("a");
    side.links.keep("b", address("b:1"));
    side.links.call(side.now);
    const pauses: number[] = [];
    for (let attempt = 1; attempt <= 12; attempt++) {
      const stream = (attempt * 2) as StreamId;
      side.take({ kind: "dialFailed", stream, refused: attempt % 2 === 1 });
      const due = side.links.nextDeadline() as number;
      pauses.push(due - side.now);
      side.now = millis(due);
      side.links.tick(side.now);
    }
    expect(side.emitted.map(({ kind }) => kind)).toEqual(Array.from({ length: 13 }, () => "dial"));
    expect(side.log.slice(0, 2)).toEqual(["down b: nobody listens there", "down b: no connection"]);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(BACKOFF_MS_MAX);
    expect(Math.min(...pauses.slice(6))).toBeGreaterThanOrEqual(BACKOFF_MS_MAX / 2);
  });

  it("reports whether the peer or the network closed the connection", () => {
    const ended = new Pair().open();
    ended.a.links.destroy(2 as StreamId, "enough", ended.a.now);
    ended.pipes.settle();
    expect(ended.b.log).toEqual(["gone a: null"]);
    const broken = new Pair().open();
    broken.pipes.breakAll();
    broken.pipes.settle();
    expect(broken.b.log).toContain("gone a: reset");
  });

  it("redials when its stream is closed before it was open", () => {
    const side = new Side("a");
    side.links.keep("b", address("b:1"));
    side.links.call(side.now);
    side.take({ kind: "closed", stream: 2 as StreamId });
    expect(side.log).toEqual(["down b: no connection"]);
    side.links.tick(millis(BACKOFF_MS_MAX));
    expect(side.emitted.map(({ kind }) => kind)).toEqual(["dial", "dial"]);
  });

  it("reconnects after a broken connection and resumes", () => {
    const pair = new Pair().open();
    pair.pipes.breakAll();
    pair.pipes.settle();
    pair.pass(BACKOFF_MS_MAX);
    pair.a.say("again");
    pair.pipes.settle();
    expect(pair.a.log).toEqual(["up b", "down b: the connection closed", "up b"]);
    expect(pair.b.log).toEqual(["gone a: reset", "again"]);
  });
});

describe("a slow peer", () => {
  const limits = { bytesMax: 1_000, entriesMax: 10, inHandBytesMax: 200 };

  it("receives the newest messages; dropped ones are counted and reported, never as sent", () => {
    const pair = new Pair({ limits });
    pair.pipes.clogged = true;
    pair.open();
    for (const line of lines(50)) pair.a.say(line);
    pair.pipes.settle();
    const { sent, queued, dropped } = pair.a.links.view("b");
    expect(queued).toBeLessThanOrEqual(limits.entriesMax);
    expect(dropped).toBeGreaterThan(0);
    expect(sent + queued + dropped).toBe(50);
    expect(pair.a.sent).toBe(sent);
    expect(pair.b.log).toEqual(lines(sent));
    const reports = pair.a.log.filter((line) => line.startsWith("dropped"));
    expect(reports.length).toBe(dropped);
  });

  it("keeps a single message however large it is", () => {
    const pair = new Pair({ limits });
    pair.a.say("x".repeat(5_000));
    expect(pair.a.links.view("b")).toMatchObject({ queued: 1, dropped: 0 });
  });

  it("is reconnected when it accepts nothing for too long", () => {
    const pair = new Pair({ limits });
    pair.pipes.clogged = true;
    pair.open();
    for (const line of lines(10)) pair.a.say(line);
    pair.pipes.settle();
    pair.pass(STALL_MS_MAX);
    expect(pair.a.log).toContain("down b: the peer takes nothing");
  });
});

describe("a silent connection", () => {
  it("is sent keep-alives and stays open while they are answered", () => {
    const pair = new Pair().open();
    pair.pass(10 * SILENCE_MS_MAX);
    expect(pair.a.log).toEqual(["up b"]);
    expect(pair.b.log).toEqual([]);
  });

  it("is closed on both sides when nothing answers", () => {
    const pair = new Pair().open();
    // The network drops everything without notice.
    pair.a.onEffect = () => undefined;
    pair.b.onEffect = () => undefined;
    pair.pass(SILENCE_MS_MAX + KEEP_ALIVE_MS);
    expect(pair.a.log).toEqual(["up b", "down b: silent for too long"]);
    expect(pair.b.log).toEqual(["gone a: silent for too long"]);
  });

  it("is closed when a garbled length swallows all further bytes", () => {
    const pair = new Pair().open();
    const { onEffect } = pair.a;
    pair.a.onEffect = (effect) => {
      pair.a.onEffect = onEffect;
      if (effect.kind !== "write") throw new Error("nothing is said");
      const bytes = effect.bytes.slice();
      bytes[1] = 0x0f;
      onEffect({ ...effect, bytes });
    };
    for (let i = 0; i < 2 * SILENCE_MS_MAX; i += KEEP_ALIVE_MS / 2) {
      pair.a.say(`${i}`);
      pair.pipes.settle();
      pair.pass(KEEP_ALIVE_MS / 2);
    }
    expect(pair.b.log).toContain("gone a: silent for too long");
    expect(pair.b.log.at(-1)).not.toContain("gone");
  });

  it("is sent no keep-alives and stays open while sending when the peer does not support them", () => {
    const old = { capabilities: [] };
    const pair = new Pair({}, { hello: old }).open();
    for (let i = 0; i < 10; i++) {
      pair.a.say(`${i}`);
      pair.pipes.settle();
      pair.pass(KEEP_ALIVE_MS);
    }
    expect(pair.a.log).toEqual(["up b"]);
    expect(pair.b.log).toEqual(["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
  });
});

describe("refuses", () => {
  it("a wrong secret without telling the stranger anything", () => {
    const pair = new Pair({ secret: "another-9f3Jx7Qp" }).open();
    expect(pair.a.log[0]).toContain("closed without an answer to our greeting");
    expect(pair.b.log).toEqual(["gone 10.0.0.1: a greeting under another key"]);
  });

  it("another cluster, with the reason on both sides", () => {
    const pair = new Pair({ hello: { cluster: "x" } }).open();
    expect(pair.a.log).toEqual(['down b: cluster "x" met cluster "c"']);
    expect(pair.b.log).toEqual(['gone 10.0.0.1: cluster "x" met cluster "c"']);
  });

  it("a process at the peer's address under another name", () => {
    const pair = new Pair({}, {}, "c").open();
    expect(pair.a.log).toEqual(["down b: called c"]);
  });

  it("an opening answered by a refusal or by the wrong message", () => {
    expect(new Pair({}, { answer: null }).open().a.log).toEqual(["down b: not ours"]);
    const wrong: StreamEnvelope = { name: "ledgerBatch", correlation: 1, value: new Uint8Array(1) };
    expect(new Pair({}, { answer: wrong }).open().a.log).toEqual(["down b: says ledgerBatch"]);
  });

  it("an opening that is not answered in time, even if other messages arrive (FRAME-8)", () => {
    const other = { ...OPENED, correlation: 7 };
    const pair = new Pair({}, { answer: other }).open();
    pair.pass(5_000);
    expect(pair.a.log).toEqual(["down b: no answer to our opening in time"]);
  });

  it("a message that the role of the sender may not send", () => {
    const pair = new Pair({ hello: { role: "worker" } }).open();
    expect(pair.a.log).toEqual(["down b: a worker does not send ledgerOpening to a gate"]);
  });
});

describe("changed keys", () => {
  it("apply to new connections only", () => {
    const pair = new Pair().open();
    for (const side of [pair.a, pair.b]) side.links.useRing(ringOf("next-8dK2mZq5Wt-x4"));
    pair.a.say("under the old key");
    pair.pipes.settle();
    pair.pipes.breakAll();
    pair.pipes.settle();
    pair.pass(BACKOFF_MS_MAX);
    pair.a.say("under the new key");
    pair.pipes.settle();
    const said = pair.b.log.filter((line) => line.startsWith("under"));
    expect(said).toEqual(["under the old key", "under the new key"]);
  });
});

describe("under arbitrary network behaviour", () => {
  /** Bytes of a real peer, and garbage. */
  function recorded(): Uint8Array[] {
    const pair = new Pair();
    const written: Uint8Array[] = [];
    const { onEffect } = pair.a;
    pair.a.onEffect = (effect) => {
      if (effect.kind === "write") written.push(effect.bytes);
      onEffect(effect);
    };
    pair.open();
    for (const line of lines(3)) pair.a.say(line);
    return written;
  }

  const real = recorded();
  const stream = fc.integer({ min: -1, max: 8 }).map((id) => id as StreamId);
  const bytes = fc.oneof(
    fc.constantFrom(...real),
    fc.uint8Array({ maxLength: 80 }),
    fc
      .tuple(fc.constantFrom(...real), fc.nat(), fc.nat(255))
      .map(([whole, at, byte]) => whole.map((own, i) => (i === at % whole.length ? byte : own))),
  );
  const input: fc.Arbitrary<LinkInput> = fc.oneof(
    fc.record({
      kind: fc.constant("opened" as const),
      stream,
      facts: fc.record({
        host: fc.string({ maxLength: 8 }),
        peerUris: fc.oneof(
          fc.constant(null),
          fc.array(fc.string({ maxLength: 40 }), { maxLength: 5 }),
        ),
      }),
    }),
    fc.record({ kind: fc.constant("dialFailed" as const), stream, refused: fc.boolean() }),
    fc.record({ kind: fc.constant("bytes" as const), stream, bytes }),
    fc.record({
      kind: fc.constant("drained" as const),
      stream,
      mark: fc.constantFrom(-1, 0, 1, 500, 2 ** 31, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY),
    }),
    fc.record({ kind: fc.constant("closed" as const), stream }),
  );
  const step = fc.oneof(
    { weight: 8, arbitrary: input },
    { weight: 1, arbitrary: fc.constantFrom("tick" as const, "send" as const, "call" as const) },
  );

  it("never throws, stays within its limits and forgets closed streams", () => {
    const limits = { bytesMax: 300, entriesMax: 5, inHandBytesMax: 100 };
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const side = new Side("a", { limits });
        side.links.keep("b", address("b:1"));
        for (const one of steps) {
          side.now = millis(side.now + 137);
          if (one === "tick") {
            side.now = millis(Math.max(side.now, side.links.nextDeadline() ?? 0));
            side.links.tick(side.now);
          } else if (one === "send") side.say("x");
          else if (one === "call") side.links.call(side.now);
          else side.take(one);
          const { queued, queuedBytes } = side.links.view("b");
          expect(queued).toBeLessThanOrEqual(limits.entriesMax);
          expect(queuedBytes).toBeLessThanOrEqual(limits.bytesMax);
        }
        for (let id = -1; id <= 8; id++) side.take({ kind: "closed", stream: id as StreamId });
        expect(side.links.accepted).toBe(0);
        // Only redialling is left to do.
        expect(side.links.nextDeadline() ?? 0).toBeLessThan(Number.POSITIVE_INFINITY);
      }),
      { numRuns: 600 },
    );
  });

  it("accepts a close in every state, and duplicate opens", () => {
    for (let cut = 0; cut <= real.length; cut++) {
      const side = new Side("b");
      const facts = { host: "h", peerUris: null };
      const [first, second] = [1 as StreamId, 3 as StreamId];
      side.take({ kind: "opened", stream: first, facts });
      side.take({ kind: "opened", stream: first, facts });
      for (const part of real.slice(0, cut))
        side.take({ kind: "bytes", stream: first, bytes: part });
      side.take({ kind: "closed", stream: first });
      side.take({ kind: "closed", stream: first });
      side.take({ kind: "opened", stream: second, facts });
      expect(side.links.accepted).toBe(1);
    }
  });
});
