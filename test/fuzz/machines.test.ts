/**
 * Messages of a key holder with extreme values in every field, through decoder and machine: no message of a peer makes
 * a machine throw, brings a counter near its end, or makes it send what others cannot read. One seed is one
 * conversation; a failing one is named. (UDP-8)
 */

import { describe, expect, it } from "vitest";
import { millis } from "../../src/core/base/brand.ts";
import { COUNTER_JUMP_MAX, COUNTER_MAX, nodeId, term } from "../../src/core/base/ids.ts";
import { Random } from "../../src/core/base/random.ts";
import { ELECTION_PROFILES } from "../../src/core/membership/election/config.ts";
import { Election } from "../../src/core/membership/election/election.ts";
import type { ElectionEffect, ElectionInput } from "../../src/core/membership/election/types.ts";
import { PACKET_BYTES_MAX } from "../../src/core/membership/swim/messages.ts";
import { at, Bench } from "../../src/core/membership/swim/testing/bench.ts";
import type { SwimEffect, SwimInput } from "../../src/core/membership/swim/types.ts";
import {
  electionPacket,
  swimDatagram,
  swimStreamPacket,
} from "../../src/wire/messages/membership.ts";
import { decode, encode, type FieldShape, type Shape, type Type } from "../../src/wire/schema.ts";

const CONVERSATIONS = 300;
const MESSAGES = 120;
const NAMES = ["me", "a", "b", "c", "stranger"];
const COUNTERS = [
  ...[0, 1, 2, 33, 1_000, COUNTER_JUMP_MAX - 1, COUNTER_JUMP_MAX, COUNTER_JUMP_MAX + 1],
  ...[2 ** 31, 2 ** 32, 2 ** 40, COUNTER_MAX - 41, COUNTER_MAX - 1, COUNTER_MAX],
];
const FLOATS = [0, -1, 1, 1e6, -1e6, 1e7, 1e154, 1e308, -1e308, 5e-324];

/** A value of a shape with the extremes of every field; `counter` picks the bounded ones. */
function extreme(shape: Shape, random: Random): unknown {
  switch (shape.kind) {
    case "counter":
      return Math.min(shape.max, random.pick(COUNTERS));
    case "uint":
    case "int":
      return random.pick(COUNTERS);
    case "bool":
      return random.chance(0.5);
    case "float":
      return random.pick(FLOATS);
    case "text":
      return textOf(shape.bytesMax, random);
    case "bytes":
      return new Uint8Array(random.pick([0, 1, shape.bytesMax]));
    case "oneOf":
      return random.pick(shape.words);
    case "list":
      return Array.from({ length: random.pick([0, 1, 4, 8]) }, () => extreme(shape.item, random));
    case "dictionary":
      return new Map();
    case "nullable":
      return random.chance(0.3) ? null : extreme(shape.inner, random);
    case "struct":
      return fieldsOf(shape.fields, random);
    case "union": {
      const { kind, fields } = random.pick(shape.variants);
      return { kind, ...fieldsOf(fields, random) };
    }
  }
}

function fieldsOf(fields: readonly FieldShape[], random: Random): Record<string, unknown> {
  return Object.fromEntries(fields.map(({ name, shape }) => [name, extreme(shape, random)]));
}

/** Names of members where a name fits, addresses where one does, and the longest that is allowed. */
function textOf(bytesMax: number, random: Random): string {
  const name = random.pick(NAMES);
  if (bytesMax === 64) return random.chance(0.9) ? name : "n".repeat(64);
  if (bytesMax === 80) return random.chance(0.9) ? `${name}:7946` : "h".repeat(80);
  return random.pick(["", "x".repeat(bytesMax)]);
}

/** As it arrives: through the codec. */
function received<Value>(type: Type<Value>, random: Random): Value {
  const decoded = decode(type, encode(type, extreme(type.shape, random) as Value));
  if (!decoded.ok) throw new Error(decoded.problem);
  return decoded.value;
}

const readable = <Value>(type: Type<Value>, value: Value): Uint8Array => {
  const bytes = encode(type, value);
  expect(decode(type, bytes)).toMatchObject({ ok: true });
  return bytes;
};

function judgeSwim(effect: SwimEffect): void {
  if (effect.kind === "send") {
    expect(readable(swimDatagram, effect.packet).length).toBeLessThanOrEqual(PACKET_BYTES_MAX);
  } else if (effect.kind === "openStream" || effect.kind === "answerStream") {
    readable(swimStreamPacket, effect.packet);
  } else if (effect.kind === "persistIncarnation") {
    expect(effect.ceiling).toBeLessThanOrEqual(COUNTER_MAX);
  }
}

function swimInput(random: Random, bench: Bench): SwimInput {
  const source = at(random.pick(NAMES));
  switch (random.below(8)) {
    case 0:
      return { kind: "streamRequest", connection: 1, packet: received(swimStreamPacket, random) };
    case 1: {
      const exchange = 1 + random.below(4);
      return { kind: "streamReply", exchange, packet: received(swimStreamPacket, random) };
    }
    case 2: {
      bench.now += random.pick([10, 600, 5_000]);
      return { kind: "tick" };
    }
    default: {
      const packet = received(swimDatagram, random);
      return { kind: "datagram", source, packet };
    }
  }
}

