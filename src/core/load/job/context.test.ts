import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ContextStore, contextFor } from "./context.ts";
import { manifest } from "./testing/manifest.ts";

describe("last write wins", () => {
  const store = (timestamp: number, source: string | null): ContextStore => {
    const context = new ContextStore();
    context.apply("w", "k", { value: "held", timestamp, source });
    return context;
  };
  it.each([
    ["a later one", 5, "a", 6, null, true],
    ["an earlier one", 5, "a", 4, "z", false],
    ["the same time from a higher source", 5, "a", 5, "b", true],
    ["the same time from the same source", 5, "a", 5, "a", false],
    ["the same time from a lower source", 5, "b", 5, "a", false],
    ["the same time from an unknown source", 5, "a", 5, null, false],
    ["the same time over an unknown source", 5, null, 5, "a", false],
  ])("%s", (_, heldAt, heldBy, timestamp, source, accepted) => {
    const context = store(heldAt, heldBy);
    expect(context.apply("w", "k", { value: "new", timestamp, source })).toBe(accepted);
    expect(context.get("w", "k")?.value).toBe(accepted ? "new" : "held");
  });

  it("does not depend on order or repetition (CCP-12)", () => {
    const write = fc.record({
      value: fc.nat(),
      timestamp: fc.nat(5),
      source: fc.constantFrom("a", "b", "c"),
    });
    const distinct = fc.uniqueArray(write, { selector: (one) => `${one.timestamp}/${one.source}` });
    fc.assert(
      fc.property(distinct, fc.infiniteStream(fc.nat()), (writes, dice) => {
        const shuffled = writes
          .flatMap((one) => [one, one])
          .map((one) => ({ one, key: dice.next().value ?? 0 }))
          .sort((a, b) => a.key - b.key)
          .map(({ one }) => one);
        const [first, second] = [new ContextStore(), new ContextStore()];
        for (const one of writes) first.apply("w", "k", one);
        for (const one of shuffled) second.apply("w", "k", one);
        expect(second.get("w", "k")).toEqual(first.get("w", "k"));
      }),
    );
  });
});

describe("the view of a consumer", () => {
  const context = new ContextStore();
  context.apply("auth", "token", { value: "t-1", timestamp: 1, source: "core-0" });
  context.apply("auth", "secret", { value: "s-1", timestamp: 1, source: "core-0" });
  const provider = (...to: string[]) =>
    manifest("auth", {
      provides: [
        { key: "token", to },
        { key: "secret", to: ["other"] },
      ],
    });
  const consumer = (from: string[], dependsOn: string[], keys: string[] = ["token"]) =>
    manifest("load", { dependsOn, uses: [{ name: "session", from, keys }] });

  it.each([
    [
      "both named and depending",
      provider("load"),
      consumer(["auth"], ["auth"]),
      { auth: { token: "t-1" } },
    ],
    [
      "every key when none is named",
      provider("load"),
      consumer(["auth"], ["auth"], []),
      { auth: { token: "t-1" } },
    ],
    ["consumer names nobody", provider("load"), consumer([], ["auth"]), {}],
    ["provider names another", provider("other"), consumer(["auth"], ["auth"]), {}],
    ["no dependency", provider("load"), consumer(["auth"], []), {}],
    ["a key renamed on one side", provider("load"), consumer(["auth"], ["auth"], ["jwt"]), {}],
  ])("%s", (_, from, to, expected) => {
    expect(contextFor(to, [from, to], context)).toEqual(expected);
  });
});
