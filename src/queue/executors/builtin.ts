/** The executors every node has. `command` only runs what the node's configuration allows. */

import type { Executors } from "../worker/executor.ts";
import { type CommandPolicy, commandExecutor } from "./command.ts";
import { httpExecutor } from "./http.ts";
import { type LoadtestPolicy, loadtestExecutor } from "./loadtest.ts";
import { sleepExecutor } from "./sleep.ts";

export interface BuiltinOptions {
  /** Programs that `command` may start; undefined leaves the executor out. */
  readonly commands: CommandPolicy | undefined;
  readonly loadtest: LoadtestPolicy;
}

export function builtinExecutors(options: BuiltinOptions): Executors {
  return {
    sleep: sleepExecutor,
    http: httpExecutor,
    loadtest: loadtestExecutor(options.loadtest),
    ...(options.commands === undefined ? {} : { command: commandExecutor(options.commands) }),
  };
}
