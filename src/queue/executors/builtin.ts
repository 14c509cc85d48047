/** Built-in executors of every node. `command` and `http` are restricted to what the node's configuration allows. */

import type { Executor, Executors } from "../worker/executor.ts";
import { type CommandPolicy, commandExecutor } from "./command.ts";
import { httpExecutor } from "./http.ts";
import type { HttpPolicy } from "./http-targets.ts";
import { type LoadtestPolicy, loadtestExecutor } from "./loadtest.ts";
import { sleepExecutor } from "./sleep.ts";

export interface BuiltinOptions {
  /** Programs that `command` may start; undefined disables the executor. */
  readonly commands: CommandPolicy | undefined;
  /** Hosts that `http` may reach; public addresses by default. */
  readonly http?: HttpPolicy | undefined;
  readonly loadtest: LoadtestPolicy;
}

export function builtinExecutors(options: BuiltinOptions): Executors {
  const { commands, http, loadtest } = options;
  return {
    sleep: builtIn(sleepExecutor),
    http: builtIn(httpExecutor(http)),
    loadtest: builtIn(loadtestExecutor(loadtest)),
    ...(commands === undefined ? {} : { command: builtIn(commandExecutor(commands)) }),
  };
}

function builtIn(executor: Executor): Executor {
  const run: Executor = (input, context) => executor(input, context);
  return Object.assign(run, { runs: "built-in" } as const);
}
