import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import { encodeUtf8 } from "../../base/bytes.ts";
import { JOB_SPEC_BYTES_MAX } from "../job/limits.ts";
import { type IdempotencyKey, shardOf } from "../keys/key.ts";
import { LEDGER_NODE_DEFAULTS } from "./config.ts";
import type { LedgerRequest } from "./messages.ts";
import { TestCluster, WALL } from "./testing/cluster.ts";
import { shardGroup } from "./topology.ts";

const THREE = ["use1", "euw1", "apse1"];
const SHARD = 7;
const LARGE_BYTES = 900_000;

function keysOfShard(count: number): string[] {
  const keys: string[] = [];
  for (let i = 0; keys.length < count; i++) {
    const key = `big:${i}:0123456789abcdef`;
    if (shardOf(key as IdempotencyKey) === SHARD) keys.push(key);
  }
  return keys;
}

function submit(key: string, specBytes = LARGE_BYTES): LedgerRequest {
  return { kind: "submit", key, spec: new Uint8Array(specBytes), assignedDcs: ["dc1"] };
}

describe("the largest submission that is allowed", () => {
  it("is accepted, and is one job however often it is sent", () => {
    const cluster = new TestCluster(THREE, {}, [SHARD]);
    cluster.run(2_000);
    const [key = ""] = keysOfShard(1);
    for (const index of [0, 1, 2]) {
      expect(outcomeOf(cluster.ask(index, submit(key, JOB_SPEC_BYTES_MAX)))).toBe("accepted");
    }
  });
});

describe("a replica of a shard that was down for many large submissions", () => {
  it("gets them with a snapshot, in records that the log takes", () => {
    const vsr = { ...LEDGER_NODE_DEFAULTS.vsr, tailEntries: 8 };
    const cluster = new TestCluster(THREE, { vsr, compactEntries: 48 }, [SHARD]);
    cluster.run(2_000);
    const away = cluster.nodes.findIndex(
      ({ node }) => node?.groups.get(shardGroup(SHARD))?.replica.state.acting === false,
    );
    const asked = (away + 1) % 3;
    cluster.at(away).cut = true;
    keysOfShard(46).forEach((key, index) => {
      const answer = cluster.ask(asked, submit(key, index < 25 ? 1 : LARGE_BYTES), 40_000);
      expect(outcomeOf(answer)).toBe("accepted");
    });
    cluster.at(away).cut = false;
    cluster.run(20_000);
    const placeAt = (index: number) => cluster.at(index).node?.groups.get(shardGroup(SHARD));
    expect(placeAt(away)?.app.appliedSeq).toBe(placeAt(asked)?.app.appliedSeq);
  });
});

describe("more submissions in one turn than the window of a shard has bytes for", () => {
  it("get a retry answer, and their keys are free when they retry (IDEM-21)", () => {
    const vsr = { ...LEDGER_NODE_DEFAULTS.vsr, windowBytes: 2 * LARGE_BYTES };
    const cluster = new TestCluster(THREE, { vsr });
    cluster.run(2_000);
    const primary = cluster.nodes.findIndex(
      ({ node }) => node?.groups.get(shardGroup(SHARD))?.replica.state.acting === true,
    );
    const keys = keysOfShard(10);
    const { node } = cluster.at(primary);
    keys.forEach((key, index) => {
      const input = { kind: "request", token: 1_000 + index, request: submit(key) } as const;
      node?.take(input, millis(cluster.now), WALL + cluster.now);
    });
    cluster.run(3_000);
    const first = keys.map((_, index) => outcomeOf(cluster.answers.get(1_000 + index)));
    expect(first).toContain("accepted");
    expect(first).toContain("retry: the shard's log is busy");
    expect(keys.map((key) => outcomeOf(cluster.ask(primary, submit(key))))).toEqual(
      keys.map(() => "accepted"),
    );
  });
});

function outcomeOf(answer: ReturnType<TestCluster["ask"]> | undefined): string {
  if (answer?.kind !== "submitted") return answer?.kind ?? "none";
  return answer.answer.kind === "retry" ? `retry: ${answer.answer.why}` : answer.answer.kind;
}

