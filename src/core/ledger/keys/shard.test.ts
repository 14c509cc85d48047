import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeUtf8 } from "../../base/bytes.ts";
import { Random } from "../../base/random.ts";
import { IDEMPOTENCY_RULES } from "./rules.ts";
import { type ShardOutcome, ShardState } from "./shard.ts";
import { decodeShardEntry, encodeShardEntry, type ShardEntry } from "./shard-entry.ts";
import { decodeShardState, encodeShardState } from "./shard-snapshot.ts";
import { committed, NODES, rejected, reserved, sampleKey, samplePrint } from "./testing/samples.ts";

function applyAll(state: ShardState, entries: readonly ShardEntry[]): ShardOutcome[] {
  return entries.map((entry) => state.apply(entry, state.appliedSeq + 1));
}

function kinds(outcomes: readonly ShardOutcome[]): string[] {
  return outcomes.map(({ kind }) => kind);
}

const everything = {
  kind: "expire",
  committedBefore: 1e9,
  rejectedBefore: 1e9,
  countMax: 4_096,
  at: 0,
} as const;

describe("a shard applies", () => {
  it("the first reservation of a key as new, and every later one as a duplicate of its job", () => {
    const state = new ShardState();
    const [first, second, third] = applyAll(state, [
      reserved(1, "job-a"),
      reserved(1, "job-b", { ack: encodeUtf8("ack job-b") }),
      reserved(2, "job-c"),
    ]);
    expect(first).toEqual({ kind: "new", jobId: "job-a", ack: encodeUtf8("ack job-a") });
    expect(second).toEqual({ kind: "duplicate", jobId: "job-a", ack: encodeUtf8("ack job-a") });
    expect(third).toMatchObject({ kind: "new", jobId: "job-c" });
    expect(state.size).toBe(2);
  });

  it("one hundred reservations of one key in any order as one new job", () => {
    const state = new ShardState();
    const entries = Array.from({ length: 100 }, (_, i) => reserved(7, `job-${i}`));
    new Random("hundred").shuffle(entries);
    const outcomes = applyAll(state, entries);
    expect(outcomes.filter(({ kind }) => kind === "new")).toHaveLength(1);
    const jobs = outcomes.map((outcome) => ("jobId" in outcome ? outcome.jobId : ""));
    expect(new Set(jobs)).toEqual(new Set([entries[0]?.jobId]));
  });

  it("another fingerprint under a known key as reuse, whatever the key's status", () => {
    const state = new ShardState();
    const other = { fingerprint: samplePrint("something else") };
    expect(
      kinds(
        applyAll(state, [
          reserved(1, "job-a"),
          reserved(1, "job-b", other),
          committed(1, "job-a"),
          reserved(1, "job-b", other),
          rejected(2, "no"),
          reserved(2, "job-c", other),
        ]),
      ),
    ).toEqual(["new", "keyReused", "committed", "keyReused", "rejected", "keyReused"]);
  });

  it("COMMITTED once, for the job that holds the key only, and nothing for absent keys (IDEM-6)", () => {
    const state = new ShardState();
    const outcomes = applyAll(state, [
      committed(1, "job-a"),
      reserved(1, "job-a"),
      committed(1, "job-b"),
      committed(1, "job-a"),
      committed(1, "job-a"),
      reserved(1, "job-z"),
    ]);
    expect(kinds(outcomes)).toEqual([
      "ignored",
      "new",
      "ignored",
      "committed",
      "ignored",
      "duplicate",
    ]);
  });

  it("REJECTED as final: neither a later reservation nor another rejection changes it (IDEM-6)", () => {
    const state = new ShardState();
    const outcomes = applyAll(state, [
      rejected(1, "vus must be positive"),
      rejected(1, "other words"),
      reserved(1, "job-a"),
      committed(1, "job-a"),
    ]);
    const result = encodeUtf8("vus must be positive");
    expect(outcomes).toEqual([
      { kind: "rejected", result, first: true },
      { kind: "rejected", result, first: false },
      { kind: "rejected", result, first: false },
      { kind: "ignored" },
    ]);
  });

  it("REJECTED of a pending key as its duplicate: the positive answer is out already", () => {
    const state = new ShardState();
    applyAll(state, [reserved(1, "job-a")]);
    expect(state.apply(rejected(1, "no"), 1)).toMatchObject({ kind: "duplicate", jobId: "job-a" });
    expect(state.status(sampleKey(1))).toBe("pending");
  });

  // IDEM-24
  it("EXPIRE to terminal entries that are old enough, oldest first, within its count", () => {
    const state = new ShardState();
    applyAll(state, [
      reserved(0, "job-0", { at: 1 }),
      ...[1, 2, 3, 4].map((i) => reserved(i, `job-${i}`, { at: i })),
      ...[1, 2, 3, 4].map((i) => committed(i, `job-${i}`, i * 10)),
      rejected(5, "no", 41),
    ]);
    const expire = {
      kind: "expire",
      committedBefore: 31,
      rejectedBefore: 41,
      countMax: 2,
      at: 0,
    } as const;
    expect(state.apply(expire, 100)).toEqual({ kind: "expired", count: 2 });
    expect([1, 2, 3].map((i) => state.has(sampleKey(i)))).toEqual([false, false, true]);
    expect(state.apply(expire, 101)).toEqual({ kind: "expired", count: 1 });
    expect(state.apply(everything, 102)).toEqual({ kind: "expired", count: 2 });
    // IDEM-19: what is pending stays, however old.
    expect([...state.records()].map(({ jobId }) => jobId)).toEqual(["job-0"]);
  });

  it("times that never go back: a new primary with a slow clock cannot make entries expire early", () => {
    const state = new ShardState();
    applyAll(state, [
      reserved(1, "job-1", { at: 500 }),
      committed(1, "job-1", 500),
      reserved(2, "job-2", { at: 100 }),
      committed(2, "job-2", 100),
    ]);
    expect(state.lookup(sampleKey(2))?.at).toBe(500);
    const expire = {
      kind: "expire",
      committedBefore: 500,
      rejectedBefore: 0,
      countMax: 10,
      at: 0,
    } as const;
    expect(state.apply(expire, 9)).toEqual({ kind: "expired", count: 0 });
  });

  it("each log position once: a repetition is a defect", () => {
    const state = new ShardState();
    state.apply(reserved(1, "job-a"), 5);
    expect(() => state.apply(reserved(1, "job-a"), 5)).toThrow("applied once");
  });
});

