import { Command } from "commander";
import { afterEach, describe, expect, it, vi } from "vitest";
import { registerSubmit } from "./submit.ts";

describe("submit", () => {
  afterEach(() => {
    vi.restoreAllMocks();
    process.exitCode = 0;
  });

  it.each(["--trace", "--inspect", "--samples=calls.json"])(
    "rejects %s, which a cluster does not have, before it makes any load",
    async (flag) => {
      const said: string[] = [];
      vi.spyOn(process.stderr, "write").mockImplementation((text) => said.push(String(text)) > 0);
      const program = new Command();
      registerSubmit(program);
      await program.parseAsync(["submit", "flow.ts", flag], { from: "user" });
      const [name] = flag.split("=");
      expect(said.join("")).toContain(`${name} is of "hyperscale run" alone`);
      expect(process.exitCode).toBe(2);
    },
  );

  it.each([
    ["--datacenters=", "--datacenters: names no datacenter"],
    ["--prefer=", "--prefer: names no datacenter"],
    ["--split=", "--split: names no datacenter"],
  ])("rejects %s, which is empty", async (flag, problem) => {
    const said: string[] = [];
    vi.spyOn(process.stderr, "write").mockImplementation((text) => said.push(String(text)) > 0);
    const program = new Command();
    registerSubmit(program);
    await program.parseAsync(["submit", "flow.ts", flag], { from: "user" });
    expect(said.join("")).toContain(`hyperscale submit: ${problem}`);
    expect(process.exitCode).toBe(2);
  });

  it("lists the flags it accepts, and none that it rejects", () => {
    const program = new Command();
    registerSubmit(program);
    const [command] = program.commands;
    const help = command?.helpInformation() ?? "";
    expect(help).toContain("--metrics");
    for (const flag of ["--trace ", "--inspect", "--samples"]) expect(help).not.toContain(flag);
  });

  it("does not claim that every loss ends with 1", () => {
    const shown: string[] = [];
    const program = new Command();
    registerSubmit(program);
    const [command] = program.commands;
    command?.configureOutput({ writeOut: (text) => shown.push(text) });
    command?.outputHelp();
    const help = shown.join("");
    expect(help).toContain("1 also for a job that ended in part only (PARTIAL) or timed out");
    expect(help).toContain("98 with --require-trusted, and 99 when more than 1 %");
  });

  it("prints JSON for tools", () => {
    const program = new Command();
    registerSubmit(program);
    const long = program.commands[0]?.options.map((one) => one.long);
    expect(long).toContain("--json");
  });
});
