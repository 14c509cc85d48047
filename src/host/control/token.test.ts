import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { keepOwnToken, ownToken, readTokenFile, tokenFor } from "./token.ts";

const directory = mkdtempSync(join(tmpdir(), "hyperscale-token-"));
const file = join(directory, "token");
afterAll(() => rmSync(directory, { recursive: true, force: true }));

it("reads a token from its file, without the line break", () => {
  writeFileSync(file, "0123456789abcdef\n");
  expect(readTokenFile(file)).toBe("0123456789abcdef");
});

it("rejects a token that is too short or missing with what to do", () => {
  writeFileSync(file, "0123456789abcde\n");
  expect(() => readTokenFile(file)).toThrow(/shorter than 16 characters; make one with/);
  expect(() => readTokenFile(join(directory, "none"))).toThrow(/cannot read the token file .*none/);
});

it("keeps a node's own token private to its user, and finds it by the address of the node", () => {
  const dataDir = join(directory, "n1");
  mkdirSync(dataDir);
  const token = ownToken(dataDir);
  keepOwnToken(dataDir, token, "127.0.0.1:7800");
  expect(statSync(join(dataDir, "api.token")).mode & 0o777).toBe(0o600);
  expect(ownToken(dataDir)).toBe(token);
  for (const dir of [directory, dataDir]) {
    expect(tokenFor({ api: "127.0.0.1:7800", dir })).toBe(token);
    expect(tokenFor({ api: "127.0.0.1:7801", dir })).toBeUndefined();
  }
});
