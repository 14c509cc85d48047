import fc from "fast-check";
import { expect, it } from "vitest";
import { BodyCollector } from "./body-collector.ts";

it("returns the added pieces as one buffer", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 20 }), (pieces) => {
      const collector = new BodyCollector(1_000_000);
      for (const piece of pieces) {
        const around = Buffer.concat([Buffer.from("<"), piece, Buffer.from(">")]);
        collector.add(around, 1, around.length - 1);
      }
      expect(collector.take()).toEqual(Buffer.concat(pieces));
    }),
    { seed: 7 },
  );
});

it("keeps bodies up to the limit and drops longer ones", () => {
  const collector = new BodyCollector(4);
  const bytes = Buffer.from("abcdef");
  collector.add(bytes, 0, 4);
  expect(collector.take()?.toString()).toBe("abcd");
  collector.add(bytes, 4, 5);
  expect(collector.take()).toBeNull();
  collector.add(bytes, 0, 1);
  expect(collector.take()).toBeNull();
});
