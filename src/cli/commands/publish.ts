/** `hyperscale publish RESULTS --report NAME=TARGET`: sends an earlier result as if its run had just finished. */

import type { Command } from "commander";
import type { ReportOutcome } from "../../core/load/results/model.ts";
import { EXIT_FAILURE, EXIT_PASSED, EXIT_USAGE } from "../../host/exit-codes.ts";
import { startReportsOfOthers } from "../../runner/reports.ts";
import { repeated } from "../option-values.ts";
import { complain } from "../print.ts";
import { readSummary } from "../read-summary.ts";

const HELP = `
Points carry the time at which the run ended. Databases of time series may refuse what is older than they keep.

Examples:
  hyperscale publish hyperscale-results/2026-01-31T09-05-00Z-checkout --report influxdb=http://127.0.0.1:8086
  hyperscale publish summary.json --report junit=junit.xml --report csv=steps.csv`;

export function registerPublish(program: Command): void {
  program
    .command("publish")
    .summary("send the results of an earlier run to reporters")
    .description("Sends a summary.json to reporters, which `hyperscale reporters` lists.")
    .argument("<results>", "summary.json of a run, or its folder")
    .requiredOption("--report <name=target>", "where to; repeatable", repeated, [])
    .addHelpText("after", HELP)
    .action(async (results: string, flags: { readonly report: readonly string[] }) => {
      process.exitCode = await publish(results, flags.report);
    });
}

async function publish(results: string, reports: readonly string[]): Promise<number> {
  const read = await readSummary(results);
  if (!read.ok) {
    complain(`hyperscale publish: ${read.problem}`);
    return EXIT_USAGE;
  }
  if (reports.some((report) => /^metrics(=|$)/.test(report))) {
    complain("hyperscale publish: nobody can scrape a run that is over: leave out metrics");
    return EXIT_USAGE;
  }
  const { name, tags = {}, title } = read.summary;
  const reporting = await startReportsOfOthers(reports, { name, title, tags }, () => {});
  if (reporting === null) {
    complain(
      "hyperscale publish: say where to, for example --report influxdb=http://127.0.0.1:8086",
    );
    return EXIT_USAGE;
  }
  const { reports: outcomes = [] } = await reporting.finish(read.summary);
  for (const outcome of outcomes) process.stdout.write(`${textOf(outcome)}\n`);
  const complete = outcomes.every(({ dropped, problem }) => dropped === 0 && problem === null);
  return complete ? EXIT_PASSED : EXIT_FAILURE;
}

function textOf({ dropped, problem, reporter, sent, target, unconfirmed }: ReportOutcome): string {
  const how = unconfirmed === true ? "sent, unconfirmed" : "sent";
  const points = sent + dropped === 0 ? "" : `: ${sent} points ${how}, ${dropped} not`;
  return `${reporter} ${target}${points}${problem === null ? "" : `; ${problem}`}`;
}