describe("a shard remembers", () => {
  it("which jobs are not founded yet, with all that founding takes, until COMMITTED", () => {
    const state = new ShardState();
    applyAll(state, [reserved(1, "job-1"), reserved(2, "job-2"), reserved(3, "job-3")]);
    state.apply(committed(2, "job-2"), 10);
    expect([...state.pendingFoundings()].map(({ jobId }) => jobId)).toEqual(["job-1", "job-3"]);
    expect(state.founding(sampleKey(3))).toEqual({
      key: sampleKey(3),
      jobId: "job-3",
      replicaSet: NODES,
      created: encodeUtf8("created job-3"),
      reservedAt: 1_000,
    });
    expect(state.founding(sampleKey(2))).toBeNull();
    expect(state.createdBytes).toBe(2 * "created job-1".length);
  });
});

describe("rules that can be broken", () => {
  it("without the apply-time check a second reservation becomes a second job", () => {
    const state = new ShardState({ ...IDEMPOTENCY_RULES, applyTimeCheck: false });
    expect(kinds(applyAll(state, [reserved(1, "a"), reserved(1, "b")]))).toEqual(["new", "new"]);
  });

  it("without fingerprints another request is answered with the wrong job", () => {
    const state = new ShardState({ ...IDEMPOTENCY_RULES, fingerprintChecked: false });
    const other = { fingerprint: samplePrint("other") };
    expect(applyAll(state, [reserved(1, "a"), reserved(1, "b", other)])[1]).toMatchObject({
      kind: "duplicate",
      jobId: "a",
    });
  });

  it("with expiring reservations an acked job is forgotten", () => {
    const state = new ShardState({ ...IDEMPOTENCY_RULES, pendingNeverExpires: false });
    expect(kinds(applyAll(state, [reserved(1, "a"), everything, reserved(1, "b")]))).toEqual([
      "new",
      "expired",
      "new",
    ]);
  });

  it("with mutable answers a rejection replaces an accepted job", () => {
    const state = new ShardState({ ...IDEMPOTENCY_RULES, terminalImmutable: false });
    expect(applyAll(state, [reserved(1, "a"), rejected(1, "no")])[1]).toMatchObject({
      first: true,
    });
  });
});

