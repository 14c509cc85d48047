/** `hyperscale new [file]`: a first workflow that runs against the bundled demo target. */

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, dirname, extname, relative, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { type Command, Option } from "commander";
import { errorText } from "../../core/base/error-text.ts";
import { TEMPLATE_NAMES, type TemplateName, templates } from "../new/templates.ts";

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
    .summary("write a first workflow that runs against the bundled demo target")
    .description(
      "Writes a workflow that runs as it stands against the bundled demo target, never\n" +
        "against a stranger's site. Asks for a template only when none is named, and only\n" +
        "in a terminal.",
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
      process.stderr.write(`hyperscale new: ${problem}\n`);
      process.exitCode = EXIT_USAGE;
    });
}

function list(indent: string): string {
  return TEMPLATE_NAMES.map((name) => `${indent}${name.padEnd(12)}${templates[name].shows}`).join(
    "\n",
  );
}

/** What stopped it, or null when the file is written. */
async function write(given: string, flags: NewFlags): Promise<string | null> {
  const file = extname(given) === "" ? `${given}.ts` : given;
  const extension = extname(file);
  if (!EXTENSIONS.includes(extension)) {
    return `${file}: a workflow is a .ts, .mts, .js or .mjs file, not ${extension}.`;
  }
  const exists = `${file} is there already; choose another name, or --force to overwrite it.`;
  if (flags.force !== true && existsSync(file)) return exists;
  const template = flags.template ?? (await askTemplate());
  const name = basename(file, extension).replace(/[^\w -]/g, "-");
  const text = templates[template].text(name, extension.endsWith("ts"));
  try {
    mkdirSync(dirname(resolve(file)), { recursive: true });
    writeFileSync(file, text, { flag: flags.force === true ? "w" : "wx" });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "EEXIST" && existsSync(file)) return exists;
    return `cannot write ${file}: ${errorText(error)}`;
  }
  const shown = relative(process.cwd(), file) || file;
  process.stdout.write(
    `Wrote ${shown}: ${templates[template].shows}.\n\n` +
      "Next, in two terminals:\n" +
      "  npx hyperscale demo-target\n" +
      `  npx hyperscale run ${/\s/.test(shown) ? JSON.stringify(shown) : shown}\n`,
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
