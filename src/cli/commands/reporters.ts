/** `hyperscale reporters [NAME]`: destinations for results, and the settings of each. */

import type { Command } from "commander";
import { didYouMean } from "../../core/base/nearest.ts";
import { tableLines } from "../../core/base/text-table.ts";
import { EXIT_USAGE } from "../../host/exit-codes.ts";
import type { ReporterAbout } from "../../reporters/definition.ts";
import { allReporters } from "../../reporters/registry.ts";
import type { SettingDescription } from "../../reporters/settings.ts";
import { complain, jsonText } from "../print.ts";

interface ReportersFlags {
  readonly json?: true;
}

const HELP = `
  hyperscale run flow.ts --report influxdb=http://127.0.0.1:8086,database=load,password=env:INFLUX_PASSWORD

Settings follow the target after commas. Secrets are named, never written: env:NAME or file:PATH.`;

export function registerReporters(program: Command): void {
  program
    .command("reporters")
    .summary("where results can be sent, with the settings of each")
    .description(
      "Lists where results can be sent and the option to use; with a name, its settings and tests.",
    )
    .argument("[name]", "one of them, with its settings")
    .option("--json", "as JSON")
    .addHelpText("after", HELP)
    .action(async (name: string | undefined, flags: ReportersFlags) => {
      process.exitCode = await reporters(name, flags.json === true);
    });
}

async function reporters(name: string | undefined, json: boolean): Promise<number> {
  const families = await allReporters();
  const all = families.flatMap(({ definitions }) => definitions);
  const one = all.find((definition) => definition.name === name);
  if (name !== undefined && one === undefined) {
    const hint = didYouMean(
      name,
      all.map((definition) => definition.name),
    );
    complain(`hyperscale reporters: there is no reporter "${name}"${hint}`);
    return EXIT_USAGE;
  }
  const shown = one === undefined ? all : [one];
  if (json) process.stdout.write(`${jsonText(shown.map(aboutOf))}\n`);
  else if (one !== undefined) process.stdout.write(oneText(one));
  else
    for (const { definitions, title } of families)
      process.stdout.write(`${title}\n${listText(definitions)}\n`);
  if (!json && one === undefined)
    process.stdout.write("Settings of one: hyperscale reporters NAME\n");
  return 0;
}

function aboutOf({ about, evidence, name, settings, target, testedWith }: ReporterAbout) {
  return { name, about, target, settings, evidence, testedWith };
}

function listText(definitions: readonly ReporterAbout[]): string {
  const rows = definitions.map(({ about, name, target }) => [
    `  ${name}`,
    about,
    `--report ${name}=${target}`,
  ]);
  return `${tableLines(rows).join("\n")}\n`;
}

function oneText({ about, evidence, name, settings, target, testedWith }: ReporterAbout): string {
  const rows = Object.entries(settings).map(([setting, description]) => [
    `  ${setting}`,
    kindText(description),
    description.about,
  ]);
  const head = [
    `${name}: ${about}`,
    `  --report ${name}=${target}`,
    `  tested against: ${evidence}, ${testedWith}`,
  ];
  return `${[...head, ...tableLines(rows)].join("\n")}\n`;
}

function kindText({ choices, default: fallback, kind, optional }: SettingDescription): string {
  const what = choices === undefined ? kind : choices.join(" | ");
  if (fallback !== undefined) return `${what}, ${fallback} by default`;
  return optional === true ? `${what}, optional` : `${what}, needed`;
}
