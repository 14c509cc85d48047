/** `hyperscale new [file]`: a first workflow that runs against the bundled demo target, in a project that finds us. */

import { existsSync, writeFileSync } from "node:fs";
import { basename, dirname, extname, join, relative, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { type Command, Option } from "commander";
import { errorText } from "../../core/base/error-text.ts";
import { makeFolder } from "../../host/folders.ts";
import { packageVersion } from "../../runner/version.ts";
import { installLine, projectFiles, quoted } from "../new/project.ts";
import { TEMPLATE_NAMES, type TemplateName, templates } from "../new/templates.ts";
import { complain } from "../print.ts";

interface NewFlags {
  readonly template?: TemplateName;
  readonly force?: true;
}

const DEFAULT_FILE = "flow.ts";
const DEFAULT_TEMPLATE: TemplateName = "minimal";
const EXTENSIONS: readonly string[] = [".ts", ".mts", ".js", ".mjs"];
const EXIT_USAGE = 2;

export function registerNew(program: Command): void {
  program
    .command("new")
    .summary("write a first flow that runs against the bundled demo target")
    .description(
      "Writes a workflow that runs as it stands against the bundled demo target, never\n" +
        "against a public site; outside a project also a package.json and a tsconfig.json.\n" +
        "Asks for a template only when none is named, and only in a terminal.",
    )
    .argument("[file]", "file to write, .ts or .js", DEFAULT_FILE)
    .addOption(
      new Option(
        "-t, --template <name>",
        `what to start from (default: ${DEFAULT_TEMPLATE})`,
      ).choices(TEMPLATE_NAMES),
    )
    .option("-f, --force", "overwrite a file that is there")
    .addHelpText("after", `\nTemplates:\n${list("  ")}\n`)
    .action(async (file: string, flags: NewFlags) => {
      const problem = await write(file, flags);
      if (problem === null) return;
      complain(`hyperscale new: ${problem}`);
      process.exitCode = EXIT_USAGE;
    });
}

function list(indent: string): string {
  return TEMPLATE_NAMES.map((name) => `${indent}${name.padEnd(12)}${templates[name].shows}`).join(
    "\n",
  );
}

/** Returns the problem, or null when the file is written. */
async function write(given: string, flags: NewFlags): Promise<string | null> {
  const file = extname(given) === "" ? `${given}.ts` : given;
  const extension = extname(file);
  if (!EXTENSIONS.includes(extension)) {
    return `${file}: a workflow is a .ts, .mts, .js or .mjs file, not ${extension}.`;
  }
  const exists = `${file} already exists; choose another name, or --force to overwrite it.`;
  if (flags.force !== true && existsSync(file)) return exists;
  const template = flags.template ?? (await askTemplate());
  const name = basename(file, extension).replace(/[^\w -]/g, "-");
  const text = templates[template].text(name, extension.endsWith("ts"));
  const folder = dirname(resolve(file));
  const around = projectFiles(folder, basename(file), packageVersion());
  try {
    await makeFolder(folder);
    writeFileSync(file, text, { flag: flags.force === true ? "w" : "wx" });
    // Existing files belong to the user.
    for (const one of around)
      if (!existsSync(join(folder, one.name))) writeFileSync(join(folder, one.name), one.text);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "EEXIST" && existsSync(file)) return exists;
    return `cannot write ${file}: ${errorText(error)}`;
  }
  const shown = relative(process.cwd(), file) || file;
  const beside = around.map((one) => one.name).join(" and ");
  const project = relative(process.cwd(), folder) || ".";
  const install = project === "." ? "npm install" : `npm install --prefix ${quoted(project)}`;
  const missing = beside === "" ? installLine(folder, packageVersion()) : null;
  process.stdout.write(
    `Wrote ${shown}: ${templates[template].shows}.\n` +
      (beside === "" ? "" : `Beside it ${beside}. First: ${install}\n`) +
      (missing === null ? "" : `Hyperscale is not installed in this project. First: ${missing}\n`) +
      "\nNext, in two terminals:\n" +
      "  npx hyperscale demo-target\n" +
      `  npx hyperscale run ${quoted(shown)}\n`,
  );
  return null;
}

async function askTemplate(): Promise<TemplateName> {
  if (process.stdin.isTTY !== true || process.stdout.isTTY !== true) return DEFAULT_TEMPLATE;
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const answer = await terminal.question(
      `${list("  ")}\nTemplate (Enter for ${DEFAULT_TEMPLATE}): `,
    );
    const wanted = answer.trim().toLowerCase();
    const name = TEMPLATE_NAMES.find((known) => wanted !== "" && known.startsWith(wanted));
    return name ?? DEFAULT_TEMPLATE;
  } finally {
    terminal.close();
  }
}
