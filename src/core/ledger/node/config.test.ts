import { describe, expect, it } from "vitest";
import { nodeId } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import { SNAPSHOT_BYTES_MAX } from "../group/codec.ts";
import { IDEMPOTENCY_PROFILES, shardEntriesMax } from "../keys/config.ts";
import { ShardState } from "../keys/shard.ts";
import { CREATED_BYTES_MAX, type ShardEntry } from "../keys/shard-entry.ts";
import { encodeShardState } from "../keys/shard-snapshot.ts";
import { CREATED_BYTES_HELD_MAX } from "../keys/shard-waiters.ts";
import { committed, rejected, reserved, sampleKey } from "../keys/testing/samples.ts";
import { LEDGER_NODE_DEFAULTS, LEDGER_RULES } from "./config.ts";
import { LedgerNode } from "./node.ts";
import type { LedgerNodeConfig } from "./types.ts";

function node(changes: Partial<LedgerNodeConfig>): LedgerNode {
  const self = nodeId("a");
  const config = { ...LEDGER_NODE_DEFAULTS, ...changes };
  const sites = [{ node: self, region: "here" }];
  return new LedgerNode({ self, sites, config, boot: "b1", rules: LEDGER_RULES }, new Random("x"));
}

const { vsr, antiEntropy } = LEDGER_NODE_DEFAULTS;
const { development } = IDEMPOTENCY_PROFILES;

describe("a configuration of a ledger node", () => {
  it("is accepted with its defaults", () => {
    expect(() => node({})).not.toThrow();
  });

  it.each<[string, Partial<LedgerNodeConfig>, string]>([
    ["two replicas", { replicas: 2 }, "an odd number of replicas"],
    ["compaction into the tail", { compactEntries: vsr.tailEntries }, "compaction leaves a tail"],
    ["one attempt", { routeRetryMs: 5_000 }, "a request is routed more than once"],
    ["no pause", { routeRetryMs: 0 }, "not sent again at once"],
    ["a lease without heartbeats", { vsr: { ...vsr, renewMs: 9_000 } }, "a lease is renewed"],
    // The cache of one profile over the shards of another: it would answer for forgotten keys.
    ["mixed profiles", { idempotency: development.authority }, "cache must forget first"],
  ])("with %s is refused at construction", (_, changes, problem) => {
    expect(() => node(changes)).toThrow(problem);
  });

  it("checks how nodes compare before they start to", () => {
    const subject = () => node({ antiEntropy: { ...antiEntropy, fetchesMax: 0 } });
    expect(subject).toThrow("a divergent job can be fetched");
  });
});

describe("a shard that is as full as it may be", () => {
  const { authority } = IDEMPOTENCY_PROFILES.multiDatacenter;
  const jobId = "x".repeat(80);
  const longKey = (sequence: number) => sampleKey(sequence, "c".repeat(128));

  it.each(["committed", "rejected"])("fits a group's snapshot, its keys %s", (ended) => {
    const state = new ShardState();
    let seq = 0;
    const apply = (entry: ShardEntry): unknown => state.apply(entry, seq++);
    const pending = Math.floor(CREATED_BYTES_HELD_MAX / CREATED_BYTES_MAX);
    for (let i = 0; i < shardEntriesMax(authority); i++) {
      const where = { key: longKey(i), at: i };
      const created = new Uint8Array(i < pending ? CREATED_BYTES_MAX : 1);
      if (i < pending) apply(reserved(i, jobId, { ...where, created }));
      else if (ended === "rejected") apply({ ...rejected(i, "x".repeat(200)), ...where });
      else {
        apply(reserved(i, jobId, { ...where, created }));
        apply({ ...committed(i, jobId), ...where });
      }
    }
    expect(state.size).toBe(shardEntriesMax(authority));
    expect(encodeShardState(state).length).toBeLessThanOrEqual(SNAPSHOT_BYTES_MAX);
  });
});