describe("a submission while no disk takes anything more", () => {
  it("is answered when its time is over, through the shard's primary and with a duplicate too", () => {
    const cluster = new TestCluster(THREE);
    cluster.run(2_000);
    const primary = cluster.nodes.findIndex(
      ({ node }) => node?.groups.get(shardGroup(SHARD))?.replica.state.acting === true,
    );
    const [key = ""] = keysOfShard(1);
    for (const node of cluster.nodes) node.slowDisk = true;
    const { requestTimeoutMs } = LEDGER_NODE_DEFAULTS;
    const tokens = [primary, primary, (primary + 1) % 3].map((index) =>
      cluster.request(index, submit(key)),
    );
    cluster.run(requestTimeoutMs - 1_000);
    expect(tokens.map((token) => cluster.answers.has(token))).toEqual([false, false, false]);
    cluster.run(1_500);
    const outcomes = tokens.map((token) => outcomeOf(cluster.answers.get(token)).split(":")[0]);
    expect(outcomes).toEqual(["retry", "retry", "retry"]);
  });
});

describe("a shard whose primary has a wrong wall clock", () => {
  it("forgets no key before its time (IDEM-24)", () => {
    const cluster = new TestCluster(THREE);
    cluster.run(2_000);
    const keys = Array.from({ length: 30 }, (_, index) => `me:${index}:0123456789abcdef`);
    const small = (key: string): LedgerRequest => {
      return { kind: "submit", key, spec: Uint8Array.of(1), assignedDcs: ["dc1"] };
    };
    const ask = (key: string, index: number): string => {
      const answer = cluster.ask(index % 3, small(key));
      if (answer.kind !== "submitted" || answer.answer.kind !== "accepted") return answer.kind;
      return answer.answer.jobId;
    };
    const first = keys.map(ask);
    cluster.run(5_000);
    // The first node comes back an hour ahead; the others restart, so that it leads.
    for (const index of [0, 1, 2]) {
      const test = cluster.at(index);
      cluster.kill(test);
      cluster.run(13_000);
      if (index === 0) test.skewMs = 3_600_000;
      cluster.start(test);
      cluster.run(6_000);
    }
    cluster.run(60_000);
    const leads = [...(cluster.at(0).node?.groups.values() ?? [])].some(
      ({ app, replica }) => app.kind === "shard" && replica.state.acting,
    );
    expect(leads).toBe(true);
    expect(keys.map(ask)).toEqual(first);
    cluster.run(1_000);
    expect(cluster.alarms.join()).toContain("CLOCK_SKEW: an entry is 3600 s ahead: set clocks");
  });
});

describe("a submission for a datacenter that the shard's primary does not know (IDEM-23)", () => {
  it("is rejected, and stays so for its key when the datacenter is known", () => {
    const datacenters = ["dc1"];
    const cluster = new TestCluster(THREE, { datacenters });
    cluster.run(2_000);
    const ask = (index: number, key: string): ReturnType<TestCluster["ask"]> =>
      cluster.ask(index, {
        ...{ kind: "submit", key, spec: Uint8Array.of(1), assignedDcs: ["dc1", "dc9"] },
      });
    const rejected = (duplicate: boolean): unknown => {
      const result = encodeUtf8("no datacenter dc9 is configured; there are dc1");
      return { kind: "submitted", answer: { kind: "rejected", result, duplicate } };
    };
    const key = "me:1:0123456789abcdef";
    expect(ask(0, key)).toEqual(rejected(false));
    expect(ask(0, "")).toMatchObject({ kind: "refused", code: "UNKNOWN_DC" });
    datacenters.push("dc9");
    expect(ask(1, key)).toEqual(rejected(true));
    // Any primary after a restart has it from its log.
    for (const node of cluster.nodes) {
      cluster.kill(node);
      cluster.start(node);
    }
    cluster.run(30_000);
    expect(ask(2, key)).toEqual(rejected(true));
    expect(outcomeOf(ask(2, "me:2:0123456789abcdef"))).toBe("accepted");
  });
});
