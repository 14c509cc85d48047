/**
 * Every decoder that bytes from outside reach, with valid samples to start from. A fuzzer feeds each with
 * rubbish and with damaged samples; none may throw, hang, or keep memory. (CODEC-1, UDP-8, B-49)
 */

import { encodeUtf8 } from "../../src/core/base/bytes.ts";
import { encodeRecord, recoverRecord } from "../../src/core/base/durable-record.ts";
import { address } from "../../src/core/base/ids.ts";
import { Random } from "../../src/core/base/random.ts";
import { decodeMemberState, encodeMemberState } from "../../src/core/cluster/node/member-state.ts";
import { readCachedPeers } from "../../src/core/membership/discovery/peer-cache.ts";
import { deflate } from "../../src/host/deflate.ts";
import { parseAddress } from "../../src/wire/address.ts";
import { checksumAead } from "../../src/wire/checksum-aead.ts";
import { ChunkReader, toChunks } from "../../src/wire/chunk.ts";
import { readClaims } from "../../src/wire/claims.ts";
import { type Datagram, decodeDatagram, encodeDatagram } from "../../src/wire/datagram.ts";
import { FrameReader, frame } from "../../src/wire/frame.ts";
import { DatagramGuard } from "../../src/wire/guard.ts";
import { hello, helloAnswer } from "../../src/wire/hello.ts";
import { KeyRing } from "../../src/wire/key-ring.ts";
import { electionPacket, swimDatagram } from "../../src/wire/messages/membership.ts";
import {
  decodeStreamMessage,
  encodeStreamMessage,
  MESSAGES,
  type MessageName,
  type StreamEnvelope,
} from "../../src/wire/registry.ts";
import { decode, encode, type Type } from "../../src/wire/schema.ts";
import { StreamGuard } from "../../src/wire/stream-guard.ts";
import { generate } from "../../src/wire/testing/generate.ts";
import { parseVersion } from "../../src/wire/version.ts";
import { walTargets } from "./wal-targets.ts";

export interface Target {
  readonly name: string;
  readonly samples: readonly Uint8Array[];
  readonly decode: (input: Uint8Array) => void;
}

const SAMPLES = 40;
const made = KeyRing.create(checksumAead, ["fuzzing-4-Quality-and-Profit"], "fuzz");
if (!made.ok) throw new Error(made.problem);
const { ring } = made;

function samplesOf(name: string, make: (random: Random) => Uint8Array): readonly Uint8Array[] {
  const random = new Random(name);
  return Array.from({ length: SAMPLES }, () => make(random));
}

function schemaTarget(name: string, type: Type<unknown>): Target {
  const samples = samplesOf(name, (random) => encode(type, generate(type, random)));
  return { name, samples, decode: (input) => void decode(type, input) };
}

function datagramTarget(protocol: Datagram["protocol"], type: Type<unknown>): Target {
  const samples = samplesOf(protocol, (random) =>
    encodeDatagram({ protocol, packet: generate(type, random) } as Datagram),
  );
  return { name: `datagram ${protocol}`, samples, decode: (input) => void decodeDatagram(input) };
}

function streamTarget(name: MessageName): Target {
  const type = MESSAGES[name].type as Type<unknown>;
  const samples = samplesOf(name, (random) =>
    encodeStreamMessage({ name, correlation: 7, value: generate(type, random) } as StreamEnvelope),
  );
  return { name: `message ${name}`, samples, decode: (input) => void decodeStreamMessage(input) };
}

function guardTarget(): Target {
  const random = new Random("guard");
  const entropy = (count: number): Uint8Array =>
    Uint8Array.from({ length: count }, () => random.below(256));
  const start = (): DatagramGuard => new DatagramGuard({ ring, entropy });
  const [us, them] = [start(), start()];
  const here = address("10.0.0.1:1");
  const there = address("10.0.0.2:1");
  const [greeting] = them.seal(here, Uint8Array.of(1), 0);
  const answer = us.open(there, greeting?.bytes ?? new Uint8Array(), 0).send[0];
  const held = them.open(here, answer?.bytes ?? new Uint8Array(), 0).send[0];
  us.open(there, held?.bytes ?? new Uint8Array(), 0);
  const samples = Array.from(
    { length: SAMPLES },
    (_, i) => them.seal(here, new Uint8Array(i), 0)[0]?.bytes ?? new Uint8Array(),
  );
  let now = 0;
  return {
    name: "guard",
    samples: [...samples, greeting?.bytes ?? new Uint8Array()],
    // Time advances, or the rate limits would reject most inputs before the parts worth reaching.
    decode: (input) => {
      now += 1_000;
      us.open(there, input, now);
    },
  };
}

