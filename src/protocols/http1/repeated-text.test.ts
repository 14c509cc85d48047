import { describe, expect, it } from "vitest";
import { Random } from "../../core/base/random.ts";
import { RepeatedText } from "./repeated-text.ts";

function reader(): { readonly buffer: Buffer; readonly texts: RepeatedText } {
  const buffer = Buffer.allocUnsafeSlow(4_096);
  const words = new Uint32Array(buffer.buffer, buffer.byteOffset, buffer.length / 4);
  return { buffer, texts: new RepeatedText(buffer, words) };
}

describe("RepeatedText", () => {
  it("returns the text of the bytes, whatever came before", () => {
    const { buffer, texts } = reader();
    const random = new Random("answers");
    let text = "";
    for (let i = 0; i < 20_000; i++) {
      if (text === "" || random.chance(0.3)) {
        // Lengths around the limits, with one letter that differs anywhere.
        const length = random.pick([0, 1, 3, 77, 78, 80, 1_023, 1_024, 1_025, 2_000]);
        const at = random.below(Math.max(1, length));
        text = "x".repeat(at) + random.pick(["a", "b", "\xff"]) + "x".repeat(length);
        text = text.slice(0, length);
      }
      buffer.write(text, 0, "latin1");
      expect(texts.of(buffer, 0, text.length) === text).toBe(true);
    }
  });

  it("reads other positions unchanged", () => {
    const { buffer, texts } = reader();
    buffer.write("onetwo", 0, "latin1");
    expect(texts.of(buffer, 0, 3)).toBe("one");
    expect(texts.of(buffer, 3, 6)).toBe("two");
    expect(texts.of(Buffer.from("six"), 0, 3)).toBe("six");
    expect(texts.of(buffer, 0, 3)).toBe("one");
  });
});
