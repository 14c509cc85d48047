import { describe, expect, it } from "vitest";
import { parseAddress } from "./address.ts";

describe("an address", () => {
  it.each([
    ["10.0.0.1:80", "10.0.0.1", 80, "10.0.0.1:80"],
    ["10.0.0.1", "10.0.0.1", 7946, "10.0.0.1:7946"],
    ["node-1.local:9000", "node-1.local", 9_000, "node-1.local:9000"],
    ["[::1]:80", "::1", 80, "[::1]:80"],
    ["[fe80::1]", "fe80::1", 7946, "[fe80::1]:7946"],
  ])("%s is read (BOOT-13)", (text, host, port, address) => {
    expect(parseAddress(text)).toEqual({ ok: true, host, port, address });
  });

  it.each([
    "",
    ":80",
    "a:b:c",
    "::1",
    "host:0",
    "host:65536",
    "ho st:1",
    "[::1",
    "http://x:1",
    "x".repeat(80),
  ])("%j is refused with a reason", (text) => {
    const result = parseAddress(text);
    expect(result.ok).toBe(false);
    expect(result.ok || result.problem.length).toBeGreaterThan(10);
  });
});