/** Any log over a few keys, jobs and times. */
const anyEntry: fc.Arbitrary<ShardEntry> = fc.oneof(
  fc.tuple(fc.nat(9), fc.nat(4), fc.nat(2), fc.nat(500)).map(([k, j, body, at]) =>
    reserved(k, `job-${k}-${j}`, {
      at,
      fingerprint: samplePrint(`${k} ${body === 2}`),
      replicaSet: NODES.slice(0, 1 + (j % 3)),
    }),
  ),
  fc
    .tuple(fc.nat(9), fc.nat(4), fc.nat(500))
    .map(([k, j, at]) => committed(k, `job-${k}-${j}`, at)),
  fc.tuple(fc.nat(9), fc.nat(500)).map(([k, at]) => rejected(k, "no", at)),
  fc.tuple(fc.nat(500), fc.nat(500), fc.nat(4)).map(
    ([committedBefore, rejectedBefore, countMax]): ShardEntry => ({
      kind: "expire",
      committedBefore,
      rejectedBefore,
      countMax,
      at: 0,
    }),
  ),
);

describe("a shard is deterministic", () => {
  it("like a model made of plain objects, for any log", () => {
    fc.assert(
      fc.property(fc.array(anyEntry, { maxLength: 120 }), (log) => {
        const state = new ShardState(IDEMPOTENCY_RULES, 99);
        const model = new ShardModel();
        for (const entry of log) {
          const outcome = state.apply(entry, state.appliedSeq + 1);
          expect(outcome.kind).toBe(model.apply(entry));
          expect(state.size).toBe(model.live.size);
        }
      }),
      { numRuns: 300, seed: 11 },
    );
  });

  it("over a snapshot anywhere in the log: same bytes, same outcomes after", () => {
    fc.assert(
      fc.property(fc.array(anyEntry, { maxLength: 80 }), fc.nat(80), (log, cut) => {
        const straight = new ShardState(IDEMPOTENCY_RULES, 1);
        applyAll(straight, log.slice(0, cut));
        const moved = decodeShardState(encodeShardState(straight), IDEMPOTENCY_RULES, 2);
        if (moved === null) throw new Error("a snapshot decodes");
        const rest = log.slice(cut);
        expect(applyAll(moved, rest)).toEqual(applyAll(straight, rest));
        expect(encodeShardState(moved)).toEqual(encodeShardState(straight));
      }),
      { numRuns: 300, seed: 12 },
    );
  });
});

/** The state table of the protocol page, in its simplest form. */
class ShardModel {
  readonly live = new Map<string, { status: string; print: string; jobId: string; at: number }>();
  #clock = 0;

