import { describe, expect, it } from "vitest";
import { nodeId } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import { IDEMPOTENCY_PROFILES } from "../keys/config.ts";
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
