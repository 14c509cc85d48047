import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { readTokenFile } from "./token.ts";

const directory = mkdtempSync(join(tmpdir(), "hyperscale-token-"));
const file = join(directory, "token");
afterAll(() => rmSync(directory, { recursive: true, force: true }));

it("a token is what stands in its file, without the line break", () => {
  writeFileSync(file, "0123456789abcdef\n");
  expect(readTokenFile(file)).toBe("0123456789abcdef");
});

it("a token that is too short or not there is refused with what to do", () => {
  writeFileSync(file, "0123456789abcde\n");
  expect(() => readTokenFile(file)).toThrow(/shorter than 16 characters; make one with/);
  expect(() => readTokenFile(join(directory, "none"))).toThrow(/cannot read the token file .*none/);
});
