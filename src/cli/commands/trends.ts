/** `hyperscale trends DIR`: the last results of one workflow, as a table and as a page. */

import { readdir, stat, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { EXIT_FAILURE, EXIT_PASSED, EXIT_USAGE } from "../../host/exit-codes.ts";
import { trendsHtml } from "../../reporters/file/html.ts";
import { type TrendPoint, type Trends, trendPoint } from "../../reporters/trends/trends.ts";
import { trendsText } from "../../reporters/trends/trends-text.ts";
import { openPage } from "../open-page.ts";
import { complain, jsonText } from "../print.ts";
import { readSummary } from "../read-summary.ts";

interface TrendsFlags {
  readonly last: number;
  readonly of?: string;
  readonly out?: string;
  readonly open?: true;
  readonly json?: true;
}

const LAST_MAX = 200;
/** Characters of a workflow's name in the name of its page: file systems allow 255 bytes. */
const PAGE_NAME_MAX = 60;
/** Folders searched for results of one workflow, the newest first. */
const FOLDERS_MAX = 2_000;

const HELP = `
The folder is one that holds results folders, such as hyperscale-results. Runs of one file or URL
are shown: those of the newest result, or of --of. The page is written into it as
trends-NAME.html, so that pages of several workflows stand side by side.

Examples:
  hyperscale trends hyperscale-results --open
  hyperscale trends ci-artifacts --of checkout.ts --last 50 --out trends.html`;

export function registerTrends(program: Command): void {
  program
    .command("trends")
    .summary("show the last runs of a workflow side by side")
    .description("Shows the last results of one workflow as a table, and writes them as a page.")
    .argument("<directory>", "folder that holds results folders")
    .addOption(
      new Option("--last <n>", `runs to show, at most ${LAST_MAX}`).argParser(last).default(20),
    )
    .option("--of <name>", "the file or URL that was run (default: that of the newest result)")
    .option("--out <file>", "where to write the page (default: trends-NAME.html in the folder)")
    .option("--open", "show the page in the browser")
    .option("--json", "print the figures as JSON, and write no page")
    .addHelpText("after", HELP)
    .action(async (directory: string, flags: TrendsFlags) => {
      process.exitCode = await trends(directory, flags);
    });
}

async function trends(directory: string, flags: TrendsFlags): Promise<number> {
  const found = await readTrends(directory, flags);
  if (typeof found === "string") {
    complain(`hyperscale trends: ${found}`);
    return EXIT_USAGE;
  }
  if (flags.json === true) {
    process.stdout.write(`${jsonText(found, 2)}\n`);
    return EXIT_PASSED;
  }
  const file = flags.out ?? join(directory, pageName(found.name));
  process.stdout.write(trendsText(found));
  try {
    await writeFile(file, await trendsHtml(found));
  } catch (error) {
    complain(`hyperscale trends: cannot write ${file}: ${(error as Error).message}`);
    return EXIT_FAILURE;
  }
  process.stdout.write(`${file}\n`);
  if (flags.open === true) await openPage(file);
  return EXIT_PASSED;
}

/** One page per workflow: "shop/checkout.ts" is trends-shop-checkout.html. */
function pageName(name: string): string {
  const base = name.replace(/\.[cm]?[jt]s$/, "").replace(/^[a-z][a-z0-9+.-]*:\/\//i, "");
  const slug = base.replace(/[^\p{L}\p{N}_.]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "");
  return `trends-${slug.slice(-PAGE_NAME_MAX) || "run"}.html`;
}

/** A problem is a text. Unreadable results are reported and left out. */
async function readTrends(directory: string, { last, of }: TrendsFlags): Promise<Trends | string> {
  const folders = await resultFolders(directory);
  if (typeof folders === "string") return folders;
  let name = of;
  const points: TrendPoint[] = [];
  const others = new Set<string>();
  for (const folder of folders) {
    if (points.length >= last) break;
    const read = await readSummary(folder);
    if (!read.ok) {
      complain(`hyperscale trends: left out: ${read.problem}`);
      continue;
    }
    name ??= read.summary.name;
    if (read.summary.name === name || (of !== undefined && read.summary.name.endsWith(`/${of}`)))
      points.push(trendPoint(relative(directory, folder) || ".", read.summary));
    else others.add(read.summary.name);
  }
  if (name === undefined) return `${directory} holds no results: a run with --out DIR writes some`;
  if (points.length === 0) {
    return `${directory} holds no result of "${name}"; there are results of ${[...others].join(", ")}`;
  }
  return { name, points: points.toSorted((a, b) => a.startedAt.localeCompare(b.startedAt)) };
}

/** Folders with a summary.json, by when it was written, the newest first. */
async function resultFolders(directory: string): Promise<string[] | string> {
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return `cannot read ${directory}: ${code === "ENOENT" ? "there is no such folder" : message}`;
  }
  const dated = await Promise.all(
    ["", ...names].slice(0, FOLDERS_MAX).map(async (name) => {
      const folder = join(directory, name);
      const written = await stat(join(folder, "summary.json")).then(
        ({ mtimeMs }) => mtimeMs,
        () => null,
      );
      return { folder, written };
    }),
  );
  return dated
    .flatMap(({ folder, written }) => (written === null ? [] : [{ folder, written }]))
    .sort((a, b) => b.written - a.written || b.folder.localeCompare(a.folder))
    .map(({ folder }) => folder);
}

function last(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > LAST_MAX)
    throw new InvalidArgumentError(`Write a whole number from 1 to ${LAST_MAX}.`);
  return value;
}
