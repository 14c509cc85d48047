import fc from "fast-check";
import { expect, it } from "vitest";
import { WireShare } from "./wire-share.ts";

it("charges a single call all bytes", () => {
  const share = new WireShare();
  share.payload(10);
  expect(share.take(66, 10, 1)).toBe(66);
  expect(share.take(66, 0, 1)).toBe(0);
});

it("splits the framing of concurrent calls evenly, and charges each its payload", () => {
  const share = new WireShare();
  share.payload(1000);
  share.payload(10);
  expect(share.take(1110, 10, 2)).toBe(60);
  expect(share.take(1110, 1000, 1)).toBe(1050);
});

it("charges every byte exactly once", () => {
  const calls = fc.array(fc.record({ payload: fc.nat(5000), framing: fc.nat(100) }), {
    minLength: 1,
  });
  fc.assert(
    fc.property(calls, (all) => {
      const share = new WireShare();
      let total = 0;
      for (const { payload, framing } of all) {
        share.payload(payload);
        total += payload + framing;
      }
      let given = 0;
      for (const [at, { payload }] of all.entries())
        given += share.take(total, payload, all.length - at);
      expect(given).toBe(total);
    }),
    { seed: 7 },
  );
});
