import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Random } from "../../base/random.ts";
import { isKey, parseKey, SHARD_COUNT, shardOf } from "./key.ts";
import { RETRY_POLICY, retryWindowMs, SubmissionRetry } from "./retry.ts";
import { sampleKey } from "./testing/samples.ts";

const nonce = "0123456789abcdef";

describe("keys", () => {
  it("are read from the right: client ids may hold colons (IDEM-2)", () => {
    expect(parseKey(`host1.dc1:12345:7:${nonce}`)).toEqual({
      kind: "key",
      key: `host1.dc1:12345:7:${nonce}`,
      clientId: "host1.dc1:12345",
      sequence: 7,
      nonce,
    });
  });

  it("are optional", () => {
    expect(parseKey("")).toEqual({ kind: "none" });
  });

  it("are refused with a reason, on both sides of every border (IDEM-3)", () => {
    const client = "c".repeat(128);
    const most = Number.MAX_SAFE_INTEGER;
    for (const good of [
      `${client}:0:${nonce}`,
      `a:${most}:${nonce}`,
      `a b:0:${nonce}`,
      `:::0:${nonce}`,
    ]) {
      expect(parseKey(good).kind, good).toBe("key");
    }
    for (const [bad, why] of [
      [`${client}c:0:${nonce}`, "longer than 128"],
      [`a:${"9".repeat(300)}:${nonce}`, "longer than 256"],
      [`a:${most + 1}:${nonce}`, "2^53"],
      [`:0:${nonce}`, "empty"],
      [`a:00:${nonce}`, "whole number"],
      [`a:-1:${nonce}`, "whole number"],
      [`a:1.0:${nonce}`, "whole number"],
      [`a:1e3:${nonce}`, "whole number"],
      [`a::${nonce}`, "whole number"],
      [`a:0:${nonce.toUpperCase()}`, "hex"],
      [`a:0:${nonce}0`, "hex"],
      [`a:0:${nonce.slice(1)}g`, "hex"],
      [`ä:0:${nonce}`, "printable"],
      [`a\n:0:${nonce}`, "printable"],
      [`0:${nonce}`, "client:sequence:nonce"],
      ["x", "client:sequence:nonce"],
      [":", "client:sequence:nonce"],
    ] as const) {
      expect(parseKey(bad), bad).toMatchObject({
        kind: "invalid",
        why: expect.stringContaining(why),
      });
    }
  });

  it("have one spelling: any text is refused or comes back byte for byte", () => {
    const part = fc.string({ maxLength: 20 });
    const close = fc
      .tuple(part, fc.oneof(part, fc.nat().map(String)), fc.oneof(part, fc.constant(nonce)))
      .map((parts) => parts.join(":"));
    fc.assert(
      fc.property(fc.oneof(fc.string(), close), (text) => {
        const parsed = parseKey(text);
        if (parsed.kind !== "key") return;
        expect(`${parsed.clientId}:${parsed.sequence}:${parsed.nonce}`).toBe(text);
        expect(isKey(text)).toBe(true);
      }),
      { numRuns: 3_000, seed: 31 },
    );
  });

  it("spread evenly over the shards, the same way for ever (IDEM-20)", () => {
    const counts = new Array<number>(SHARD_COUNT).fill(0);
    for (let i = 0; i < 6_400; i++) {
      const shard = shardOf(sampleKey(i));
      counts[shard] = (counts[shard] ?? 0) + 1;
    }
    expect(Math.min(...counts)).toBeGreaterThan(60);
    expect(Math.max(...counts)).toBeLessThan(145);
    // Computed once by another implementation: sha256sum of the text, first four bytes, mod 64.
    expect(shardOf(sampleKey(0))).toBe(GOLDEN_SHARD);
  });
});

const GOLDEN_SHARD = 51;

describe("a client", () => {
  const error = { kind: "transportError", why: "reset" } as const;
  const start = () => new SubmissionRetry(sampleKey(1), RETRY_POLICY, new Random("client"));

  // IDEM-28
  it("tries four times with pauses of at most 1, 2 and 4 s and then keeps the key for later", () => {
    const request = start();
    const steps = [0, 1, 2, 3].map(() => request.onResult(error));
    const pauses = steps.flatMap((step) => (step.kind === "again" ? [step.afterMs] : []));
    expect(pauses).toHaveLength(3);
    pauses.forEach((pause, n) => {
      expect(pause).toBeGreaterThanOrEqual(500 * 2 ** n);
      expect(pause).toBeLessThanOrEqual(1_000 * 2 ** n);
    });
    expect(steps[3]).toEqual({ kind: "gaveUp", attempts: 4, why: "reset" });
    expect(request.key).toBe(sampleKey(1));
  });

  it("sends one key with every attempt, byte for byte (IDEM-1)", () => {
    const request = start();
    const keys = [request.key];
    for (const result of [error, { kind: "retry", why: "full" } as const, error]) {
      expect(request.onResult(result).kind).toBe("again");
      keys.push(request.key);
    }
    expect(request.onResult({ kind: "accepted" })).toEqual({ kind: "done" });
    expect(new Set(keys)).toEqual(new Set([sampleKey(1)]));
    const next = new SubmissionRetry(sampleKey(2), RETRY_POLICY, new Random("client"));
    expect(parseKey(next.key)).toMatchObject({ sequence: 2 });
    expect(next.key).not.toBe(request.key);
  });

  it("ends with an ack or a rejection, and retries RETRY", () => {
    const request = start();
    expect(request.onResult({ kind: "retry", why: "full" })).toMatchObject({ attempt: 2 });
    expect(request.onResult({ kind: "accepted" })).toEqual({ kind: "done" });
    expect(start().onResult({ kind: "rejected" })).toEqual({ kind: "done" });
  });

  it("retries for at most 127 s by default", () => {
    expect(retryWindowMs(RETRY_POLICY)).toBe(127_000);
  });
});
