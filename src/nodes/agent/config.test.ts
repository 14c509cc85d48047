import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { parseSecrets } from "../../wire/secret.ts";
import { type AgentOptions, readAgentConfig } from "./config.ts";

const directory = mkdtempSync(join(tmpdir(), "hyperscale-config-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const secretFile = join(directory, "secret");
writeFileSync(secretFile, "# first seals\nq7Jm2vXw9ZtKc4Rb\n\nfR3-new-Bv8y1-pL6xx\n");
const weakFile = join(directory, "weak");
writeFileSync(weakFile, "passwordpassword\n");
const mixedFile = join(directory, "mixed");
writeFileSync(mixedFile, "plaintext\nq7Jm2vXw9ZtKc4Rb\n");

const good: AgentOptions = {
  name: "n1",
  bind: "127.0.0.1:7946",
  join: ["127.0.0.2", "seed.example:9000"],
  dns: ["peers.svc:7946", "_swim._udp.example"],
  role: "worker",
  datacenter: "dc1",
  cluster: "c",
  environment: "e",
  profile: "lan",
  api: "127.0.0.1:7947",
  secretFile,
  insecurePlaintext: false,
  voters: [],
  priority: 0,
  tlsVerifyHostname: true,
  logLevel: "info",
};
const problems = (over: Partial<AgentOptions>, env: Record<string, string> = {}): string => {
  const read = readAgentConfig({ ...good, ...over }, env);
  return read.ok ? "" : read.problems.join("\n");
};

describe("an agent's configuration", () => {
  it("is read with its defaults", () => {
    const read = readAgentConfig(good, {});
    expect(read.ok && read.config).toMatchObject({
      address: "127.0.0.1:7946",
      seeds: [
        { host: "127.0.0.2", port: 7946 },
        { host: "seed.example", port: 9000 },
      ],
      dataDir: ".hyperscale/agent-n1",
      api: { host: "127.0.0.1", port: 7947, isOwnToken: true, metricsToken: null },
    });
    expect(read.ok && read.config.readSecrets()).toEqual([
      "q7Jm2vXw9ZtKc4Rb",
      "fR3-new-Bv8y1-pL6xx",
    ]);
  });

  it("names every mistake at once (CFG-1)", () => {
    const all = problems({ name: "a b", bind: "nohost:", role: "king", profile: "fast" });
    expect(all.split("\n").length).toBeGreaterThanOrEqual(4);
    expect(all).toContain("gate, manager, worker");
    expect(all).toContain("lan, wan, local, dc");
  });

  it("needs a secret, a strong one, or --insecure-plaintext", () => {
    const { secretFile: _none, ...bare } = good;
    expect(readAgentConfig(bare, {})).toMatchObject({ ok: false });
    expect(readAgentConfig(bare, { HYPERSCALE_SECRET: "q7Jm2vXw9ZtKc4Rb" })).toMatchObject({
      ok: true,
    });
    expect(problems({ secretFile: weakFile })).toContain("repeats a short pattern");
    expect(problems({ secretFile: join(directory, "none") })).toContain("no such file");
    const open = readAgentConfig({ ...bare, insecurePlaintext: true }, {});
    expect(open.ok && open.config.readSecrets()).toEqual(["plaintext"]);
    expect(problems({ secretFile: mixedFile })).toContain("needs --insecure-plaintext");
    expect(problems({ secretFile: mixedFile, insecurePlaintext: true })).toBe("");
  });

  it("creates its own token, and rejects wildcard addresses without an advertised one", () => {
    const read = readAgentConfig({ ...good, api: "10.0.0.1:7947", dataDir: directory }, {});
    expect(read.ok && read.config.api?.token).toMatch(/^[0-9a-f]{64}$/);
    expect(problems({ apiTokenFile: join(directory, "none") })).toContain("--api-token-file");
    expect(problems({ bind: "0.0.0.0:7946" })).toContain("--advertise");
    expect(problems({ bind: "0.0.0.0:7946", advertise: "10.0.0.1" })).toBe("");
    expect(problems({ bind: "localhost:7946" })).toContain("numeric");
  });

  it("refuses an electorate that is doubled or lacks ourselves, and half of a TLS configuration", () => {
    expect(problems({ voters: ["a", "b"] })).toContain("does not name this member");
    expect(problems({ voters: ["n1", "a", "a"] })).toContain("twice");
    expect(problems({ tlsCert: secretFile })).toContain("--tls-ca");
  });
});

it("secrets are lines without comments", () => {
  expect(parseSecrets(" a \n#b\n\nc")).toEqual(["a", "c"]);
});
