/**
 * Runs a load test with the `run` command of this very program, as a child process, so that its
 * load never shares an event loop with the queue. The result is the verdict, the headline figures of
 * its summary and where the rest is.
 */

import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { type Executor, NotRetryable } from "../worker/executor.ts";
import { runProgram } from "./command.ts";
import { parseInput } from "./input.ts";

const schema = z.strictObject({
  /** A workflow file on the node that runs the test, or a URL to load. */
  file: z.string().min(1),
  /** Further arguments of `hyperscale run`, e.g. ["--vus", "50"]. */
  args: z.array(z.string()).max(100).default([]),
});

const EXIT = { passed: 0, thresholdFailed: 99, wrongInput: 2, interrupted: 130 } as const;
const SUMMARY_BYTES_MAX = 512 * 1024;

/** Works from src/ and from dist/ alike: both are two levels below the package. */
const program = fileURLToPath(new URL("../../../bin/hyperscale.js", import.meta.url));

export function loadtestExecutor(resultsDirectory: string): Executor {
  return async (value, context) => {
    const input = parseInput(schema, value);
    const out = resolve(resultsDirectory, `task-${context.taskId}-attempt-${context.attempt}`);
    mkdirSync(out, { recursive: true });
    const args = [program, "run", input.file, "--ui", "none", "--out", out, ...input.args];
    const outcome = await runProgram(process.execPath, args, {
      signal: context.signal,
      environment: process.env,
      onLine: (line) => context.log(line),
    });
    const words = (outcome.stderr || outcome.stdout).trim().slice(-2_000);
    if (/unknown command/.test(words)) {
      throw new NotRetryable(
        "this installation of hyperscale has no `run` command: load tests cannot run on this node",
      );
    }
    switch (outcome.code) {
      case EXIT.passed:
      case EXIT.thresholdFailed:
        return {
          verdict: outcome.code === EXIT.passed ? "passed" : "failed",
          exit_code: outcome.code,
          results: out,
          summary: readSummary(out),
        };
      case EXIT.wrongInput:
        throw new NotRetryable(`the load test was refused: ${words}`);
      case EXIT.interrupted:
        throw new Error("the load test was interrupted");
      default:
        throw new Error(`the load test ended with ${outcome.code ?? outcome.signal}: ${words}`);
    }
  };
}

/** The headline of summary.json: every plain value and small object, without the long series. */
function readSummary(directory: string): unknown {
  const file = join(directory, "summary.json");
  if (!existsSync(file)) return null;
  const text = readFileSync(file, "utf8");
  if (text.length <= SUMMARY_BYTES_MAX / 8) return JSON.parse(text);
  const summary: unknown = JSON.parse(text);
  if (summary === null || typeof summary !== "object") return null;
  return Object.fromEntries(
    Object.entries(summary).filter(
      ([, part]) => JSON.stringify(part).length <= SUMMARY_BYTES_MAX / 32,
    ),
  );
}
