import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Random } from "../core/base/random.ts";
import { IDEMPOTENCY_PROFILES } from "../core/ledger/keys/config.ts";
import { LEDGER_RULES } from "../core/ledger/node/config.ts";
import { LedgerNode } from "../core/ledger/node/node.ts";
import { type LedgerConfig, readLedgerConfig, sitesOf } from "./config.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ledger-config-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function read(changes: Record<string, unknown>): LedgerConfig {
  const file = join(folder, "node.json");
  const places = { bind: "127.0.0.1:7101", api: "127.0.0.1:7102", dataDir: "data" };
  const node = { name: "n1", region: "use1", ...places, insecurePlaintext: true };
  writeFileSync(file, JSON.stringify({ ...node, ...changes }));
  const result = readLedgerConfig(file);
  if (!result.ok) throw new Error(result.problems.join("; "));
  return result.config;
}

describe("a ledger's configuration file", () => {
  it.each([
    { idempotency: "development" },
    { idempotency: "production" },
    { idempotency: "multiDatacenter" },
    { leaseMs: 300, requestTimeoutMs: 100 },
  ])("with %j makes a node", (changes) => {
    const config = read(changes);
    const options = { sites: sitesOf(config), config: config.node, boot: "b", rules: LEDGER_RULES };
    expect(() => new LedgerNode({ self: config.name, ...options }, new Random("x"))).not.toThrow();
  });

  it.each([
    ["no secret", {}, "secretFile: is missing"],
    ["a secret file that is not there", { secretFile: "no.key" }, "no such file; make one with"],
    ["a guessable secret", { secretFile: "weak.key" }, "weak.key"],
    ["a token file that is not there", { apiTokenFile: "none" }, "apiTokenFile: cannot read"],
    [
      "itself among its peers",
      { peers: [{ name: "n1", region: "euw1", address: "127.0.0.2:7101" }] },
      '"n1" is this node itself',
    ],
  ])("is rejected for %s", (_what, changes, problem) => {
    writeFileSync(join(folder, "weak.key"), "password\n");
    expect(() => read({ insecurePlaintext: undefined, ...changes })).toThrow(problem);
  });

  it("takes the cache of keys from the same profile as the shards", () => {
    const { node } = read({ idempotency: "development" });
    expect(node.gateCache).toEqual(IDEMPOTENCY_PROFILES.development.gate);
    expect(node.idempotency).toEqual(IDEMPOTENCY_PROFILES.development.authority);
  });
});
