import { describe, expect, it } from "vitest";
import { ByteWriter } from "../core/base/bytes.ts";
import { Random } from "../core/base/random.ts";
import type { Update } from "../core/membership/swim/messages.ts";
import {
  COORDINATE_BYTES_MAX,
  ENVELOPE_BYTES_MAX,
  SEAL_BYTES_MAX,
  updateBytesMax,
} from "../core/membership/swim/messages.ts";
import { PEER_ROLES } from "./claims.ts";
import { type Datagram, decodeDatagram, encodeDatagram } from "./datagram.ts";
import { electionPacket, swimDatagram } from "./messages/membership.ts";
import {
  decodeStreamMessage,
  directionProblem,
  encodeStreamMessage,
  MESSAGES,
  type MessageName,
  PRIORITIES,
  type StreamEnvelope,
} from "./registry.ts";
import type { Type } from "./schema.ts";
import { SEAL_OVERHEAD_BYTES } from "./seal.ts";
import { generate } from "./testing/generate.ts";

const names = Object.keys(MESSAGES) as MessageName[];

describe("every stream message", () => {
  it.each(names)("%s comes back as it was sent", (name) => {
    const random = new Random(name);
    for (let i = 0; i < 200; i++) {
      const value = generate(MESSAGES[name].type as Type<unknown>, random);
      const envelope = { name, correlation: i, value } as StreamEnvelope;
      expect(decodeStreamMessage(encodeStreamMessage(envelope))).toEqual({
        ok: true,
        value: envelope,
      });
    }
  });

  it("has its own number, a priority class and a direction (CODEC-1, BEX-9)", () => {
    const numbers = names.map((name) => MESSAGES[name].number);
    expect(new Set(numbers).size).toBe(numbers.length);
    for (const name of names) {
      expect(PRIORITIES).toContain(MESSAGES[name].priority);
      expect(MESSAGES[name].directions.length).toBeGreaterThan(0);
    }
  });

  it("names the missing field when a required one is left out", () => {
    for (const name of names) {
      const { shape } = MESSAGES[name].type;
      if (shape.kind !== "struct") continue;
      const first = shape.fields.find(({ fallback }) => fallback === undefined);
      if (first === undefined) continue;
      const out = new ByteWriter();
      out.varint(MESSAGES[name].number);
      out.varint(5);
      out.end(out.begin());
      const result = decodeStreamMessage(out.take());
      expect(result).toEqual({
        ok: false,
        problem: `${shape.name}: field "${first.name}" is missing`,
        // The sender learns which message it was.
        correlation: 5,
      });
    }
  });

  it("is rejected by number when it is unknown (CODEC-1)", () => {
    const out = new ByteWriter();
    out.varint(9_999);
    out.varint(0);
    expect(decodeStreamMessage(out.take())).toEqual({
      ok: false,
      problem: "message 9999 is not known here",
      correlation: 0,
    });
  });

  it("is accepted only in its direction", () => {
    expect(directionProblem("ledgerBatch", "gate", "gate")).toBeNull();
    expect(directionProblem("ledgerBatch", "worker", "manager")).toContain("does not send");
    expect(directionProblem("membership", "worker", "worker")).toBeNull();
    expect(directionProblem("membership", "client", "gate")).not.toBeNull();
    const allowed = PEER_ROLES.flatMap((from) =>
      PEER_ROLES.filter((to) => directionProblem("ledgerBatch", from, to) === null).map(
        (to) => `${from}>${to}`,
      ),
    );
    expect(allowed).toEqual(["gate>gate", "manager>manager"]);
  });
});

describe("every datagram", () => {
  it.each([
    ["swim", swimDatagram],
    ["election", electionPacket],
  ] as const)("of %s comes back as it was sent", (protocol, type) => {
    const random = new Random(protocol);
    for (let i = 0; i < 500; i++) {
      const packet = generate(type as Type<unknown>, random);
      const datagram = { protocol, packet } as Datagram;
      expect(decodeDatagram(encodeDatagram(datagram))).toEqual({ ok: true, value: datagram });
    }
  });

  it("is of membership or of its election; nothing of a job passes for one (NET-1, NET-2)", () => {
    const known = Array.from({ length: 256 }, (_, first) => first).filter((first) => {
      const read = decodeDatagram(Uint8Array.of(first));
      return read.ok || !read.problem.includes("unknown protocol");
    });
    expect(known).toEqual([1, 2]);
    const ofStreams = names.filter(
      (name) => !["membership", "refusal", "keepAlive"].includes(name),
    );
    expect(ofStreams.length).toBeGreaterThan(20);
    for (const name of ofStreams) {
      const value = generate(MESSAGES[name].type as Type<unknown>, new Random(name));
      const bytes = encodeStreamMessage({ name, correlation: 1, value } as StreamEnvelope);
      expect([name, decodeDatagram(bytes).ok]).toEqual([name, false]);
    }
  });

  it("keeps to the sizes that membership counts on when it fills a packet (B-46)", () => {
    const random = new Random("sizes");
    const bare = { coordinate: null, state: null, updates: [] };
    for (let i = 0; i < 3_000; i++) {
      const packet = generate(swimDatagram, random);
      const size = (over: object): number =>
        encodeDatagram({ protocol: "swim", packet: { ...packet, ...over } }).length;
      const envelope = size(bare);
      expect(envelope).toBeLessThanOrEqual(ENVELOPE_BYTES_MAX);
      const { coordinate } = packet;
      if (coordinate !== null && coordinate.position.length <= 4) {
        expect(size({ ...bare, coordinate }) - envelope).toBeLessThanOrEqual(COORDINATE_BYTES_MAX);
      }
      for (const update of packet.updates as readonly Update[]) {
        // The list itself costs a tag, a length and a count, paid once by the envelope's allowance.
        const alone =
          size({ ...bare, updates: [update, update] }) - size({ ...bare, updates: [update] });
        expect(alone).toBeLessThanOrEqual(updateBytesMax(update) + 1);
      }
    }
    expect(SEAL_OVERHEAD_BYTES).toBeLessThanOrEqual(SEAL_BYTES_MAX);
  });
});
