/** The judge of the chaos run: what it puts down to a fault, and what it does not. */

import { describe, expect, it } from "vitest";
import { explanation } from "./chaos-attempts.ts";
import type { Fault } from "./chaos-faults.ts";

const LEASES = { taskLeaseMs: 30_000, leaderLeaseMs: 8_000 };
const LOST = {
  ...{ task: "1", attempt: 1, nodeId: "worker2-1", assignedAt: 100_000, lostAt: 101_000 },
  ...{ leaderChanged: false, reason: "undelivered", words: "" },
};
const KILL: Fault = { kind: "kill", nodeId: "worker2-1", led: false, from: 99_800, to: 99_990 };

function because(lost: Partial<typeof LOST>, faults: readonly Fault[] = []): string | null {
  return explanation({ ...LOST, ...lost }, faults, LEASES).because;
}

describe("what explains a lost attempt", () => {
  it("is a kill of its node, also one that was over when the grant was written", () => {
    expect(because({}, [KILL])).toMatch(/killed/);
    expect(because({ reason: "lost" }, [KILL])).toMatch(/killed/);
    expect(because({}, [{ ...KILL, nodeId: "worker3-1" }])).toBeNull();
    expect(because({}, [{ ...KILL, from: 101_500, to: 101_600 }])).toBeNull();
  });

  it("is a change of leader for a grant that was not delivered, and for nothing else", () => {
    expect(because({ leaderChanged: true })).toMatch(/lost with the leader/);
    for (const reason of ["lost", "expired", "failed"])
      expect(because({ leaderChanged: true, reason })).toBeNull();
  });

  it("is a stop of its node that is longer than the lease lasts, and not a short one", () => {
    const stop: Fault = { ...KILL, kind: "stop", from: 100_000, to: 145_000 };
    expect(because({ reason: "expired", lostAt: 131_000 }, [stop])).toMatch(/stood still/);
    const short = { ...stop, to: 106_000 };
    expect(because({ reason: "expired", lostAt: 107_000 }, [short])).toBeNull();
  });

  it("is a database that its node alone cannot reach, where another leader has come meanwhile", () => {
    const alone: Fault = { ...KILL, kind: "database unreachable", from: 100_000, to: 145_000 };
    const expired = { reason: "expired", lostAt: 131_000 };
    expect(because({ ...expired, leaderChanged: true }, [alone])).toMatch(/could not look it up/);
    expect(because(expired, [alone])).toBeNull();
    const other = { ...alone, nodeId: "worker3-1" };
    expect(because({ ...expired, leaderChanged: true }, [other])).toBeNull();
  });

  it("is no fault of the leader or the database where the worker is well", () => {
    const crash: Fault = { ...KILL, kind: "database crash", nodeId: null, to: 100_500 };
    const leader: Fault = { ...KILL, nodeId: "leader0-1", led: true, to: 100_500 };
    for (const reason of ["lost", "expired"])
      expect(because({ reason }, [crash, leader])).toBeNull();
    expect(because({}, [leader])).toMatch(/on the way/);
  });
});