function streamGuardTarget(): Target {
  const random = new Random("stream guard");
  const start = (side: "client" | "server"): StreamGuard =>
    new StreamGuard({
      ring,
      entropy: (count) => Uint8Array.from({ length: count }, () => random.below(256)),
      side,
      hello: generate(hello, random),
      claims: null,
    });
  return {
    name: "stream guard",
    samples: samplesOf("greetings", () => start("client").greet()),
    decode: (input) => void start("server").push(input),
  };
}

function frameTarget(): Target {
  const samples = samplesOf("frames", (random) =>
    frame(Uint8Array.from({ length: 1 + random.below(200) }, () => random.below(256))),
  );
  return { name: "frames", samples, decode: (input) => void new FrameReader().push(input) };
}

function chunkTarget(): Target {
  const samples = samplesOf("chunks", (random) => {
    const text = encodeUtf8("member ".repeat(1 + random.below(600)));
    const chunked = toChunks(text, random.chance(0.7) ? deflate : null, random.below(100));
    return chunked.ok ? (chunked.chunks[0] ?? new Uint8Array()) : new Uint8Array();
  });
  return { name: "chunks", samples, decode: (input) => void new ChunkReader(deflate).push(input) };
}

function textTarget(name: string, texts: readonly string[], read: (text: string) => void): Target {
  const decodeText = (input: Uint8Array): void => read(Buffer.from(input).toString("utf8"));
  return { name, samples: texts.map(encodeUtf8), decode: decodeText };
}

export function allTargets(): readonly Target[] {
  return [
    datagramTarget("swim", swimDatagram as Type<unknown>),
    datagramTarget("election", electionPacket as Type<unknown>),
    ...(Object.keys(MESSAGES) as MessageName[]).map(streamTarget),
    schemaTarget("hello", hello as Type<unknown>),
    schemaTarget("hello answer", helloAnswer as Type<unknown>),
    guardTarget(),
    streamGuardTarget(),
    frameTarget(),
    chunkTarget(),
    ...walTargets(),
    {
      name: "durable record",
      samples: [encodeRecord({ generation: 3, payload: Uint8Array.of(1, 2, 3) })],
      decode: (input) => void recoverRecord(input),
    },
    {
      name: "agent state",
      samples: [
        encodeMemberState({
          health: 1,
          group: "manager@dc1",
          leading: true,
          term: 4,
          electorate: "0123456789abcdef",
        }),
      ],
      decode: (input) => void decodeMemberState(input),
    },
    textTarget("claims", ["hyperscale://role/worker,hyperscale://cluster/c"], (text) =>
      readClaims(text.split(",")),
    ),
    textTarget("address", ["10.0.0.1:7946", "[::1]:80", "host"], (text) => parseAddress(text)),
    textTarget("version", ["1.2"], (text) => parseVersion(text)),
    textTarget("peer cache", ['[{"address":"a:1","lastSeen":1,"successes":1}]'], (text) => {
      try {
        readCachedPeers(JSON.parse(text));
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
      }
    }),
  ];
}

/** One damaged input: rubbish, or a sample cut, flipped, stretched, or spliced with another. */
export function damaged(target: Target, random: Random): Uint8Array {
  if (target.samples.length === 0 || random.chance(0.1)) {
    return Uint8Array.from({ length: random.below(120) }, () => random.below(256));
  }
  const sample = random.pick(target.samples);
  switch (random.below(6)) {
    case 0:
      return sample.slice(0, random.below(sample.length + 1));
    case 1:
      return flip(sample.slice(), random, 1);
    case 2:
      return flip(sample.slice(), random, 1 + random.below(8));
    case 3:
      return stretch(sample, random);
    case 4: {
      const other = random.pick(target.samples);
      const head = sample.subarray(0, random.below(sample.length + 1));
      return concat(head, other.subarray(random.below(other.length + 1)));
    }
    default:
      return concat(
        sample,
        Uint8Array.from({ length: random.below(20) }, () => random.below(256)),
      );
  }
}

/** Bytes that decoders stumble over: ends of ranges, continued numbers, all ones. */
const SPECIAL = [0, 1, 0x7f, 0x80, 0xfe, 0xff];

function flip(bytes: Uint8Array, random: Random, count: number): Uint8Array {
  for (let i = 0; i < count && bytes.length > 0; i++) {
    const at = random.below(bytes.length);
    bytes[at] = random.chance(0.5) ? random.pick(SPECIAL) : random.below(256);
  }
  return bytes;
}

/** A number grows beyond all bounds in the middle of a sample. */
function stretch(sample: Uint8Array, random: Random): Uint8Array {
  const at = random.below(sample.length + 1);
  const number = new Uint8Array(1 + random.below(9)).fill(0xff);
  return concat(concat(sample.subarray(0, at), number), sample.subarray(at));
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const joined = new Uint8Array(a.length + b.length);
  joined.set(a);
  joined.set(b, a.length);
  return joined;
}
