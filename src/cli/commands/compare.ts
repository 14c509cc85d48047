/** `hyperscale compare before.json after.json`: what changed between two runs, and whether it can be chance. */

import { type Command, InvalidArgumentError, Option } from "commander";
import type { RunSummary } from "../../core/load/results/model.ts";
import {
  EXIT_PASSED,
  EXIT_UNTRUSTED,
  EXIT_USAGE,
  EXIT_VERDICT_FAILED,
} from "../../host/exit-codes.ts";
import {
  type CompareVerdict,
  compareRuns,
  DEFAULT_LIMITS,
  METRICS,
  type Metric,
} from "../../reporters/compare/compare.ts";
import { type ComparedRun, comparisonText } from "../../reporters/compare/comparison-text.ts";
import { complain, jsonText } from "../print.ts";
import { readSummary } from "../read-summary.ts";

interface CompareFlags {
  readonly limit: number;
  readonly errorLimit: number;
  readonly metric: readonly Metric[];
  readonly json?: boolean;
  readonly allowUntrusted?: boolean;
  readonly failOnUnclear?: boolean;
}

const HELP = `
Both files are summary.json of a run (or the folder that holds it). For every step that both have,
the table shows the change, its 95 % interval, and p: how probable a change this large is by
chance alone, corrected for the number of rows. A regression is worse, beyond the limit, and p < 0.05.

Exit codes: 0 no regression, 99 a regression, 98 a run cannot be trusted (or, with --fail-on-unclear,
nothing could be shown), 2 a file or an argument is wrong.

Examples:
  hyperscale compare main/summary.json branch/summary.json
  hyperscale compare before/ after/ --limit 10% --metric p95 --metric p99
  hyperscale compare a.json b.json --json | jq '.rows[] | select(.result == "regression")'

What the test assumes and when it has too little data: docs/guide/compare.md`;

export function registerCompare(program: Command): void {
  program
    .command("compare")
    .summary("compare two runs and fail on a regression")
    .description("Compares two runs step by step and fails on a significant regression.")
    .argument("<before>", "summary.json of the run to compare with")
    .argument("<after>", "summary.json of the run to judge")
    .addOption(
      new Option("--limit <percent>", "change of rate or latency that is tolerated")
        .argParser(percent)
        .default(DEFAULT_LIMITS.limit, "5%"),
    )
    .addOption(
      new Option("--error-limit <points>", "rise of the failed share, in percentage points")
        .argParser(percent)
        .default(DEFAULT_LIMITS.errorLimit, "0.1"),
    )
    .addOption(
      new Option("--metric <name>", `only this: ${METRICS.join(", ")}; may be repeated`)
        .argParser(addMetric)
        .default([], "all"),
    )
    .option("--fail-on-unclear", "exit with 98 when nothing could be shown either way")
    .option("--allow-untrusted", "judge runs whose results cannot be trusted, too")
    .option("--json", "print the comparison as JSON")
    .addHelpText("after", HELP)
    .action(async (before: string, after: string, flags: CompareFlags) => {
      process.exitCode = await compare(before, after, flags);
    });
}

async function compare(
  beforeFile: string,
  afterFile: string,
  flags: CompareFlags,
): Promise<number> {
  const read = await Promise.all([beforeFile, afterFile].map(readSummary));
  const problems = read.flatMap((each) => (each.ok ? [] : [each.problem]));
  const [before, after] = read;
  if (!before?.ok || !after?.ok) {
    for (const problem of problems) complain(`hyperscale compare: ${problem}`);
    return EXIT_USAGE;
  }
  const metrics = flags.metric.length > 0 ? flags.metric : METRICS;
  const { allowUntrusted, errorLimit, limit } = flags;
  const comparison = compareRuns(before.summary, after.summary, {
    limit,
    errorLimit,
    metrics,
    allowUntrusted,
  });
  if (comparison.rows.length === 0) {
    complain(
      "hyperscale compare: the two runs have no step in common.\n" +
        `  before: ${comparison.onlyBefore.join(", ") || "no steps"}\n` +
        `  after:  ${comparison.onlyAfter.join(", ") || "no steps"}`,
    );
    return EXIT_USAGE;
  }
  const runs = {
    before: describe(beforeFile, before.summary),
    after: describe(afterFile, after.summary),
  };
  const color = process.stdout.isTTY === true && process.env["NO_COLOR"] === undefined;
  process.stdout.write(
    flags.json === true
      ? `${jsonText({ ...runs, ...comparison }, 2)}\n`
      : comparisonText(comparison, { ...runs, color }),
  );
  return exitCodeOf(comparison.verdict, flags);
}

function exitCodeOf(verdict: CompareVerdict, { failOnUnclear = false }: CompareFlags): number {
  if (verdict === "regression") return EXIT_VERDICT_FAILED;
  if (verdict === "untrusted") return EXIT_UNTRUSTED;
  return verdict === "undecided" && failOnUnclear ? EXIT_UNTRUSTED : EXIT_PASSED;
}

function describe(file: string, { name, startedAt, verdict }: RunSummary): ComparedRun {
  return { file, name, startedAt, verdict };
}

/** "5%" or "5". */
function percent(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(?:%|pp)?$/.exec(text.trim());
  if (match === null) throw new InvalidArgumentError('Write a percentage such as "5%".');
  return Number(match[1]) / 100;
}

function addMetric(text: string, soFar: readonly Metric[]): Metric[] {
  const added = text.split(",").map((name) => {
    const metric = METRICS.find((known) => known === name.trim());
    if (metric !== undefined) return metric;
    throw new InvalidArgumentError(`Known metrics are ${METRICS.join(", ")}.`);
  });
  return [...new Set([...soFar, ...added])];
}