function electionInput(random: Random): ElectionInput {
  if (random.chance(0.2)) return { kind: "tick" };
  const { from, message } = received(electionPacket, random);
  const electorate = random.chance(0.9) ? ELECTORATE : "0123456789abcdef";
  return { kind: "message", from, electorate, message };
}

const VOTERS = ["me", "a", "b"].map(nodeId);

function newElection(seed: number, durable: number): Election {
  return new Election(
    {
      self: nodeId("me"),
      voters: VOTERS,
      durable: { term: term(durable), votedFor: null },
      config: ELECTION_PROFILES.dc,
      priority: 0,
      mustSync: true,
    },
    new Random(`election/${seed}`),
  );
}

const ELECTORATE = newElection(0, 0).snapshot().electorate;

describe("no message of a peer", () => {
  it("makes membership throw, exhaust a counter, or send unreadable messages", () => {
    for (let seed = 0; seed < CONVERSATIONS; seed++) {
      const random = new Random(`swim/${seed}`);
      const ceiling = random.pick([0, 40, COUNTER_MAX - 1, COUNTER_MAX]);
      const bench = new Bench({ seed, ceiling });
      bench.meet("a", "b", "c").clear();
      for (let i = 0; i < MESSAGES; i++) {
        const input = swimInput(random, bench);
        try {
          for (const effect of bench.step(input)) judgeSwim(effect);
        } catch (error) {
          throw new Error(`seed ${seed}, message ${i}: ${JSON.stringify(input)}`, { cause: error });
        }
      }
      // A packet raises us by some jumps at most: a restart is never near the end of the numbers.
      const most = ceiling <= 40 ? MESSAGES * 24 * COUNTER_JUMP_MAX : COUNTER_MAX;
      expect(bench.swim.incarnation).toBeLessThanOrEqual(most);
    }
  });

  it("makes an election throw, exhaust a counter, or send unreadable messages", () => {
    for (let seed = 0; seed < CONVERSATIONS; seed++) {
      const random = new Random(`votes/${seed}`);
      const start = random.pick([0, 7, COUNTER_MAX - 1, COUNTER_MAX]);
      const election = newElection(seed, start);
      let now = 0;
      const judge = (effect: ElectionEffect): void => {
        if (effect.kind === "persistVote") {
          expect(effect.vote.term).toBeLessThanOrEqual(COUNTER_MAX);
        }
        if (effect.kind !== "send") return;
        const { message } = effect;
        const packet = { from: nodeId("me"), group: "g", electorate: ELECTORATE, message };
        readable(electionPacket, packet);
      };
      for (const effect of election.step({ kind: "start" }, millis(now))) judge(effect);
      for (let i = 0; i < MESSAGES; i++) {
        now += random.pick([1, 100, 1_500]);
        const input = electionInput(random);
        try {
          for (const effect of election.step(input, millis(now))) judge(effect);
        } catch (error) {
          throw new Error(`seed ${seed}, message ${i}: ${JSON.stringify(input)}`, { cause: error });
        }
      }
      // Many small steps of a liar are small steps: a restart is never near the end of the numbers.
      if (start < 8) expect(election.term).toBeLessThanOrEqual(MESSAGES * COUNTER_JUMP_MAX + 8);
    }
  });

  it.each([
    ["membership", swimDatagram],
    ["exchange", swimStreamPacket],
    ["election", electionPacket],
  ] as readonly (readonly [string, Type<unknown>])[])(
    "of %s is read with a number beyond its bound",
    (_name, type) => {
      for (let seed = 0; seed < 200; seed++) {
        const random = new Random(`bound/${seed}`);
        const value = extreme(type.shape, random);
        const numbers = countersOf(type.shape, value);
        if (numbers.length === 0) continue;
        const { holder, name, max } = random.pick(numbers);
        for (const beyond of [max + 1, Number.MAX_SAFE_INTEGER - 41, Number.MAX_SAFE_INTEGER]) {
          holder[name] = beyond;
          expect(decode(type, encode(type, value)).ok, `seed ${seed}: ${name}`).toBe(false);
        }
      }
    },
  );

  it("of membership or election has a whole number without a bound", () => {
    const unbounded = JSON.stringify(
      [swimDatagram, swimStreamPacket, electionPacket].map((t) => t.shape),
    );
    expect(unbounded).not.toContain('"kind":"uint"');
  });
});

interface Counter {
  readonly holder: Record<string, unknown>;
  readonly name: string;
  readonly max: number;
}

/** Every counter of a value, with its path. */
function countersOf(shape: Shape, value: unknown): Counter[] {
  if (value === null || typeof value !== "object") return [];
  if (shape.kind === "nullable") return countersOf(shape.inner, value);
  if (shape.kind === "list" && Array.isArray(value)) {
    return value.flatMap((item) => countersOf(shape.item, item));
  }
  const holder = value as Record<string, unknown>;
  const variant =
    shape.kind === "union" ? shape.variants.find(({ kind }) => kind === holder.kind) : null;
  const fields = shape.kind === "struct" ? shape.fields : (variant?.fields ?? []);
  return fields.flatMap(({ name, shape: inner }) =>
    inner.kind === "counter" ? [{ holder, name, max: inner.max }] : countersOf(inner, holder[name]),
  );
}
