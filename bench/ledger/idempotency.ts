/**
 * Memory of an idempotency entry, and lookup speed of keys: the shard (applied state), the gate's cache and the
 * manager's ledger, each with the entries of a busy authority. Memory is the growth of the process by filling (heap and
 * array buffers, collected), not what the tables report. Rates are per second of CPU time, collector included.
 *
 * Run: node --expose-gc --import tsx bench/ledger/idempotency.ts [entries] [--json]
 */

import { encodeUtf8 } from "../../src/core/base/bytes.ts";
import { nodeId } from "../../src/core/base/ids.ts";
import { Random } from "../../src/core/base/random.ts";
import { STORED_ACK } from "../../src/core/ledger/keys/ack.ts";
import { IDEMPOTENCY_PROFILES } from "../../src/core/ledger/keys/config.ts";
import { GateCache } from "../../src/core/ledger/keys/gate-cache.ts";
import { type IdempotencyKey, SHARD_COUNT, shardOf } from "../../src/core/ledger/keys/key.ts";
import { ShardState } from "../../src/core/ledger/keys/shard.ts";
import { decodeShardState, encodeShardState } from "../../src/core/ledger/keys/shard-snapshot.ts";
import { KeyGenerator } from "../../src/core/ledger/keys/testing/key-generator.ts";

const ENTRIES = 500_000;
const LOOKUPS = 200_000;
/** The best counts: other programs of the machine can only make a round slower. */
const ROUNDS = 5;
/** Entries per client: a client submits some jobs, not one. */
const KEYS_PER_CLIENT = 50;
const SNAPSHOT_ENTRIES = 100_000;

interface IdempotencyFigure {
  readonly what: string;
  readonly entries: number;
  /** Growth of the process per entry. */
  readonly bytesPerEntry: number;
  readonly fillPerSecond: number;
  /** Keys found, with the check of the fingerprint and the answer built. */
  readonly hitsPerSecond: number;
  /** Keys that are absent. */
  readonly missesPerSecond: number;
}

const random = new Random("idempotency bench");
const wall = 1_790_000_000_000;
const ack = STORED_ACK;
const replicaSets = Array.from({ length: 40 }, (_, i) =>
  [0, 1, 2].map((n) => nodeId(`gate-${(i + n * 7) % 20}.dc${n + 1}.example`)),
);

/** Created on demand and not kept: a key referenced by the caller would hide the memory of the tables. */
class Keys {
  readonly #random = new Random("keys");
  #generator = new KeyGenerator("host1.dc1:10000", this.#random);
  #made = 0;

  next(): IdempotencyKey {
    if (this.#made++ % KEYS_PER_CLIENT === 0) {
      const host = this.#random.below(5_000);
      const name = `loadtest-${host}.dc${host % 3}:${10_000 + this.#random.below(50_000)}`;
      this.#generator = new KeyGenerator(name, this.#random);
    }
    return this.#generator.next();
  }
}

function jobId(i: number): string {
  return `eu-west-${(wall + i).toString(16)}-${(i * 2_654_435_761).toString(16).padStart(14, "0")}`;
}

/** 32 bytes derived from the number; hashing a submission is not measured. */
const print = new Uint8Array(32);
function fingerprint(i: number): Uint8Array {
  new DataView(print.buffer).setFloat64(0, i);
  new DataView(print.buffer).setFloat64(16, i * 7);
  return print;
}

