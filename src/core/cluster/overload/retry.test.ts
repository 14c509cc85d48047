import { describe, expect, it } from "vitest";
import { Random } from "../../base/random.ts";
import { RETRY_DEFAULTS, type RetryConfig, RetryDelays } from "./retry.ts";

const ENDLESS = { ...RETRY_DEFAULTS, attemptsMax: Number.POSITIVE_INFINITY };

function delays(config: RetryConfig, count: number, seed = "delays"): number[] {
  const one = new RetryDelays(config, new Random(seed));
  return Array.from({ length: count }, () => one.next() ?? Number.NaN);
}

describe("delays between attempts (AD-21)", () => {
  it.each(["full", "equal"] as const)(
    "%s jitter stays in its interval (AD-21.1, AD-21.2)",
    (jitter) => {
      for (let seed = 0; seed < 50; seed++)
        for (const [attempt, ms] of delays({ ...ENDLESS, jitter }, 21, `${seed}`).entries()) {
          const t = Math.min(30_000, 500 * 2 ** attempt);
          expect(ms).toBeGreaterThanOrEqual(jitter === "equal" ? t / 2 : 0);
          expect(ms).toBeLessThanOrEqual(t);
        }
    },
  );

  it("decorrelated jitter stays between the base and three times the delay before (AD-21.3)", () => {
    for (let seed = 0; seed < 50; seed++) {
      let previous = 500;
      for (const ms of delays({ ...ENDLESS, jitter: "decorrelated" }, 21, `${seed}`)) {
        expect(ms).toBeGreaterThanOrEqual(500);
        expect(ms).toBeLessThanOrEqual(Math.min(30_000, 3 * previous));
        previous = ms;
      }
    }
  });

  it("occur between calls only: three calls have two (AD-21.4)", () => {
    const three = new RetryDelays(RETRY_DEFAULTS, new Random("three"));
    expect([three.next(), three.next(), three.next()].map((ms) => ms !== null)).toEqual([
      true,
      true,
      false,
    ]);
  });

  it("are never shorter than the requested delay (AD-21.9)", () => {
    const asked = new RetryDelays(ENDLESS, new Random("asked"));
    for (let i = 0; i < 100; i++) expect(asked.next(45_000)).toBeGreaterThanOrEqual(45_000);
  });

  it("stay finite after many attempts", () => {
    expect(delays(ENDLESS, 2_000).every((ms) => ms >= 0 && ms <= 30_000)).toBe(true);
  });

  it("spread a thousand clients that were rejected together", () => {
    const buckets = new Map<number, number>();
    const random = new Random("herd");
    for (let client = 0; client < 1_000; client++) {
      const one = new RetryDelays({ ...ENDLESS, baseMs: 2_000 }, random.fork(`${client}`));
      const bucket = Math.floor((one.next() ?? 0) / 50);
      buckets.set(bucket, (buckets.get(bucket) ?? 0) + 1);
    }
    const expected = 1_000 / (2_000 / 50);
    expect(Math.max(...buckets.values())).toBeLessThanOrEqual(2 * expected);
  });
});
