/**
 * Program of a load test: a command of this package as a child process, so that the load never shares an event loop
 * with the queue. Its output is passed line by line to the followers of the task.
 */

import { fileURLToPath } from "node:url";
import { asUser, type ExecutorUser } from "../../host/executor-user.ts";
import {
  EXIT_INTERRUPTED,
  EXIT_PASSED,
  EXIT_UNTRUSTED,
  EXIT_USAGE,
  EXIT_VERDICT_FAILED,
} from "../../host/exit-codes.ts";
import { type ExecutionContext, NotRetryable } from "../worker/executor.ts";
import { runProgram } from "./command.ts";

export interface Loadtest {
  /** A file or a URL, and the folder of relative paths. */
  readonly target: string;
  readonly cwd: string | undefined;
  /** Display name, where it differs from the target. */
  readonly title: string | undefined;
  /** Options of load and thresholds. */
  readonly args: readonly string[];
  readonly out: string;
  /** User to run as; null: the user of this process. */
  readonly user: ExecutorUser | null;
}

/** A job of the cluster as reported by `--ui json`. */
export interface ReportedJob {
  readonly id: string;
  /** Null until it has finished. */
  readonly status: string | null;
  readonly reason: string | null;
}

export interface LoadtestOutcome {
  readonly code: number | null;
  readonly signal: string | null;
  /** End of its output. */
  readonly words: string;
  readonly job: ReportedJob | null;
}

interface Telling {
  readonly context: ExecutionContext;
  /** Live metrics. */
  readonly onFigures: (figures: object) => void;
  readonly onJob?: (job: ReportedJob) => void;
  /** Grace period after an abort, and after the end of this process. */
  readonly killAfterMs?: number;
}

/** Works from src/ and from dist/ alike: both are two levels below the package. */
export const loadtestProgram = fileURLToPath(
  new URL("../../../bin/hyperscale.js", import.meta.url),
);
/** Preloaded into the child: reads further arguments from stdin, and ends a test whose node was killed. */
const prelude = new URL("../../../bin/end-with-parent.mjs", import.meta.url).href;
const PARENT = "HYPERSCALE_LOADTEST_PARENT";
const KILL_MS = "HYPERSCALE_LOADTEST_KILL_MS";
/** As in tools/bootstrap.mjs. */
const BUILT = "HYPERSCALE_BUILT";
const WORDS_CHARACTERS_MAX = 2_000;

export function runHere(test: Loadtest, context: ExecutionContext): Promise<LoadtestOutcome> {
  const onFigures = (figures: object): void => context.progress(figures);
  return runLoadtest(["run"], test, { context, onFigures });
}

export async function runLoadtest(
  command: readonly string[],
  { target, cwd, title, args, out, user }: Loadtest,
  { context, onFigures, onJob, killAfterMs }: Telling,
): Promise<LoadtestOutcome> {
  let job: ReportedJob | null = null;
  const called = title === undefined ? [] : [`--title=${title}`];
  const ended = await runProgram(
    process.execPath,
    ["--import", prelude, loadtestProgram, ...command, "--ui", "json", "--out", out],
    {
      ...{ cwd, killAfterMs, user, signal: context.signal },
      // Variables, headers and bodies are secrets of the task: every user of the machine can list arguments.
      stdin: JSON.stringify([...args, ...called, "--", target]),
      environment: environmentOf(user, killAfterMs),
      onLine: (line) => {
        const { event, ...fields } = readLine(line);
        if (event === "figures") onFigures(fields);
        else if (event === "message") context.log(String(fields["text"]));
        else if (event === "job") {
          job = fields as unknown as ReportedJob;
          onJob?.(job);
        } else if (event !== "end") context.log(line);
      },
    },
  );
  const { code, signal, stdout, stderr } = ended;
  return { code, signal, words: (stderr || stdout).trim().slice(-WORDS_CHARACTERS_MAX), job };
}

/** A line of `--ui json`; empty for a warning of the process itself. */
function readLine(line: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(line)) as Readonly<Record<string, unknown>>;
  } catch {
    return {};
  }
}

/** Returns whether it passed; throws without a verdict. */
export function checkOutcome({ code, signal, words, job }: LoadtestOutcome): boolean {
  switch (code) {
    case EXIT_PASSED:
      return true;
    case EXIT_UNTRUSTED:
    case EXIT_VERDICT_FAILED:
      return false;
    case EXIT_USAGE:
      throw new NotRetryable(`the load test was refused: ${words}`);
    case EXIT_INTERRUPTED:
      // Cancelled by an operator of the cluster: running it again would undo that.
      if (job?.status === "CANCELLED")
        throw new NotRetryable(
          `${job.id} was cancelled on the cluster: ${job.reason ?? "by whom?"}`,
        );
      throw new Error("the load test was interrupted");
    default:
      throw new Error(`the load test ended with ${code ?? signal}: ${words}`);
  }
}

/** Workflows may need the operator's variables, but not those of the queue itself. */
function environmentOf(
  user: ExecutorUser | null,
  killAfterMs: number | undefined,
): NodeJS.ProcessEnv {
  const own = asUser(user).env ?? process.env;
  const kept = Object.entries(own).filter(([name]) => !/^(HYPERSCALE_|PG[A-Z])/.test(name));
  return {
    ...Object.fromEntries(kept),
    [PARENT]: String(process.pid),
    // Another user cannot build a checkout; its node has.
    ...(user === null ? {} : { [BUILT]: "1" }),
    ...(killAfterMs === undefined ? {} : { [KILL_MS]: String(killAfterMs) }),
  };
}
