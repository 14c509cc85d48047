import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { address } from "../core/base/ids.ts";
import { Random } from "../core/base/random.ts";
import { checksumAead } from "./checksum-aead.ts";
import { DatagramGuard, type OutgoingPacket } from "./guard.ts";
import { KeyRing } from "./key-ring.ts";
import { HELD_PER_DESTINATION_MAX, MEMBER_BUCKET_SIZE, SOURCE_BUCKET_SIZE } from "./limits.ts";
import type { Entropy } from "./seal.ts";

const A = address("10.0.0.1:1");
const B = address("10.0.0.2:1");
const OLD = "kX9-old-Zq2w7-secret-mN4";
const NEW = "fR3-new-Bv8y1-secret-pL6";

function ringOf(secrets: readonly string[], scope = "c/e"): KeyRing {
  const result = KeyRing.create(checksumAead, secrets, scope);
  if (!result.ok) throw new Error(result.problem);
  return result.ring;
}

const random = new Random("guard");
const entropy: Entropy = (count) => Uint8Array.from({ length: count }, () => random.below(256));
const start = (ring = ringOf([OLD])): DatagramGuard => new DatagramGuard({ ring, entropy });

const text = (value: string): Uint8Array => new TextEncoder().encode(value);
const words = (plain: Uint8Array | null): string | null =>
  plain === null ? null : new TextDecoder().decode(plain);

/** Carries packets between the two until nothing is in flight; what each accepted, in order. */
function converse(
  guards: ReadonlyMap<string, DatagramGuard>,
  first: readonly OutgoingPacket[],
  from: typeof A,
  now = 0,
): {
  readonly accepted: string[];
  readonly wire: { to: string; from: string; bytes: Uint8Array }[];
} {
  const accepted: string[] = [];
  const wire: { to: string; from: string; bytes: Uint8Array }[] = [];
  const flight = first.map(({ to, bytes }) => ({ to, from, bytes }));
  for (let packet = flight.shift(); packet !== undefined; packet = flight.shift()) {
    wire.push(packet);
    const { to } = packet;
    const opened = guards.get(to)?.open(packet.from, packet.bytes, now);
    if (opened?.plain != null) accepted.push(words(opened.plain) ?? "");
    for (const answer of opened?.send ?? []) flight.push({ ...answer, from: to });
  }
  return { accepted, wire };
}

function pair(): { a: DatagramGuard; b: DatagramGuard; guards: Map<string, DatagramGuard> } {
  const a = start();
  const b = start();
  return {
    a,
    b,
    guards: new Map([
      [A as string, a],
      [B as string, b],
    ]),
  };
}

