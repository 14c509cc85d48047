import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "./main.ts";

describe("the list of commands", () => {
  it.each(Object.entries(COMMANDS))(
    "%s is listed as it says of itself",
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
