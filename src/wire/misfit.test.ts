import { describe, expect, it } from "vitest";
import { Random } from "../core/base/random.ts";
import { ID_BYTES_MAX } from "./limits.ts";
import { misfitOf } from "./misfit.ts";
import {
  decodeStreamMessage,
  encodeStreamMessage,
  MESSAGES,
  type MessageName,
} from "./registry.ts";
import { counter, float, list, oneOf, optional, required, struct, text, union } from "./schema.ts";
import { generate } from "./testing/generate.ts";

const names = Object.keys(MESSAGES) as MessageName[];

describe("what a schema would not take", () => {
  it.each(names)("is nothing of a %s that comes back as it was sent", (name) => {
    const random = new Random(name);
    const { type } = MESSAGES[name];
    for (let i = 0; i < 100; i++)
      expect(misfitOf(type.shape, generate(type as typeof MESSAGES.refusal.type, random))).toBe(
        null,
      );
  });

  it.each([
    ["", `is empty: it takes 1 to ${ID_BYTES_MAX} bytes of text`],
    ["ü".repeat(300), `has 600 bytes of text: it takes at most ${ID_BYTES_MAX}`],
    ["j".repeat(ID_BYTES_MAX + 1), "has 129 bytes of text: it takes at most 128"],
  ])("is what the other side does not read: %j", (job, problem) => {
    const value = { kind: "status", job } as const;
    expect(misfitOf(MESSAGES.clientRequest.type.shape, value)).toEqual({ path: ["job"], problem });
    const sent = encodeStreamMessage({ name: "clientRequest", correlation: 7, value });
    expect(decodeStreamMessage(sent).ok).toBe(false);
  });

  it("is reported with its position and its bound", () => {
    const { shape } = struct<{ some: { kind: "a"; count: number; words: readonly string[] } }>(
      "s",
      {
        some: required(
          1,
          union<{ kind: "a"; count: number; words: readonly string[] }>("u", {
            a: {
              number: 1,
              fields: { count: required(1, counter(5)), words: optional(2, list(text(3), 2), []) },
            },
          }),
        ),
      },
    );
    const problemOf = (count: number, words: readonly string[]): string => {
      const misfit = misfitOf(shape, { some: { kind: "a", count, words } });
      return misfit === null ? "" : `${misfit.path.join(".")} ${misfit.problem}`;
    };
    expect(problemOf(5, ["abc"])).toBe("");
    expect(problemOf(6, [])).toBe("some.count is 6: it takes a whole number from 0 to 5");
    expect(problemOf(1.5, [])).toBe("some.count is 1.5: it takes a whole number from 0 to 5");
    expect(problemOf(-1, [])).toBe("some.count is -1: it takes a whole number from 0 to 5");
    expect(problemOf(0, ["a", "b", "c"])).toBe("some.words has 3 entries: it takes at most 2");
    expect(problemOf(0, ["abcd"])).toBe(
      "some.words has an entry that has 4 bytes of text: it takes at most 3",
    );
    expect(misfitOf(shape, { some: { kind: "b" } })?.problem).toBe('is "b": it takes a');
    expect(misfitOf(float.shape, Number.NaN)?.problem).toBe("is NaN: it takes a finite number");
    expect(misfitOf(oneOf(["x", "y"]).shape, "z")?.problem).toBe('is "z": it takes x, y');
  });
});
