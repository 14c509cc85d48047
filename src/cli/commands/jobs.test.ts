import { Command } from "commander";
import { afterEach, describe, expect, it, vi } from "vitest";
import { registerJobs, registerNodes } from "./jobs.ts";

describe("jobs", () => {
  it("can be read by tools, whatever is asked", () => {
    const program = new Command();
    registerJobs(program);
    const commands = program.commands[0]?.commands ?? [];
    expect(commands).toHaveLength(9);
    const silent = commands.filter(({ options }) => !options.some(({ long }) => long === "--json"));
    expect(silent.map((one) => one.name())).toEqual([]);
  });
});

describe("nodes remove", () => {
  afterEach(() => {
    vi.restoreAllMocks();
    process.exitCode = 0;
  });

  it("asks the cluster that its flags name, though `nodes` has flags of the same names", async () => {
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