function heldBytes(): number {
  if (globalThis.gc === undefined) throw new Error("run with node --expose-gc --import tsx");
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** CPU time of this process: the work is one thread, and the machine may be shared. */
function seconds(work: () => void): number {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}

interface Subject {
  readonly what: string;
  fill(count: number): void;
  /** Returns true when the key was found. */
  lookUp(sample: Sample): boolean;
}

/** Everything that a lookup needs, prepared beforehand. */
interface Sample {
  readonly key: IdempotencyKey;
  readonly jobId: string;
  readonly fingerprint: Uint8Array;
}

function measure(make: () => Subject, entries: number): IdempotencyFigure {
  const sample = sampled(entries);
  const before = heldBytes();
  const subject = make();
  const fillSeconds = seconds(() => subject.fill(entries));
  const bytesPerEntry = (heldBytes() - before) / entries;
  const absent = sample.map((one) => ({ ...one, key: flat(`x${one.key}`) as IdempotencyKey }));
  const round = (list: readonly Sample[], found: boolean): number => {
    let right = 0;
    const spent = seconds(() => {
      for (let n = 0; n < LOOKUPS; n++) {
        const one = list[n % list.length];
        if (one !== undefined && subject.lookUp(one) === found) right++;
      }
    });
    if (right !== LOOKUPS) throw new Error(`${subject.what}: ${right} of ${LOOKUPS} as expected`);
    return LOOKUPS / spent;
  };
  const rate = (list: readonly Sample[], found: boolean): number =>
    Math.max(...Array.from({ length: ROUNDS }, () => round(list, found)));
  return {
    what: subject.what,
    entries,
    bytesPerEntry,
    fillPerSecond: entries / fillSeconds,
    hitsPerSecond: rate(sample, true),
    missesPerSecond: rate(absent, false),
  };
}

/** About every tenth key, in random order: the processor's caches must not help. */
function sampled(entries: number): Sample[] {
  const keys = new Keys();
  const sample: Sample[] = [];
  for (let i = 0; i < entries; i++) {
    const key = keys.next();
    if (!random.chance(Math.min(1, 50_000 / entries))) continue;
    const made = { key: flat(key) as IdempotencyKey, jobId: flat(jobId(i)) };
    sample.push({ ...made, fingerprint: fingerprint(i).slice() });
  }
  return random.shuffle(sample);
}

/** A flat string, as a decoder would make it; a concatenated one is slower on its first read. */
function flat(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1");
}

/** All shards of one node, with the routing from the key to its shard. */
function shards(): Subject {
  const states = Array.from({ length: SHARD_COUNT }, () => new ShardState());
  const stateOf = (key: IdempotencyKey): ShardState => states[shardOf(key)] ?? new ShardState();
  return {
    what: "64 shards, SHA-256 of the key included",
    fill: (count) => {
      const keys = new Keys();
      for (let i = 0; i < count; i++) fillOne(stateOf, keys.next(), i);
    },
    lookUp: ({ key, fingerprint: own }) => stateOf(key).outcomeOf(key, own)?.kind === "duplicate",
  };
}

/** One table with everything: the performance of the table itself. */
function oneShard(): Subject {
  const states = Array.from({ length: 2 }, () => new ShardState());
  // A shard has its own bound below these entries: two of them, by the parity of the last character.
  const stateOf = (key: IdempotencyKey): ShardState =>
    states[key.charCodeAt(key.length - 1) & 1] ?? new ShardState();
  return {
    what: "two shards, the table alone",
    fill: (count) => {
      const keys = new Keys();
      for (let i = 0; i < count; i++) fillOne(stateOf, keys.next(), i);
    },
    lookUp: ({ key, fingerprint: own }) => stateOf(key).outcomeOf(key, own)?.kind === "duplicate",
  };
}

function fillOne(
  stateOf: (key: IdempotencyKey) => ShardState,
  key: IdempotencyKey,
  i: number,
): void {
  const state = stateOf(key);
  const replicaSet = replicaSets[i % replicaSets.length] ?? [];
  const created = encodeUtf8("JobCreated");
  const id = jobId(i);
  const entry = {
    key,
    fingerprint: fingerprint(i),
    jobId: id,
    replicaSet,
    created,
    ack,
    at: wall + i,
  };
  state.apply({ kind: "reserved", ...entry }, state.appliedSeq + 1);
  state.apply({ kind: "committed", key, jobId: id, at: wall + i }, state.appliedSeq + 1);
}

function gate(): Subject {
  const config = { ...IDEMPOTENCY_PROFILES.production.gate, entriesMax: 1e9 };
  const cache = new GateCache<number>(config);
  return {
    what: "gate cache",
    fill: (count) => {
      const keys = new Keys();
      for (let i = 0; i < count; i++) {
        const key = keys.next();
        const [forward] = cache.check(key, fingerprint(i).slice(), i, 0);
        const token = forward?.kind === "forward" ? forward.token : -1;
        const answer = { kind: "accepted", jobId: jobId(i), ack, duplicate: false } as const;
        cache.settle(key, token, answer, 0);
      }
    },
    // A miss would insert: `get` is used for those.
    lookUp: ({ key, fingerprint: own }) =>
      cache.get(key) !== null && cache.check(key, own, 0, 0)[0]?.kind === "answer",
  };
}

/** State transfer of one shard with far more than its share. */
function snapshot(): { bytes: number; encodeMs: number; decodeMs: number } {
  const state = new ShardState();
  const keys = new Keys();
  for (let i = 0; i < SNAPSHOT_ENTRIES; i++) fillOne(() => state, keys.next(), i);
  let bytes = new Uint8Array(0) as Uint8Array;
  const encodeMs = seconds(() => {
    bytes = encodeShardState(state);
  });
  let size = 0;
  const decodeMs = seconds(() => {
    size = decodeShardState(bytes)?.size ?? 0;
  });
  if (size !== SNAPSHOT_ENTRIES) throw new Error("the snapshot came back different");
  return { bytes: bytes.length, encodeMs: encodeMs * 1_000, decodeMs: decodeMs * 1_000 };
}

const entries = Number(process.argv.find((word) => /^[0-9]+$/.test(word)) ?? ENTRIES);
const figures = [shards, oneShard, gate].map((make) => measure(make, entries));
const transfer = snapshot();

if (process.argv.includes("--json")) {
  process.stdout.write(`${JSON.stringify({ figures, snapshot: transfer })}\n`);
} else {
  const head = ["", "bytes/entry", "fills/s", "hits/s", "misses/s"];
  const row = (cells: readonly string[]): string =>
    cells.map((cell, i) => (i === 0 ? cell.padEnd(40) : cell.padStart(12))).join("");
  const count = (value: number): string => Math.round(value).toLocaleString("en-US");
  process.stdout.write(`${count(entries)} entries\n${row(head)}\n`);
  for (const figure of figures) {
    const { what, bytesPerEntry, fillPerSecond, hitsPerSecond, missesPerSecond } = figure;
    const numbers = [bytesPerEntry, fillPerSecond, hitsPerSecond, missesPerSecond].map(count);
    process.stdout.write(`${row([what, ...numbers])}\n`);
  }
  process.stdout.write(
    `snapshot of ${count(SNAPSHOT_ENTRIES)} entries: ${count(transfer.bytes)} bytes, ` +
      `${transfer.encodeMs.toFixed(0)} ms to write, ${transfer.decodeMs.toFixed(0)} ms to read\n`,
  );
}
