import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { name } from "../../ui/testing/arbitrary.ts";
import { charWidth, clean, padded, shorten, textWidth, wrap } from "./terminal-text.ts";

describe("widths", () => {
  it.each([
    ["a", 1],
    ["é", 1],
    ["注", 2],
    ["🚀", 2],
    ["한", 2],
    ["█", 1],
    ["⣿", 1],
    ["\u0301", 0],
    ["\u200b", 0],
    ["\x1b", 0],
  ])("%j takes %d cells", (char, cells) => {
    expect(charWidth(char.codePointAt(0) ?? 0)).toBe(cells);
  });
});

describe("shortening", () => {
  it("keeps what fits and marks what does not", () => {
    expect(shorten("checkout", 8)).toBe("checkout");
    expect(shorten("checkout", 7)).toBe("checko…");
    expect(shorten("注文確認", 5)).toBe("注文…");
    expect(shorten("注文確認", 4)).toBe("注…");
    expect(shorten("abc", 0)).toBe("");
  });

  it("never exceeds the width, and padding meets it exactly", () => {
    fc.assert(
      fc.property(name, fc.nat(60), (text, width) => {
        expect(textWidth(shorten(text, width))).toBeLessThanOrEqual(width);
        expect(textWidth(padded(text, width))).toBe(width);
      }),
    );
  });
});

describe("foreign text", () => {
  it("loses escape sequences of every kind", () => {
    expect(clean("\x1b[31mred\x1b[0m")).toBe("red");
    expect(clean("a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c")).toBe("abc");
    expect(clean("\x1bP1;2|data\x1b\\x\x1b(By\u009b2Jz")).toBe("xyz");
    expect(clean("a\r\nb\tc\x00\x7f")).toBe("a  b  c");
  });

  it("is harmless after cleaning, whatever it was", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          name,
          fc.string({ unit: fc.constantFrom("\x1b", "[", "]", "m", "0", ";", "\x07", "\\", "P") }),
        ),
        (text) => {
          expect(clean(text)).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/);
          expect(clean(clean(text))).toBe(clean(text));
        },
      ),
    );
  });
});

describe("wrapping", () => {
  it("breaks at spaces and cuts words that are too long", () => {
    expect(wrap("the target rate was missed", 10)).toEqual(["the target", "rate was", "missed"]);
    expect(wrap("abcdefghij klm", 4)).toEqual(["abcd", "efgh", "ij", "klm"]);
    expect(wrap("", 10)).toEqual([""]);
  });

  it("loses no word and exceeds no width of two cells or more", () => {
    fc.assert(
      fc.property(name, fc.integer({ min: 2, max: 50 }), (text, width) => {
        const lines = wrap(text, width);
        for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(width);
        expect(lines.join("").replaceAll(" ", "")).toBe(clean(text).replaceAll(" ", ""));
      }),
    );
  });
});
