import { describe, expect, it } from "vitest";
import {
  checkIdempotencyProfile,
  IDEMPOTENCY_PROFILES,
  type IdempotencyConfig,
  shardEntriesMax,
} from "./config.ts";
import { RETRY_POLICY } from "./retry.ts";

const { production } = IDEMPOTENCY_PROFILES;

function problems(gate: Partial<IdempotencyConfig>, authority: Partial<IdempotencyConfig> = {}) {
  return checkIdempotencyProfile({
    gate: { ...production.gate, ...gate },
    authority: { ...production.authority, ...authority },
  });
}

describe("profiles", () => {
  it("all pass their own checks", () => {
    for (const profile of Object.values(IDEMPOTENCY_PROFILES)) {
      expect(checkIdempotencyProfile(profile)).toEqual([]);
    }
  });

  it("a memory shorter than the clients' retries is refused with the sum spelled out (IDEM-27, C50-40)", () => {
    const { development } = IDEMPOTENCY_PROFILES;
    const authority = { ...development.authority, committedTtlMs: 120_000 };
    const [problem, ...more] = checkIdempotencyProfile({ ...development, authority });
    expect(more).toEqual([]);
    expect(problem).toContain(
      "authority.committedTtlMs (120000) must be longer than a client may retry",
    );
    expect(problem).toContain("4 attempts of 30000 ms and their pauses take up to 127000 ms");
    expect(problem).toContain("set it above 137000");
  });

  it("the border of the retry window is exact", () => {
    const gate = { committedTtlMs: 100_000 };
    expect(problems(gate, { committedTtlMs: 137_000 })).toHaveLength(1);
    expect(problems(gate, { committedTtlMs: 137_001 })).toHaveLength(0);
  });

  it("a more patient client needs a longer memory", () => {
    const patient = { ...RETRY_POLICY, retriesMax: 9 };
    expect(checkIdempotencyProfile(production, patient)).toHaveLength(2);
  });

  it("a gate that remembers as long as the authority is refused", () => {
    expect(problems({ committedTtlMs: 600_000 })[0]).toContain("gate.committedTtlMs");
    expect(problems({ rejectedTtlMs: 300_000 })[0]).toContain("gate.rejectedTtlMs");
    expect(problems({ pendingTtlMs: 120_000 })[0]).toContain("gate.pendingTtlMs");
  });

  it("numbers that make no sense are named", () => {
    expect(problems({ entriesMax: 0 })[0]).toContain("gate.entriesMax is 0");
    expect(problems({ committedTtlMs: Number.NaN })[0]).toContain("gate.committedTtlMs is NaN");
    expect(problems({ pendingWaitTimeoutMs: 60_000 })[0]).toContain("nobody may wait");
    expect(problems({ cleanupIntervalMs: 60_001 })[0]).toContain("would pile up");
    expect(problems({}, { entriesMax: 1e9 })[0]).toContain("authority.entriesMax");
  });

  it("shards share the entries", () => {
    expect(shardEntriesMax(production.authority)).toBe(7_813);
  });
});
