import { Command } from "commander";
import { describe, expect, it, vi } from "vitest";
import { packageVersion } from "../runner/version.ts";
import { COMMANDS, main } from "./main.ts";

async function printed(...argv: string[]): Promise<{ out: string; code: unknown }> {
  let out = "";
  const stdout = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    out += String(text);
    return true;
  });
  try {
    await main(argv);
    return { out, code: process.exitCode ?? 0 };
  } finally {
    process.exitCode = undefined;
    stdout.mockRestore();
  }
}

describe("the command line", () => {
  it("lists ten commands first and internals last, and exits with 0 without arguments", async () => {
    const { code, out } = await printed();
    expect(code).toBe(0);
    const first = out.slice(out.indexOf("\nCommands:"), out.indexOf("\nMore for load tests:"));
    expect(first.match(/^ {2}(?!help)[a-z]\S+ /gm)).toHaveLength(10);
    const last = out.slice(out.indexOf("\nInternals"));
    for (const name of ["agent", "members", "monitor", "leave", "keys", "ledger", "wal"])
      expect(last).toContain(`  ${name} `);
  });

  it("prints its version", async () => {
    expect(await printed("version")).toEqual({ out: `${packageVersion()}\n`, code: 0 });
  });
});

describe("the list of commands", () => {
  it.each(Object.entries(COMMANDS))(
    "lists %s as it describes itself",
    async (name, { usage, summary, load }) => {
      const program = new Command();
      (await load())(program);
      const command = program.commands.find((known) => known.name() === name);
      if (command === undefined) throw new Error("not registered under its name");
      expect(program.commands).toHaveLength(1);
      expect(command.usage()).toBe(usage);
      expect(command.summary() || command.description()).toBe(summary);
    },
  );
});
