/** One process for executions, one at a time. A crash fails only the execution that it runs. */

import { type ChildProcess, fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { errorText } from "../../core/base/error-text.ts";
import { asUser, type ExecutorUser } from "../../host/executor-user.ts";
import { GROUP_LEADER, signalGroup } from "../../host/process-group.ts";
import { startTimer } from "../../host/timer.ts";
import type { TaskFailure } from "../api/types.ts";
import { EncodedResult, type ExecutionContext } from "../worker/executor.ts";
import { builtFile } from "./bundle.ts";
import type { ChildCall, ChildCommand, ChildEvent, LoadedExecutor } from "./messages.ts";

export interface ChildOptions {
  readonly module: string;
  /** Source file of the module, for people. */
  readonly source: string;
  readonly memoryMb: number;
  /** User that its code runs as; null keeps the rights of this process. */
  readonly user: ExecutorUser | null;
}

interface Running {
  readonly context: ExecutionContext;
  readonly resolve: (result: EncodedResult) => void;
  readonly reject: (error: Error) => void;
}

/** Grace period of an aborted execution before its process is killed. */
const ABORT_GRACE_MS = 5_000;
const failureSchema = z.object({
  message: z.string(),
  name: z.string().optional(),
  stack: z.string().optional(),
  cause: z.string().optional(),
  retryable: z.boolean().optional(),
  again: z.union([z.string(), z.number()]).optional(),
});

const executorSchema = z.object({ name: z.string(), backoff: z.unknown() });

const eventSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("loaded"), executors: z.array(executorSchema) }),
  z.object({ kind: z.literal("unloadable"), message: z.string() }),
  z.object({ kind: z.literal("log"), text: z.string() }),
  z.object({ kind: z.literal("progress"), value: z.unknown() }),
  z.object({ kind: z.literal("completed"), result: z.string(), spoiled: z.boolean() }),
  z.object({ kind: z.literal("failed"), failure: failureSchema, spoiled: z.boolean() }),
  z.object({
    kind: z.literal("call"),
    call: z.number(),
    method: z.enum(["file", "attach", "history"]),
    parameters: z.array(z.unknown()),
  }),
]);

/** Memory of the program itself, in addition to the limit. */
const OWN_MEMORY_MB = 128;
const PAGE_BYTES = 4_096;

export class Child {
  readonly #process: ChildProcess;
  readonly #options: ChildOptions;
  /** Executors of the module; rejects when it cannot be loaded. */
  readonly loaded: Promise<readonly LoadedExecutor[]>;
  readonly ended: Promise<void>;
  #running: Running | undefined;
  #stderr = "";
  #overMemory = false;
  #alive = true;
  #load:
    | { resolve(executors: readonly LoadedExecutor[]): void; reject(error: Error): void }
    | undefined;

