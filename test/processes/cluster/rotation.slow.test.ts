/** Keys change while the cluster runs; commands behave as their help documents. Real agents, real command line. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentCluster, AgentProcess, freshNet, until } from "../../../bench/swim/agents.ts";
import { PATIENCE_MS } from "../../patience.ts";

const bin = fileURLToPath(new URL("../../../bin/hyperscale.js", import.meta.url));

function hyperscale(...args: string[]): { status: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], {
    encoding: "utf8",
  });
  return { status, out: stdout, err: stderr };
}

describe("keys", () => {
  const cluster = new AgentCluster({ net: freshNet(), size: 3, profile: "dc" });
  const at = ["--api", `${cluster.host(1)}:7947`, "--dir", cluster.directory];
  beforeAll(() => cluster.startAll());
  afterAll(() => cluster.stop());

  const write = (...secrets: string[]): void =>
    writeFileSync(cluster.secretFile, `${secrets.join("\n")}\n`);
  const reloadAll = async (): Promise<void> => {
    for (const agent of cluster.agents) {
      const response = await agent.ask("/v1/keys/reload", { method: "POST" });
      expect(response.status).toBe(200);
      // Members with the old and with the new ring must understand each other meanwhile.
      await new Promise((resolve) => setTimeout(resolve, 700));
    }
  };

  it("rotate in three steps without a suspicion, and then only the new one opens", async () => {
    const since = performance.now();
    const fresh = hyperscale("keygen").out.trim();
    const [old = ""] = spawnSync("cat", [cluster.secretFile], { encoding: "utf8" }).stdout.split(
      "\n",
    );
    write(old, fresh);
    await reloadAll();
    write(fresh, old);
    await reloadAll();
    write(fresh);
    await reloadAll();
    await cluster.converged();
    for (const agent of cluster.agents) expect(agent.failuresSince(since)).toEqual([]);
    const keys = JSON.parse(hyperscale("keys", "list", ...at, "--json").out) as unknown[];
    expect(keys).toHaveLength(1);

    const late = new AgentProcess("late", cluster.host(9), [
      ...["--join", `${cluster.host(1)}:7946`, "--data-dir", join(cluster.directory, "late")],
      ...["--secret-file", writeIn(cluster.directory, "old", old), "--log-level", "warn"],
    ]);
    await until(() => late.events.length > 0, PATIENCE_MS, "it starts");
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    late.kill("SIGKILL");
    await late.ended;
    expect(late.events.map(({ event }) => event)).toEqual(["ready"]);
    const names = (await cluster.agents[0]?.members())?.map(({ name }) => name).sort();
    expect(names).toEqual(["n1", "n2", "n3"]);
  });

  it("stay as they were when the file becomes unusable", async () => {
    const before = hyperscale("keys", "list", ...at)
      .out.split("\n")[1]
      ?.slice(0, 8);
    write("short");
    const reload = hyperscale("keys", "reload", ...at);
    expect(reload.status).toBe(1);
    expect(reload.err).toContain("at least 16");
    expect(hyperscale("keys", "list", ...at).out).toContain(before);
    await cluster.converged();
  });
});

function writeIn(directory: string, name: string, text: string): string {
  const file = join(directory, name);
  writeFileSync(file, `${text}\n`);
  return file;
}

describe("the command line", () => {
  const net = freshNet();
  const nowhere = `127.${net}.77:7947`;
  const directory = mkdtempSync(join(tmpdir(), "hyperscale-cli-"));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it("reports what is wrong and how to fix it, and exits with 2", () => {
    const { status, err, out } = hyperscale("agent", "--name", "bad name", "--role", "king");
    expect(status).toBe(2);
    expect(out).toBe("");
    expect(err).toContain("hyperscale keygen");
    expect(err).toContain("--role");
    expect(err).not.toContain("    at ");
  });

  it("reports in one line that no agent answers", () => {
    const { status, err } = hyperscale("members", "--api", nowhere);
    expect(status).toBe(1);
    expect(err).toContain(`no agent answers at ${nowhere}`);
    expect(err.trim().split("\n")).toHaveLength(1);
  });

  it("lists members as a table and as JSON, and shows plaintext in the status", async () => {
    const agent = new AgentProcess("solo", `127.${net}.80`, [
      ...["--insecure-plaintext", "--data-dir", join(directory, "solo")],
    ]);
    try {
      await until(() => agent.events.length > 0, PATIENCE_MS, "it starts");
      expect(agent.events[0]).toMatchObject({ event: "ready", encryption: "none (plaintext)" });
      await until(() => agent.stderr.includes("agent.plaintext"), PATIENCE_MS, "it warns");
      const table = hyperscale("members", "--api", agent.api, "--dir", directory).out;
      expect(table).toMatch(/^NAME +ADDRESS +ROLE +DATACENTER +STATE/);
      const [member] = JSON.parse(
        hyperscale("members", "--api", agent.api, "--dir", directory, "--json").out,
      ) as object[];
      expect(Object.keys(member ?? {}).slice(0, 9)).toEqual([
        ...["name", "address", "role", "datacenter", "state"],
        ...["incarnation", "rttMs", "health", "leader"],
      ]);
      expect(await agent.metric("plaintext")).toBe(1);
      const page = await fetch(`http://${agent.api}/v1/members`, {
        headers: { origin: "http://x" },
      });
      expect(page.status).toBe(403);
      const stranger = hyperscale("leave", "--api", agent.api);
      expect(stranger).toMatchObject({ status: 1, err: expect.stringContaining("--token-file") });
      expect(hyperscale("leave", "--api", agent.api, "--dir", directory).status).toBe(0);
      await agent.ended;
      expect(agent.exitCode).toBe(0);
    } finally {
      agent.kill("SIGKILL");
    }
  });
});
