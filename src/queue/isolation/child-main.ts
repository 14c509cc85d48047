/**
 * Process of isolated executors: runs one execution at a time for its node. When the node dies the pipe closes and the
 * process exits; one in an endless loop cannot notice that, so a thread checks as well.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { pathToFileURL } from "node:url";
import { format } from "node:util";
import { Worker } from "node:worker_threads";
import { errorText } from "../../core/base/error-text.ts";
import { encodePayload } from "../../core/queue/payload.ts";
import { executorsOf } from "../executors/exports.ts";
import { dependencyResults } from "../worker/dependencies.ts";
import {
  type ExecutionContext,
  type Executor,
  type Executors,
  NotRetryable,
} from "../worker/executor.ts";
import { failureOf } from "../worker/failure.ts";
import type {
  ChildCall,
  ChildCommand,
  ChildEvent,
  LoadedExecutor,
  RunCommand,
} from "./messages.ts";
import { StartedPrograms } from "./started-programs.ts";

/** One execution; code that it left running still belongs to it. */
interface Current {
  readonly abort: AbortController;
  readonly fail: (error: unknown) => void;
}

type Settle = { readonly resolve: (value: unknown) => void; readonly reject: (e: Error) => void };

const running = new AsyncLocalStorage<Current>();
const calls = new Map<number, Settle>();
const programs = new StartedPrograms();
let executors: Executors = {};
let current: Current | undefined;
let lastCall = 0;

const send = (event: ChildEvent): void => {
  if (process.connected) process.send?.(event);
};

process.on("message", (command: ChildCommand) => handle(command));
process.on("disconnect", endGroup);
// Sent by people or by programs of executions; the node decides when an execution ends.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
process.on("uncaughtException", blame);
process.on("unhandledRejection", blame);
endWithParent();

for (const level of ["log", "info", "warn", "error", "debug"] as const) {
  console[level] = (...values: unknown[]) => {
    if (running.getStore() === current) send({ kind: "log", text: format(...values) });
  };
}

function handle(command: ChildCommand): void {
  switch (command.kind) {
    case "load":
      load(command.module, command.source);
      return;
    case "run":
      run(command);
      return;
    case "abort":
      current?.abort.abort(new Error(command.reason));
      return;
    case "answer":
      settle(command.call)?.resolve(command.value);
      return;
    case "refusal":
      settle(command.call)?.reject(new Error(command.message));
  }
}

function load(module: string, source: string): void {
  import(pathToFileURL(module).href)
    .then(
      (loaded: Readonly<Record<string, unknown>>) => {
        executors = executorsOf(loaded, source);
        send({ kind: "loaded", executors: Object.entries(executors).map(described) });
      },
      (error: unknown) => send({ kind: "unloadable", message: errorText(error) }),
    )
    .catch((error: unknown) => send({ kind: "unloadable", message: errorText(error) }));
}

function described([name, { backoff }]: readonly [string, Executor]): LoadedExecutor {
  return { name, backoff };
}

function run(command: RunCommand): void {
  const abort = new AbortController();
  const outcome = new Promise<unknown>((resolve, reject) => {
    const mine: Current = { abort, fail: reject };
    current = mine;
    running.run(mine, () => perform(command, abort.signal).then(resolve, reject));
  });
  outcome.then(
    (result) => {
      const payload = encodePayload(result, "the result");
      if (payload.ok) end({ kind: "completed", result: payload.text, spoiled: programs.areLeft() });
      else fail(new NotRetryable(payload.problem), false);
    },
    (error: unknown) => fail(error, abort.signal.aborted),
  );
}

async function perform(command: RunCommand, signal: AbortSignal): Promise<unknown> {
  const executor = executors[command.executor];
  if (executor === undefined) throw new Error(`there is no executor "${command.executor}"`);
  return executor(command.input, contextOf(command, signal));
}

function fail(error: unknown, spoiled: boolean): void {
  const isSpoiled = spoiled || programs.areLeft();
  end({ kind: "failed", failure: failureOf(error), spoiled: isSpoiled });
}

function end(event: ChildEvent): void {
  current = undefined;
  send(event);
}

function contextOf(command: RunCommand, signal: AbortSignal): ExecutionContext {
  const { taskId, attempt, idempotencyKey, dependencies, dependenciesMissing } = command;
  return {
    taskId,
    attempt,
    idempotencyKey,
    dependencies: dependencyResults(dependencies, dependenciesMissing),
    dependenciesMissing,
    signal,
    log: (message) => send({ kind: "log", text: String(message) }),
    progress: (value) => send({ kind: "progress", value: plain(value) }),
    history: () => ask("history", []) as ReturnType<ExecutionContext["history"]>,
    file: (hash) => ask("file", [hash]) as Promise<Buffer>,
    attach: async (name, content, mediaType) => {
      await ask("attach", [name, content, mediaType]);
    },
  };
}

/** Converts to plain JSON: what the pipe cannot carry would end the process. */
function plain(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value) ?? "null");
  } catch (error) {
    return `left out, as it cannot be written as JSON: ${errorText(error)}`;
  }
}

function ask(method: ChildCall["method"], parameters: readonly unknown[]): Promise<unknown> {
  const call = ++lastCall;
  return new Promise((resolve, reject) => {
    calls.set(call, { resolve, reject });
    send({ kind: "call", call, method, parameters });
  });
}

function settle(call: number): Settle | undefined {
  const waiting = calls.get(call);
  calls.delete(call);
  return waiting;
}

/** An uncaught error fails the execution whose code caused it; one of an earlier execution is ignored. */
function blame(error: unknown): void {
  const owner = running.getStore();
  if (owner === undefined || owner !== current) return;
  const words = `the executor left an error that nobody caught: ${errorText(error)}`;
  owner.abort.abort(error);
  owner.fail(new Error(words, { cause: error }));
}

/** Exits and kills the programs that its executions started. */
function endGroup(): never {
  if (process.platform !== "win32") process.kill(-process.pid, "SIGKILL");
  process.exit(1);
}

function endWithParent(): void {
  const file = new URL("../../../bin/watch-parent.mjs", import.meta.url);
  const resourceLimits = { maxOldGenerationSizeMb: 16 };
  new Worker(file, { workerData: process.ppid, resourceLimits }).unref();
}