describe("the datagram guard", () => {
  it("delivers the first packet after one greeting and one introduction, later ones directly", () => {
    const { a, guards } = pair();
    const first = converse(guards, a.seal(B, text("hello"), 0), A);
    expect(first.accepted).toEqual(["hello"]);
    expect(first.wire).toHaveLength(3);
    const second = converse(guards, a.seal(B, text("again"), 1), A);
    expect(second.accepted).toEqual(["again"]);
    expect(second.wire).toHaveLength(1);
  });

  it("needs no greeting towards a peer that has spoken", () => {
    const { a, b, guards } = pair();
    converse(guards, a.seal(B, text("hello"), 0), A);
    const back = converse(guards, b.seal(A, text("hi"), 0), B);
    expect(back.wire).toHaveLength(1);
    expect(back.accepted).toEqual(["hi"]);
  });

  it("refuses a recorded packet sent again (S1)", () => {
    const { a, b, guards } = pair();
    const { wire } = converse(guards, a.seal(B, text("once"), 0), A);
    for (const packet of wire.filter(({ to }) => to === B)) {
      expect(b.open(A, packet.bytes, 0).plain).toBeNull();
    }
    expect(b.counts.refused.get("replayed")).toBe(1);
  });

  it("refuses what was recorded before the receiver's restart (S2)", () => {
    const { a, guards } = pair();
    const { wire } = converse(guards, a.seal(B, text("once"), 0), A);
    const again = start();
    for (const packet of wire.filter(({ to }) => to === B)) {
      expect(again.open(A, packet.bytes, 0).plain).toBeNull();
    }
    expect(again.counts.refused.get("stale")).toBe(1);
  });

  it("refuses what was recorded before the sender's restart (S1)", () => {
    const { a, b, guards } = pair();
    const { wire } = converse(guards, a.seal(B, text("old"), 0), A);
    const reborn = start();
    guards.set(A, reborn);
    expect(converse(guards, reborn.seal(B, text("new"), 0), A).accepted).toEqual(["new"]);
    for (const packet of wire.filter(({ to }) => to === B)) {
      expect(b.open(A, packet.bytes, 0).plain).toBeNull();
    }
  });

  it("heals after a restart of either side", () => {
    const { a, b, guards } = pair();
    converse(guards, a.seal(B, text("x"), 0), A);
    guards.set(B, start());
    // The packet that meets the new self is lost, like any datagram; the next one passes.
    expect(converse(guards, a.seal(B, text("lost"), 1), A).accepted).toEqual([]);
    expect(converse(guards, a.seal(B, text("heard"), 2), A).accepted).toEqual(["heard"]);
    void b;
  });

  it("holds a bounded number of packets for a silent destination and repeats its greeting", () => {
    const a = start();
    let sent = 0;
    for (let i = 0; i < 100; i++) sent += a.seal(B, text(`${i}`), i * 10).length;
    expect(a.counts.held).toBe(HELD_PER_DESTINATION_MAX);
    expect(sent).toBe(5);
  });

  it("drops packets that waited too long", () => {
    const { a, b, guards } = pair();
    a.seal(B, text("stale news"), 0);
    const later = a.seal(B, text("fresh news"), 5_000);
    expect(converse(guards, later, A, 5_000).accepted).toEqual(["fresh news"]);
    void b;
  });

  it("refuses its own packets when they are reflected", () => {
    const { a } = pair();
    const [greeting] = a.seal(B, text("x"), 0);
    expect(a.open(B, greeting?.bytes ?? new Uint8Array(), 0).refusal).toBe("reflected");
  });

  it("rejects an introduction without a pending greeting", () => {
    const { a, b, guards } = pair();
    const { wire } = converse(guards, a.seal(B, text("x"), 0), A);
    const introduction = wire[1]?.bytes ?? new Uint8Array();
    expect(a.open(B, introduction, 0).refusal).toBe("unasked");
    void b;
  });

  it("refuses a wrong key and another cluster's packets under the same secret (SEC-1, SEC-13, B-51)", () => {
    const stranger = start(ringOf([NEW]));
    const neighbour = start(ringOf([OLD], "other/e"));
    const b = start();
    const wrongKey = stranger.seal(B, text("x"), 0)[0]?.bytes ?? new Uint8Array();
    const wrongScope = neighbour.seal(B, text("x"), 0)[0]?.bytes ?? new Uint8Array();
    expect(b.open(A, wrongKey, 0).refusal).toBe("unknownKey");
    expect(b.open(A, wrongScope, 0).refusal).toBe("forged");
  });

  it("keeps every pair talking through add, use and remove of a key (SEC-5, B-51)", () => {
    const steps = [[OLD], [OLD, NEW], [NEW, OLD], [NEW]];
    for (let step = 0; step + 1 < steps.length; step++) {
      const { a, b, guards } = pair();
      a.setRing(ringOf(steps[step] ?? []));
      b.setRing(ringOf(steps[step] ?? []));
      expect(converse(guards, a.seal(B, text("1"), 0), A).accepted).toEqual(["1"]);
      a.setRing(ringOf(steps[step + 1] ?? []));
      expect(converse(guards, a.seal(B, text("2"), 0), A).accepted).toEqual(["2"]);
      expect(converse(guards, b.seal(A, text("3"), 0), B).accepted).toEqual(["3"]);
      b.setRing(ringOf(steps[step + 1] ?? []));
      expect(converse(guards, a.seal(B, text("4"), 0), A).accepted).toEqual(["4"]);
    }
  });

  it("moves from plaintext to encryption in three steps while every pair keeps talking", () => {
    const steps = [["plaintext"], ["plaintext", NEW], [NEW, "plaintext"], [NEW]];
    const encryptions = steps.map((secrets) => ringOf(secrets).encryption);
    expect(encryptions).toEqual([
      "none (plaintext)",
      "none (plaintext)",
      "aes-256-gcm (plaintext still accepted)",
      "aes-256-gcm",
    ]);
    for (let step = 0; step + 1 < steps.length; step++) {
      const { a, b, guards } = pair();
      a.setRing(ringOf(steps[step + 1] ?? []));
      b.setRing(ringOf(steps[step] ?? []));
      expect(converse(guards, a.seal(B, text("1"), 0), A).accepted).toEqual(["1"]);
      expect(converse(guards, b.seal(A, text("2"), 0), B).accepted).toEqual(["2"]);
    }
    const open = start(ringOf(["plaintext"]));
    const closed = start(ringOf([NEW]));
    const greeting = open.seal(B, text("x"), 0)[0]?.bytes ?? new Uint8Array();
    expect(closed.open(A, greeting, 0).refusal).toBe("unknownKey");
  });

  it("limits what strangers may cost, and members go on (SEC-7, SEC-8)", () => {
    const { a, b, guards } = pair();
    converse(guards, a.seal(B, text("x"), 0), A);
    const noise = start();
    let answered = 0;
    for (let i = 0; i < 1_000; i++) {
      const greeting = noise.seal(address(`x:${i + 1}`), text("x"), 0)[0]?.bytes;
      if (b.open(address("10.9.9.9:9"), greeting ?? new Uint8Array(), 0).send.length > 0)
        answered++;
    }
    expect(answered).toBe(SOURCE_BUCKET_SIZE);
    expect(converse(guards, a.seal(B, text("still"), 0), A).accepted).toEqual(["still"]);
  });

  it("takes from a member only for what the member sent, not for forgeries under its header", () => {
    const { a, b, guards } = pair();
    converse(guards, a.seal(B, text("hello"), 0), A);
    const [real] = a.seal(B, text("real"), 1);
    const forged = Uint8Array.from(real?.bytes ?? []);
    forged[forged.length - 1] = (forged.at(-1) ?? 0) ^ 1;
    for (let i = 0; i < 2 * MEMBER_BUCKET_SIZE; i++) {
      expect(b.open(A, forged, 1).refusal).toBe("forged");
    }
    expect(words(b.open(A, real?.bytes ?? forged, 1).plain)).toBe("real");
  });

  it("counts strangers by host, whatever ports they send from", () => {
    const b = start();
    const opened = Array.from({ length: 3 * SOURCE_BUCKET_SIZE }, (_, port) => {
      const [greeting] = start().seal(B, text("x"), 0);
      return b.open(address(`10.0.0.9:${port + 1}`), greeting?.bytes ?? new Uint8Array(0), 0);
    });
    const limited = opened.filter(({ refusal }) => refusal === "limited");
    expect(limited).toHaveLength(2 * SOURCE_BUCKET_SIZE);
  });

  it("never throws and never believes a changed packet (B-49, B-50, UDP-8)", () => {
    const { a, b, guards } = pair();
    converse(guards, a.seal(B, text("x"), 0), A);
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 255 }), (place, flip) => {
        const bytes = a.seal(B, text("payload"), 0)[0]?.bytes ?? new Uint8Array();
        const at = place % bytes.length;
        bytes[at] = (bytes[at] ?? 0) ^ flip;
        expect(b.open(A, bytes, 0).plain).toBeNull();
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(b.open(A, bytes, 0).plain).toBeNull();
      }),
    );
  });

  it("accepts each packet once under loss, duplication and reordering (SEC-6)", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(63), { minLength: 64, maxLength: 256 }), (deliveries) => {
        const { a, b, guards } = pair();
        converse(guards, a.seal(B, text("start"), 0), A);
        const packets = Array.from({ length: 64 }, (_, i) => a.seal(B, text(`${i}`), 0)[0]);
        const accepted = deliveries
          .map((i) => words(b.open(A, packets[i]?.bytes ?? new Uint8Array(), 0).plain))
          .filter((plain) => plain !== null);
        expect(accepted.length).toBe(new Set(deliveries).size);
        expect(new Set(accepted).size).toBe(accepted.length);
      }),
    );
  });
});
