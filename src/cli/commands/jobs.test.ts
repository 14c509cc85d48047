import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import type { NodeView } from "../../core/cluster/messages.ts";
import { doubtsOf, printNodes, registerJobs, registerNodes } from "./jobs.ts";

describe("jobs", () => {
  it("prints JSON for tools, whatever the command", () => {
    const program = new Command();
    registerJobs(program);
    const commands = program.commands[0]?.commands ?? [];
    expect(commands).toHaveLength(9);
    const silent = commands.filter(({ options }) => !options.some(({ long }) => long === "--json"));
    expect(silent.map((one) => one.name())).toEqual([]);
  });

  it("says what is required", () => {
    const program = new Command();
    registerJobs(program);
    const results = program.commands[0]?.commands.find((one) => one.name() === "results");
    expect(results?.helpInformation()).toMatch(/--out <dir> +required: folder for/);
  });
});

describe("a job that no cluster could know", () => {
  afterEach(() => {
    vi.restoreAllMocks();
    process.exitCode = 0;
  });

  const folder = mkdtempSync(join(tmpdir(), "hyperscale-jobs-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const key = join(folder, "client.key");
  writeFileSync(key, "gh7Kq2-vT9xLw4Zm\n");
  const place = ["--gate", "127.0.0.1:1", "--credentials", key];

  async function said(...args: readonly string[]): Promise<string> {
    const lines: string[] = [];
    vi.spyOn(process.stderr, "write").mockImplementation((text) => lines.push(String(text)) > 0);
    const program = new Command();
    registerJobs(program);
    await program.parseAsync(["jobs", ...args, ...place], { from: "user" });
    return lines.join("");
  }

  it.each([
    ["show"],
    ["events"],
    ["attach", "--ui=none"],
    ["results", "--out=nowhere"],
    ["cancel"],
    ["pause"],
    ["resume"],
  ])("is rejected by jobs %s before any request", async (command, ...flags) => {
    expect(await said(command, "", ...flags)).toBe(
      `hyperscale jobs ${command}: JOB is empty: it takes 1 to 128 bytes of text\n`,
    );
    expect(process.exitCode).toBe(2);
    process.exitCode = 0;
    expect(await said(command, "j".repeat(3_000), ...flags)).toContain(
      `hyperscale jobs ${command}: JOB has 3000 bytes of text: it takes at most 128\n`,
    );
    expect(process.exitCode).toBe(2);
  });

  it("is rejected for a cluster without an address, too", async () => {
    expect(await said("list", "--manager=")).toContain("--manager names no address");
    expect(process.exitCode).toBe(2);
  });
});

describe("nodes", () => {
  const node = (name: string, status: NodeView["status"], role: NodeView["role"] = "manager") => ({
    ...{ name, role, datacenter: role === "gate" ? "" : "dc1", status, version: "0" },
    ...{ incarnation: 0, cores: 0, coresUsed: 0, leads: 0 },
  });

  it("reports a node as not ready when it reaches no majority", () => {
    const alone = [node("m1", "alive"), node("m2", "lost"), node("m3", "lost")];
    expect(doubtsOf([node("g1", "alive", "gate"), ...alone])).toEqual([
      "the node that answered reaches 1 of 3 managers of dc1: it is not ready, and others may do better than it " +
        "says; ask another one",
    ]);
    const most = [node("m1", "draining"), node("m2", "alive"), node("m3", "lost")];
    expect(doubtsOf([...most, node("w1", "lost", "worker")])).toEqual([]);
  });
});

describe("the list of nodes", () => {
  const worker: NodeView = {
    ...{ name: "", role: "worker", datacenter: "dc1", status: "alive", version: "0" },
    ...{ incarnation: 0, cores: 2, coresUsed: 1, leads: 0, health: "healthy", diskProblem: "" },
  };
  const manager: NodeView = { ...worker, role: "manager", cores: 0, coresUsed: 0, health: "" };
  const nodes: readonly NodeView[] = [
    { ...manager, name: "m1", diskProblem: "cannot be kept: ENOSPC" },
    { ...worker, name: "w1", jobCodeRights: "executorUser", executorUser: "nobody" },
    { ...worker, name: "w2", jobCodeRights: "worker", diskProblem: "cannot be kept: ENOSPC" },
    { ...worker, name: "w3" },
  ];

  function printed(json: boolean): string {
    const said: string[] = [];
    const spy = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
      return said.push(String(text)) > 0;
    });
    printNodes(nodes, json);
    spy.mockRestore();
    return said.join("");
  }

  it("shows the rights of job code, and a disk that stores nothing", () => {
    expect(printed(false)).toBe(
      [
        "m1           manager  alive     leads 0 jobs  disk: cannot be kept: ENOSPC",
        "w1           worker   alive     1/2 cores  healthy   job code runs as nobody",
        "w2           worker   alive     1/2 cores  healthy   job code has the worker's rights  " +
          "disk: cannot be kept: ENOSPC",
        "w3           worker   alive     1/2 cores  healthy",
        "",
      ].join("\n"),
    );
    expect(JSON.parse(printed(true)).nodes).toEqual(nodes);
  });
});

describe("nodes remove", () => {
  afterEach(() => {
    vi.restoreAllMocks();
    process.exitCode = 0;
  });

  it("uses the cluster of its flags, though `nodes` has flags of the same names", async () => {
    const said: string[] = [];
    vi.spyOn(process.stderr, "write").mockImplementation((text) => said.push(String(text)) > 0);
    const program = new Command();
    registerNodes(program);
    const flags = ["--gate", "127.0.0.1:1", "--credentials", "no-such.key"];
    await program.parseAsync(["nodes", "remove", "w1", ...flags], { from: "user" });
    expect(said.join("")).toBe(
      "hyperscale nodes remove: --credentials no-such.key: cannot be read\n",
    );
  });
});