  constructor(options: ChildOptions) {
    this.#options = options;
    this.#process = fork(fileURLToPath(builtFile("./child-main.js")), [], {
      ...GROUP_LEADER,
      ...asUser(options.user),
      serialization: "advanced",
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      execArgv: ["--enable-source-maps", `--max-old-space-size=${options.memoryMb}`],
    });
    this.loaded = new Promise((resolve, reject) => {
      this.#load = { resolve, reject };
    });
    this.loaded.catch(() => undefined);
    this.ended = new Promise((resolve) => this.#process.once("exit", () => resolve()));
    this.#process.on("message", (message) => this.#onMessage(message));
    this.#process.on("error", () => undefined);
    for (const stream of [this.#process.stdout, this.#process.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => this.#print(text));
    this.#process.once("exit", (code, signal) => this.#end(code, signal));
    this.#send({ kind: "load", module: options.module, source: options.source });
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Runs one execution; rejects with its failure, or with the reason of a crash. */
  run(executor: string, input: unknown, context: ExecutionContext): Promise<EncodedResult> {
    const { taskId, attempt, idempotencyKey, dependenciesMissing, signal } = context;
    const dependencies = { ...context.dependencies };
    const about = { taskId, attempt, idempotencyKey, dependencies, dependenciesMissing };
    return new Promise<EncodedResult>((resolve, reject) => {
      this.#running = { context, resolve, reject };
      const abort = (): void => this.#abort(errorText(signal.reason));
      signal.addEventListener("abort", abort, { once: true });
      this.#send({ kind: "run", executor, input, ...about });
      if (signal.aborted) abort();
    });
  }

  /** Kills the process and every program that its executions started. */
  kill(): void {
    this.#alive = false;
    signalGroup(this.#process, "SIGKILL");
  }

  /** Kills the process when it exceeds its limit, also outside the heap, which V8 does not limit. */
  checkMemory(): void {
    const residentMb = residentBytes(this.#process.pid ?? 0) / 1024 / 1024;
    if (residentMb <= this.#options.memoryMb + OWN_MEMORY_MB) return;
    this.#overMemory = true;
    this.kill();
  }

  #abort(reason: string): void {
    const aborted = this.#running;
    this.#send({ kind: "abort", reason });
    startTimer(ABORT_GRACE_MS, () => {
      if (this.#running === aborted && aborted !== undefined) this.kill();
    });
  }

  /** Code of an execution can send anything: what is not an event costs the process, and with it the execution. */
  #onMessage(message: unknown): void {
    const parsed = eventSchema.safeParse(message);
    try {
      if (!parsed.success) this.kill();
      else this.#onEvent(parsed.data as ChildEvent);
    } catch {
      this.kill();
    }
  }

  #onEvent(event: ChildEvent): void {
    const running = this.#running;
    switch (event.kind) {
      case "loaded":
        this.#load?.resolve(event.executors);
        return;
      case "unloadable":
        this.#load?.reject(new Error(event.message));
        return;
      case "log":
        running?.context.log(event.text);
        return;
      case "progress":
        running?.context.progress(event.value);
        return;
      case "call":
        if (running !== undefined) this.#answer(event, running.context);
        return;
      case "completed":
        this.#running = undefined;
        if (event.spoiled || running?.context.signal.aborted === true) this.kill();
        running?.resolve(new EncodedResult(event.result));
        return;
      case "failed":
        this.#running = undefined;
        if (event.spoiled) this.kill();
        running?.reject(asError(event.failure));
    }
  }

  #answer({ call, method, parameters }: ChildCall, context: ExecutionContext): void {
    const work = (): Promise<unknown> => {
      const [first, content, mediaType] = parameters as [string, Uint8Array | string, string?];
      switch (method) {
        case "file":
          return context.file(first);
        case "attach":
          return context.attach(first, content, mediaType);
        case "history":
          return context.history();
      }
    };
    work().then(
      (value) => this.#send({ kind: "answer", call, value }),
      (error: unknown) => this.#send({ kind: "refusal", call, message: errorText(error) }),
    );
  }

  #print(text: string): void {
    this.#stderr = (this.#stderr + text).slice(-2_000);
  }

  #end(code: number | null, signal: NodeJS.Signals | null): void {
    this.kill();
    const problem = new Error(this.#lastWords(code, signal));
    this.#load?.reject(problem);
    const running = this.#running;
    this.#running = undefined;
    running?.reject(problem);
  }

  #lastWords(code: number | null, signal: NodeJS.Signals | null): string {
    const { memoryMb } = this.#options;
    if (this.#overMemory || /heap out of memory|Reached heap limit/i.test(this.#stderr))
      return `it needed more memory than its process may have (${memoryMb} MiB)`;
    const how = signal === null ? `exit code ${code}` : signal;
    const words = this.#stderr.trim().split("\n").at(-1) ?? "";
    return `the process of its executor ended with ${how}${words === "" ? "" : `: ${words}`}`;
  }

  #send(command: ChildCommand): void {
    if (this.#process.connected) this.#process.send(command, () => undefined);
  }
}

/** Rebuilds the error reported by the process of an executor. */
function asError(failure: TaskFailure): Error {
  const { message, name, stack, cause, retryable, again } = failure;
  const error = new Error(message, cause === undefined ? undefined : { cause });
  if (name !== undefined) error.name = name;
  if (stack !== undefined) error.stack = stack;
  if (again !== undefined) return Object.assign(error, { again });
  return retryable === false ? Object.assign(error, { retryable }) : error;
}

/** Resident memory of a process, where the system reports it; 0 elsewhere, and then only its heap is limited. */
function residentBytes(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * PAGE_BYTES;
  } catch {
    return 0;
  }
}
