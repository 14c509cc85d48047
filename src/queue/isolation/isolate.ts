/**
 * Executors of a file, each execution in a process of its own: a crash, an endless loop or a lack of memory costs its
 * own task, and the loop of the node never waits for them (docs/decisions/0074-a-process-per-execution.md).
 *
 *     execution ──► idle process? ──► it runs there ──► idle again, or ended and replaced
 *                   none: waits for one; a further process is started when that takes longer than `START_AFTER_MS`
 *
 * There are at most as many processes as concurrent executions, and fewer when they are short.
 */

import { errorText } from "../../core/base/error-text.ts";
import { QueueError } from "../../core/queue/errors.ts";
import type { ExecutorUser } from "../../host/executor-user.ts";
import { startTimer, type Timer } from "../../host/timer.ts";
import type { EncodedResult, ExecutionContext, Executor, Executors } from "../worker/executor.ts";
import { bundleExecutors, type ExecutorsBundle } from "./bundle.ts";
import { Child, type ChildOptions } from "./child.ts";
import type { LoadedExecutor } from "./messages.ts";

export interface IsolationOptions {
  /** Memory limit of one execution, in MiB; exceeding it ends its process. Default 512. */
  readonly memoryMb?: number;
  /** User that executions run as; this process has to be root. Default: the user of this process. */
  readonly user?: ExecutorUser | null;
}

export interface IsolatedExecutors {
  readonly executors: Executors;
  /** Terminates all processes. */
  close(): Promise<void>;
}

const MEMORY_MB = 512;
/** Wait for an idle process before another one is started. */
const START_AFTER_MS = 25;
const POLL_MS = 500;
/** Polls without work after which a process is terminated; one is kept. */
const IDLE_POLLS_MAX = 120;

/** The executors of a module, run in processes of their own. */
export async function isolateExecutors(
  file: string,
  { memoryMb = MEMORY_MB, user = null }: IsolationOptions = {},
): Promise<IsolatedExecutors> {
  const bundle = await bundleExecutors(file, user);
  const pool = new ChildPool(bundle, { module: bundle.module, source: file, memoryMb, user });
  try {
    const loaded = await pool.begin();
    const executors: Record<string, Executor> = {};
    for (const { name, backoff } of loaded) {
      const run: Executor = (input, context) => pool.run(name, input, context);
      executors[name] = Object.assign(run, { runs: "isolated", backoff } as const);
    }
    return { executors, close: () => pool.close() };
  } catch (error) {
    await pool.close();
    const whose = user === null ? "" : ` (as user ${user.name}, see --executor-user)`;
    const problem = `cannot load executors from ${file}${whose}: ${errorText(error)}`;
    throw new QueueError("INVALID_PARAMS", problem, { cause: error });
  }
}

class ChildPool {
  readonly #bundle: ExecutorsBundle;
  readonly #options: ChildOptions;
  readonly #all = new Set<Child>();
  /** Used as a stack: the others become idle, and terminate. */
  readonly #idle: Child[] = [];
  readonly #waiting: ((child: Child) => void)[] = [];
  #starting = 0;
  #start: Timer | undefined;
  #poll: Timer | undefined;
  #idlePolls = 0;
  #closed = false;

  constructor(bundle: ExecutorsBundle, options: ChildOptions) {
    this.#bundle = bundle;
    this.#options = options;
  }

  /** The first process reports which executors there are. */
  async begin(): Promise<readonly LoadedExecutor[]> {
    const child = this.#open();
    const executors = await child.loaded;
    this.#free(child);
    this.#watch();
    return executors;
  }

  async run(executor: string, input: unknown, context: ExecutionContext): Promise<EncodedResult> {
    const child = await this.#take();
    try {
      return await child.run(executor, input, context);
    } finally {
      this.#free(child);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#start?.cancel();
    this.#poll?.cancel();
    const ends = [...this.#all].map((child) => {
      child.kill();
      return child.ended;
    });
    await Promise.all(ends);
    this.#bundle.remove();
  }

  #open(): Child {
    const child = new Child(this.#options);
    this.#all.add(child);
    child.ended.then(
      () => this.#gone(child),
      () => undefined,
    );
    return child;
  }

  #gone(child: Child): void {
    this.#all.delete(child);
    const at = this.#idle.indexOf(child);
    if (at >= 0) this.#idle.splice(at, 1);
    if (this.#waiting.length > 0) this.#startSoon();
  }

  #take(): Promise<Child> {
    for (let child = this.#idle.pop(); child !== undefined; child = this.#idle.pop())
      if (child.alive) return Promise.resolve(child);
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#startSoon();
    });
  }

  #free(child: Child): void {
    if (!child.alive || this.#closed) return;
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(child);
    else next(child);
  }

  #startSoon(): void {
    if (this.#closed) return;
    this.#start ??= startTimer(START_AFTER_MS, () => {
      this.#start = undefined;
      if (this.#waiting.length <= this.#starting) return;
      this.#starting++;
      const child = this.#open();
      child.loaded.then(
        () => {
          this.#starting--;
          this.#free(child);
        },
        // Exited before it could be used: the next one is started while an execution waits.
        () => {
          this.#starting--;
        },
      );
      this.#startSoon();
    });
  }

  #watch(): void {
    this.#poll = startTimer(POLL_MS, () => {
      for (const child of this.#all) child.checkMemory();
      this.#idlePolls = this.#idle.length > 1 ? this.#idlePolls + 1 : 0;
      if (this.#idlePolls > IDLE_POLLS_MAX) {
        this.#idlePolls = 0;
        this.#idle.shift()?.kill();
      }
      this.#watch();
    });
  }
}
