import { describe, expect, it } from "vitest";
import { Random } from "../../src/core/base/random.ts";
import { allTargets, damaged } from "./decoders.ts";

/** A sample of what `npm run fuzz` does with ten million. */
const INPUTS = 1_500;

describe("no decoder throws", () => {
  it.each(allTargets().map((target) => [target.name, target] as const))("%s", (name, target) => {
    const random = new Random(`sample/${name}`);
    for (let i = 0; i < INPUTS; i++) {
      const input = damaged(target, random);
      expect(() => target.decode(input), Buffer.from(input).toString("hex")).not.toThrow();
    }
  });
});
