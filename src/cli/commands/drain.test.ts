import { Command } from "commander";
import { expect, it } from "vitest";
import { registerDrain } from "./drain.ts";

it("says once how long drain waits, as people write it", () => {
  const program = new Command();
  registerDrain(program);
  const help = program.commands[0]?.helpInformation() ?? "";
  expect(help.match(/default: [^)]*/g)).toEqual([
    'default: "hyperscale"',
    'default: "default"',
    "default: 10m",
  ]);
});
