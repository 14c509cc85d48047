/** `hyperscale report RESULTS`: writes the page of a run again, alone or compared with an earlier run. */

import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import { EXIT_FAILURE, EXIT_PASSED, EXIT_USAGE } from "../../host/exit-codes.ts";
import { compareRuns, DEFAULT_LIMITS } from "../../reporters/compare/compare.ts";
import { reportHtml } from "../../reporters/file/html.ts";
import { openPage } from "../open-page.ts";
import { complain } from "../print.ts";
import { readSummary } from "../read-summary.ts";

interface ReportFlags {
  readonly baseline?: string;
  readonly out?: string;
  readonly open?: true;
}

const HELP = `
The page holds everything it needs: it opens from disk, from a CI artifact or as an attachment.
With --baseline its charts show the earlier run as well, and it has the table of \`hyperscale compare\`.

Examples:
  hyperscale report hyperscale-results/2026-01-31T09-05-00Z-checkout --open
  hyperscale report after/ --baseline before/ --out compared.html`;

export function registerReport(program: Command): void {
  program
    .command("report")
    .summary("regenerate a report, or overlay an earlier run")
    .description("Writes report.html of a run from its summary.json, by default beside it.")
    .argument("<results>", "summary.json of a run, or its folder")
    .option("--baseline <results>", "an earlier run to compare with and to draw below this one")
    .option("--out <file>", "where to write the page (default: report.html beside summary.json)")
    .option("--open", "show it in the browser")
    .addHelpText("after", HELP)
    .action(async (results: string, flags: ReportFlags) => {
      process.exitCode = await report(results, flags);
    });
}

async function report(results: string, flags: ReportFlags): Promise<number> {
  const read = await readSummary(results);
  const before = flags.baseline === undefined ? null : await readSummary(flags.baseline);
  const problems = [read, before].flatMap((one) =>
    one === null || one.ok ? [] : [`hyperscale report: ${one.problem}`],
  );
  for (const problem of problems) complain(problem);
  if (!read.ok || (before !== null && !before.ok)) return EXIT_USAGE;
  const baseline =
    before === null
      ? undefined
      : {
          summary: before.summary,
          file: flags.baseline ?? "",
          comparison: compareRuns(before.summary, read.summary, DEFAULT_LIMITS),
        };
  const file = flags.out ?? join(read.folder ? results : dirname(results), "report.html");
  try {
    await writeFile(file, await reportHtml(read.summary, { baseline }));
  } catch (error) {
    complain(`hyperscale report: cannot write ${file}: ${(error as Error).message}`);
    return EXIT_FAILURE;
  }
  process.stdout.write(`${file}\n`);
  if (flags.open === true) await openPage(file);
  return EXIT_PASSED;
}
