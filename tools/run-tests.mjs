// Runs vitest and closes with the verdict: problems, skipped tests, times, and one line of counts. A failure is
// final; the only exceptions stand in test/quarantine.json with reason and date, and their failures are printed.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "./bootstrap.mjs";
import { cpuSeconds, foreignShare } from "./cpu-time.mjs";
import { RESULTS_FILE } from "./test-recorder.mjs";
import {
  countsLine,
  filesToTimeAlone,
  judge,
  skippedLines,
  withTimesAlone,
} from "./test-verdict.mjs";

/** More than this of the machine taken by others, and times of files are not judged. */
const QUIET_SHARE_MAX = 0.1;

const started = { ms: performance.now(), cpu: cpuSeconds() };

/** `isWhole`: every file of the suite runs. Returns the exit code. */
export function runTests(args, { isWhole = false, env = {} } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "hyperscale-test-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  let { status, results } = runVitest(args, env, join(folder, "results.json"));
  // A run that was cut off has recorded nothing, and its end stands.
  if (results === null) return status;
  const quarantine = JSON.parse(readFileSync(join(root, "test", "quarantine.json"), "utf8"));
  const wallSeconds = (performance.now() - started.ms) / 1000;
  const cpu = cpuSeconds();
  const foreign = foreignShare(started.cpu, cpu, wallSeconds);
  const isQuiet = foreign !== null && foreign <= QUIET_SHARE_MAX;
  const again = isQuiet ? filesToTimeAlone(results.files) : [];
  if (again.length > 0) {
    process.stdout.write(`\nabove the limit beside others, measured alone: ${again.join(", ")}\n`);
    const alone = runVitest(["--no-file-parallelism", ...again], env, join(folder, "alone.json"));
    if (alone.results === null) return alone.status;
    results = withTimesAlone(results, alone.results);
    status ||= alone.status;
  }
  const verdict = judge(results, { quarantine, nowMs: Date.now(), isWhole, isQuiet });
  const lines = [
    "",
    ...slowest(results.files),
    ...verdict.quarantined.map(({ file, test }) => `quarantined, failed: ${file} > ${test}`),
    ...verdict.problems.map((problem) => `✗ ${problem}`),
    ...skippedLines(results.files),
    timesLine(wallSeconds, cpu, foreign, isQuiet),
    "",
    countsLine(verdict.counts),
    "",
  ];
  process.stdout.write(lines.join("\n"));
  if (!verdict.isGreen) return status || 1;
  // Vitest fails for what is quarantined, too; any other failure of its own without a failed test stands.
  return verdict.quarantined.length > 0 ? 0 : status;
}

function runVitest(args, env, resultsFile) {
  const { status } = spawnSync(
    join(root, "node_modules", ".bin", "vitest"),
    ["run", "--reporter=default", "--reporter=./tools/test-recorder.mjs", ...args],
    { cwd: root, stdio: "inherit", env: { ...process.env, ...env, [RESULTS_FILE]: resultsFile } },
  );
  const results = existsSync(resultsFile) ? JSON.parse(readFileSync(resultsFile, "utf8")) : null;
  return { status: status ?? 1, results };
}

const SLOWEST_SHOWN = 5;

function slowest(files) {
  const sorted = files.toSorted((a, b) => b.testMs - a.testMs).slice(0, SLOWEST_SHOWN);
  const one = ({ file, testMs }) => `${file} ${(testMs / 1000).toFixed(1)} s`;
  return [`slowest: ${sorted.map(one).join(", ")}`];
}

function timesLine(wallSeconds, cpu, foreign, isQuiet) {
  const minutes = (seconds) => `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  if (cpu === null) return `took ${minutes(wallSeconds)}`;
  const took = `took ${minutes(wallSeconds)}, ${minutes(cpu.own)} of CPU`;
  if (isQuiet) return took;
  return `${took}; test times are not judged: other programs took ${Math.round(100 * foreign)} % of the CPU`;
}
