/** The table of docs/internals/testing.md that says what the simulators run, held to the imports. */

import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { isTestCode } from "./graph-checks.ts";
import { reachable, readModules } from "./modules.ts";
import { roomOf } from "./room-of.ts";

const ROOT = new URL("../", import.meta.url);
/** The processes that the simulators stand for. */
const PROCESSES = ["src/cli/commands/ledger-node.ts", "src/nodes/agent/agent.ts"];

const read = (file: string): string => readFileSync(new URL(file, ROOT), "utf8");
const files = ["src", "sim"].flatMap((folder) =>
  readdirSync(new URL(folder, ROOT), { recursive: true, encoding: "utf8" })
    .map((file) => `${folder}/${file.replaceAll("\\", "/")}`)
    .filter((file) => file.endsWith(".ts")),
);
const modules = readModules(new Map(files.map((file) => [file, read(file)])));
const simulators = files.filter((file) => file.startsWith("sim/") && !isTestCode(file));
const section = read("docs/internals/testing.md")
  .split("\n## ")
  .find((text) => text.startsWith("What the simulators run\n"));

/** The first cells of the rows of the section's n-th table. */
function rows(table: number): string[] {
  const tables = (section ?? "").split("\n\n").filter((text) => text.startsWith("| "));
  const lines = tables[table]?.trim().split("\n").slice(2) ?? [];
  return lines.map((line) => line.split("|")[1]?.trim().replaceAll("`", "") ?? "");
}

describe("the page about the simulators", () => {
  it("names every file of core/cluster that they drive", () => {
    const driven = simulators.flatMap((file) => modules.get(file)?.imports ?? []);
    const targets = driven.map(({ target }) => target ?? "");
    const expected = targets.filter((target) => target.startsWith("src/core/cluster/"));
    expect(rows(0)).toEqual([...new Set(expected)].sort());
  });

  it("names every room of which a process runs something that they do not", () => {
    const simulated = reachable(modules, simulators);
    const only = [...reachable(modules, PROCESSES)].filter(
      (file) => file.startsWith("src/") && !simulated.has(file),
    );
    expect(rows(1)).toEqual([...new Set(only.map((file) => roomOf(file)?.path ?? file))].sort());
  });
});
