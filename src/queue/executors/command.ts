/**
 * Starts a program, without a shell. Disabled unless the node's configuration names the programs that may be started;
 * anything else is rejected. The environment is not passed on, except PATH and what the task names among the allowed
 * variables.
 */

import { spawn } from "node:child_process";
import { z } from "zod";
import { asUser, type ExecutorUser } from "../../host/executor-user.ts";
import { GROUP_LEADER, signalGroup } from "../../host/process-group.ts";
import { startTimer, type Timer } from "../../host/timer.ts";
import { type ExecutionContext, type Executor, NotRetryable } from "../worker/executor.ts";
import { parseInput } from "./input.ts";

export interface CommandPolicy {
  /** Exact program names or paths. */
  readonly allow: readonly string[];
  /** User to run as. Default: the user of this process. */
  readonly user?: ExecutorUser | null;
}

const schema = z.strictObject({
  command: z.string().min(1),
  args: z.array(z.string()).max(1_000).default([]),
  stdin: z.string().optional(),
  timeout_ms: z
    .number()
    .positive()
    .max(24 * 3_600_000)
    .default(600_000),
});

const OUTPUT_BYTES_MAX = 128 * 1024;
const KILL_AFTER_MS = 5_000;

export function commandExecutor(policy: CommandPolicy): Executor {
  return async (value, context) => {
    const input = parseInput(schema, value);
    if (!policy.allow.includes(input.command)) {
      throw new NotRetryable(
        `"${input.command}" is not on this node's list of commands (${policy.allow.join(", ") || "empty"})`,
      );
    }
    const outcome = await runProgram(input.command, input.args, {
      stdin: input.stdin,
      timeoutMs: input.timeout_ms,
      signal: context.signal,
      user: policy.user,
      environment: { PATH: process.env["PATH"] ?? "" },
      onLine: (line) => context.log(line),
    });
    if (outcome.code === 0) return { code: 0, stdout: outcome.stdout, stderr: outcome.stderr };
    const ending =
      outcome.code === null ? `was ended by ${outcome.signal}` : `ended with ${outcome.code}`;
    throw new Error(
      `${input.command} ${ending}: ${(outcome.stderr || outcome.stdout).slice(-500)}`,
    );
  };
}

interface ProgramOptions {
  readonly stdin?: string | undefined;
  readonly timeoutMs?: number | undefined;
  readonly signal: ExecutionContext["signal"];
  readonly environment: NodeJS.ProcessEnv;
  /** User to run as; null and undefined: the user of this process. */
  readonly user?: ExecutorUser | null | undefined;
  readonly cwd?: string | undefined;
  /** Grace period after SIGINT. */
  readonly killAfterMs?: number | undefined;
  readonly onLine?: ((line: string) => void) | undefined;
}

interface ProgramOutcome {
  readonly code: number | null;
  readonly signal: string | null;
  /** The end of its output, bounded. */
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program to its end, and kills the programs that it left behind. An abort or a timeout sends SIGINT to all of
 * them, and SIGKILL after `killAfterMs`. The end of this process kills them at once.
 */
export function runProgram(
  command: string,
  args: readonly string[],
  options: ProgramOptions,
): Promise<ProgramOutcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      ...GROUP_LEADER,
      ...asUser(options.user ?? null),
      env: options.environment,
      stdio: ["pipe", "pipe", "pipe"],
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    const output = { stdout: "", stderr: "" };
    const lines = { stdout: new Lines(options.onLine), stderr: new Lines(options.onLine) };
    let timedOut = false;
    let killer: Timer | undefined;
    const kill = (): void => signalGroup(child, "SIGKILL");
    const interrupt = (): void => {
      signalGroup(child, "SIGINT");
      killer ??= startTimer(options.killAfterMs ?? KILL_AFTER_MS, kill);
    };
    process.once("exit", kill);
    const timer =
      options.timeoutMs === undefined
        ? undefined
        : startTimer(options.timeoutMs, () => {
            timedOut = true;
            interrupt();
          });
    options.signal.addEventListener("abort", interrupt, { once: true });
    if (options.signal.aborted) interrupt();
    for (const stream of ["stdout", "stderr"] as const) {
      child[stream].setEncoding("utf8").on("data", (text: string) => {
        output[stream] = (output[stream] + text).slice(-OUTPUT_BYTES_MAX);
        lines[stream].take(text);
      });
    }
    const settle = (): void => {
      timer?.cancel();
      killer?.cancel();
      process.removeListener("exit", kill);
      options.signal.removeEventListener("abort", interrupt);
    };
    child.on("error", (error) => {
      settle();
      reject(new NotRetryable(`cannot start ${command}: ${error.message}`, { cause: error }));
    });
    // Programs left behind would outlive the task, and delay "close" while they have its output open.
    child.on("exit", kill);
    child.on("close", (code, signal) => {
      settle();
      for (const one of Object.values(lines)) one.end();
      if (timedOut) reject(new Error(`${command} took longer than ${options.timeoutMs} ms`));
      else resolve({ code, signal, ...output });
    });
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.stdin ?? "");
  });
}

/** Splits text into lines, however it was chunked. */
class Lines {
  readonly #onLine: ((line: string) => void) | undefined;
  #begun = "";

  constructor(onLine: ((line: string) => void) | undefined) {
    this.#onLine = onLine;
  }

  take(text: string): void {
    const lines = (this.#begun + text).split("\n");
    this.#begun = lines.pop() ?? "";
    for (const line of lines) this.#emit(line);
    if (this.#begun.length > OUTPUT_BYTES_MAX) this.end();
  }

  end(): void {
    this.#emit(this.#begun);
    this.#begun = "";
  }

  #emit(line: string): void {
    if (line.trim() !== "") this.#onLine?.(line);
  }
}
