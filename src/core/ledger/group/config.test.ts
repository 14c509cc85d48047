import { describe, expect, it } from "vitest";
import { nodeId } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import { VSR_DEFAULTS, type VsrConfig } from "./config.ts";
import { Replica } from "./replica.ts";

function replica(changes: Partial<VsrConfig>): Replica {
  const self = nodeId("a");
  const config = { ...VSR_DEFAULTS, ...changes };
  return new Replica({ self, config }, { kind: "founded", members: [self] }, new Random("config"));
}

describe("a configuration of replication", () => {
  it("is accepted with its defaults, and without leases", () => {
    expect(() => replica({})).not.toThrow();
    expect(() => replica({ leaseMs: 0 })).not.toThrow();
  });

  it.each([
    [{ renewMs: 4_000 }, "a lease is renewed three times"],
    [{ retransmitMs: 3_001 }, "before the next idle heartbeat"],
    [{ clockDriftMax: 1 }, "the clock drift is a fraction"],
    [{ leaseMarginMs: 10_000 }, "leave something of a lease"],
    [{ batchEntries: 4_096 }, "no more than the window"],
    [{ batchBytes: 0 }, "a message holds an entry"],
    [{ leaseMs: 0, leaseReads: true }, "reads by lease need a lease"],
  ])("with %j is refused at construction", (changes, problem) => {
    expect(() => replica(changes)).toThrow(problem);
  });
});
