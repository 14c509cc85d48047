/** Reporters of a run: those of its options and those that the file requests. */

import type { Reporter, RunInfo } from "../reporters/reporter.ts";
import type { Reporting } from "../reporters/reporting.ts";
import { RunError } from "./errors.ts";
import type { RunOptions } from "./run-options.ts";

async function withModules(
  reports: readonly (string | Reporter)[],
): Promise<(string | Reporter)[]> {
  const { isReporterModule, loadReporterModule } = await import("./reporter-module.ts");
  return Promise.all(reports.map((one) => (isReporterModule(one) ? loadReporterModule(one) : one)));
}

/** Null when none is requested: then no reporter is loaded. */
export async function startReports(
  reports: NonNullable<RunOptions["report"]>,
  run: RunInfo,
  say: (line: string) => void,
): Promise<Reporting | null> {
  if (reports.length === 0) return null;
  const { openReporting } = await import("../reporters/registry.ts");
  const { ReporterError } = await import("../reporters/settings.ts");
  try {
    const reporting = await openReporting(await withModules(reports), {
      env: process.env,
      onProblem: (reporter, problem) => say(`report ${reporter}: ${problem}`),
    });
    await reporting.start(run);
    return reporting;
  } catch (error) {
    if (error instanceof ReporterError) throw new RunError(error.message, 2);
    throw error;
  }
}

/** For a run that is elsewhere, or finished: its single calls are not available. */
export async function startReportsOfOthers(
  ...asked: Parameters<typeof startReports>
): Promise<Reporting | null> {
  const reporting = await startReports(...asked);
  if (reporting === null || reporting.sampledShare === 0) return reporting;
  await reporting.abandon();
  throw new RunError("single calls are only had of `hyperscale run`: leave out samples", 2);
}
