/** Runs seeds in child processes, one at a time each, and hands results back in the order they finish. */

import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { RunOptions, RunResult } from "./run.ts";
import { runSeed } from "./run.ts";

export interface PoolResult {
  readonly result: RunResult;
  readonly options: RunOptions;
  /** Milliseconds of processor time this seed took. */
  readonly cpuMs: number;
}

/** Nearly everything a world makes dies young: room for it saves a tenth of the time. */
const YOUNG_SPACE = "--max-semi-space-size=64";

interface Job {
  readonly options: RunOptions;
}

/** `next` is asked for work whenever a child is free; null ends that child. */
export function runPool(
  jobs: number,
  next: () => RunOptions | null,
  done: (outcome: PoolResult) => void,
): Promise<void> {
  const children = Array.from({ length: jobs }, () =>
    fork(fileURLToPath(import.meta.url), [], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      execArgv: [...process.execArgv, YOUNG_SPACE],
    }),
  );
  return Promise.all(children.map((child) => drive(child, next, done))).then(() => undefined);
}

function drive(
  child: ChildProcess,
  next: () => RunOptions | null,
  done: (outcome: PoolResult) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let ended = false;
    const feed = (): void => {
      const options = next();
      if (options !== null) {
        child.send({ options } satisfies Job);
        return;
      }
      ended = true;
      child.disconnect();
    };
    child.on("message", (outcome: PoolResult) => {
      done(outcome);
      feed();
    });
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      if (ended) resolve();
      else reject(new Error(`a simulator process ended early with ${code ?? signal}`));
    });
    feed();
  });
}

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  process.on("message", ({ options }: Job) => {
    const before = process.cpuUsage();
    const result = runSeed(options);
    const { user, system } = process.cpuUsage(before);
    process.send?.({ result, options, cpuMs: (user + system) / 1_000 } satisfies PoolResult);
  });
}
