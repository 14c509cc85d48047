import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { encodeUtf8 } from "./bytes.ts";
import { sha256 } from "./sha256.ts";

describe("sha256", () => {
  it("gives the digests of the standard", () => {
    const hex = (text: string): string => Buffer.from(sha256(encodeUtf8(text))).toString("hex");
    expect(hex("")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect(hex("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  });

  it("agrees with the host's for every length around its blocks", () => {
    for (let length = 0; length <= 260; length++) {
      const message = Uint8Array.from({ length }, (_, i) => (i * 31 + length) & 0xff);
      const expected = createHash("sha256").update(message).digest("hex");
      expect(Buffer.from(sha256(message)).toString("hex"), `${length} bytes`).toBe(expected);
    }
  });
});