  apply(entry: ShardEntry): string {
    if (entry.kind === "expire") {
      let left = entry.countMax;
      for (const [status, before] of [
        ["committed", entry.committedBefore],
        ["rejected", entry.rejectedBefore],
      ] as const) {
        const old = [...this.live]
          .filter(([, held]) => held.status === status && held.at < before)
          .slice(0, left);
        for (const [key] of old) this.live.delete(key);
        left -= old.length;
      }
      return "expired";
    }
    const held = this.live.get(entry.key);
    if (entry.kind === "committed") {
      if (held?.status !== "pending" || held.jobId !== entry.jobId) return "ignored";
      this.#clock = Math.max(this.#clock, entry.at);
      this.live.delete(entry.key);
      this.live.set(entry.key, { ...held, status: "committed", at: this.#clock });
      return "committed";
    }
    const print = String(entry.fingerprint);
    if (held !== undefined && held.print !== print) return "keyReused";
    if (held !== undefined) return held.status === "rejected" ? "rejected" : "duplicate";
    this.#clock = Math.max(this.#clock, entry.at);
    const jobId = entry.kind === "reserved" ? entry.jobId : "";
    const status = entry.kind === "reserved" ? "pending" : "rejected";
    this.live.set(entry.key, { status, print, jobId, at: this.#clock });
    return entry.kind === "reserved" ? "new" : "rejected";
  }
}

describe("bytes of entries", () => {
  it("come back as they went in", () => {
    fc.assert(
      fc.property(anyEntry, (entry) => {
        expect(decodeShardEntry(encodeShardEntry(entry))).toEqual(entry);
      }),
      { numRuns: 300, seed: 13 },
    );
  });

  it("are refused when cut anywhere, and when anything follows", () => {
    for (const entry of [reserved(1, "a"), committed(1, "a"), rejected(1, "no"), everything]) {
      const bytes = encodeShardEntry(entry);
      for (let length = 0; length < bytes.length; length++) {
        expect(decodeShardEntry(bytes.subarray(0, length))).toBeNull();
      }
      expect(decodeShardEntry(Uint8Array.of(...bytes, 0))).toBeNull();
    }
  });

  it("never make the decoder throw, and what it accepts encodes to the same bytes", () => {
    const random = new Random("entries");
    const samples = [reserved(1, "a"), committed(1, "a"), rejected(1, "no"), everything];
    let accepted = 0;
    for (let i = 0; i < 20_000; i++) {
      const bytes = encodeShardEntry(random.pick(samples));
      for (let flips = random.below(3); flips >= 0; flips--) {
        bytes[random.below(bytes.length)] = random.below(256);
      }
      const entry = decodeShardEntry(bytes);
      if (entry === null) continue;
      accepted++;
      expect(decodeShardEntry(encodeShardEntry(entry))).toEqual(entry);
    }
    expect(accepted).toBeGreaterThan(1_000);
  });
});

describe("bytes of a whole shard", () => {
  const filled = (): ShardState => {
    const state = new ShardState();
    applyAll(state, [
      ...[0, 1, 2, 3].map((i) => reserved(i, `job-${i}`, { at: i })),
      committed(1, "job-1", 10),
      rejected(9, "no", 11),
    ]);
    return state;
  };

  it("are refused when cut anywhere", () => {
    const bytes = encodeShardState(filled());
    for (let length = 0; length < bytes.length; length++) {
      expect(decodeShardState(bytes.subarray(0, length))).toBeNull();
    }
  });

  it("never make the decoder throw, and what it accepts is a working state", () => {
    const random = new Random("snapshots");
    const good = encodeShardState(filled());
    for (let i = 0; i < 2_000; i++) {
      const bytes = good.slice();
      for (let flips = random.below(3); flips >= 0; flips--) {
        bytes[random.below(bytes.length)] = random.below(256);
      }
      const state = decodeShardState(bytes);
      if (state === null) continue;
      expect(encodeShardState(state)).toEqual(encodeShardState(decodeShardState(bytes) ?? state));
      state.apply(everything, state.appliedSeq + 1);
      expect(state.size).toBe(state.pendingCount);
    }
  });
});
