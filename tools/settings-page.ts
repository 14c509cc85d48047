/**
 * The page of settings in the reference, made of the table that nodes read. A test holds the two together;
 * `npx tsx tools/settings-page.ts` writes it.
 */

import { writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import {
  SETTINGS,
  type SettingRole,
  settingsOfRole,
  textOf,
  variableOf,
} from "../src/ledger/settings.ts";

const INTRODUCTION = `# Settings of gates, managers and workers

A value comes from the variable, else from \`settings\` in the node's configuration, as in
\`"settings": { "workerTimeout": "5s" }\`, else it is the default. Durations are written as \`250ms\`, \`30s\`,
\`1m30s\`; a plain number is seconds. Sizes are bytes, or \`512MiB\`, or \`2GiB\`. A node names all mistakes at once
and does not start with one; what holds for it is the line \`gate.settings\`, \`manager.settings\` or
\`worker.settings\` of its log.

What every node needs beside them (name, addresses, secrets, folder) is its configuration: \`hyperscale gate init\`,
\`manager init\` and \`worker init\` write one with comments.
`;

export function settingsPage(): string {
  const roles: readonly SettingRole[] = ["gate", "manager", "worker"];
  const parts = roles.map((role) => {
    const rows = settingsOfRole(role).map(([name, { about, least, most, unit, value }]) => [
      `\`${name}\``,
      `\`${variableOf(name)}\``,
      textOf(unit, value),
      `${textOf(unit, least)} … ${textOf(unit, most)}`,
      about,
    ]);
    const head = ["name", "variable", "default", "bounds", "what it does"];
    return `## Of a ${role}\n\n${table([head, ...rows])}`;
  });
  return [INTRODUCTION, ...parts].join("\n");
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, at) =>
    Math.max(...rows.map((row) => (row[at] ?? "").length)),
  );
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |\n`;
  const [head = [], ...rest] = rows;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rest.map(line)].join("");
}

/** Writes the page and prints the number of settings. */
if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  writeFileSync(new URL("../docs/reference/settings.md", import.meta.url), settingsPage());
  process.stdout.write(`${Object.keys(SETTINGS).length} settings\n`);
}
