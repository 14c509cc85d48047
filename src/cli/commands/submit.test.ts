import { Command } from "commander";
import { afterEach, describe, expect, it, vi } from "vitest";
import { registerSubmit } from "./submit.ts";

describe("submit", () => {
  afterEach(() => {
    vi.restoreAllMocks();
    process.exitCode = 0;
  });

  it.each(["--trace", "--inspect", "--samples=calls.json"])(
    "refuses %s, which a cluster does not have, before it makes any load",
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

  it("can be read by tools", () => {
    const program = new Command();
    registerSubmit(program);
    const long = program.commands[0]?.options.map((one) => one.long);
    expect(long).toContain("--json");
  });
});
