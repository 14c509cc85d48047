/** Runs seeds in child processes, one at a time each, and hands results back in the order they finish. */

import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import type { RunResult } from "../membership/run.ts";
import { bundleOf } from "./bundle.ts";

export interface PoolResult<Options> {
  readonly result: RunResult;
  readonly options: Options;
  /** CPU milliseconds of this seed. */
  readonly cpuMs: number;
}

interface Pool<Options> {
  /** The module that calls `serveRuns`. */
  readonly worker: URL;
  readonly jobs: number;
  /** Returns the next work for a free child; null ends that child. */
  readonly next: () => Options | null;
  readonly done: (outcome: PoolResult<Options>) => void;
}

export function runPool<Options>(pool: Pool<Options>): Promise<void> {
  const script = bundleOf(pool.worker);
  const children = Array.from({ length: pool.jobs }, () =>
    fork(script, [], {
      execArgv: ["--enable-source-maps"],
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    }),
  );
  return Promise.all(children.map((child) => drive(child, pool))).then(() => undefined);
}

function drive<Options>(child: ChildProcess, { next, done }: Pool<Options>): Promise<void> {
  return new Promise((resolve, reject) => {
    let ended = false;
    const feed = (): void => {
      const options = next();
      if (options !== null) {
        child.send({ options });
        return;
      }
      ended = true;
      child.disconnect();
    };
    child.on("message", (outcome: PoolResult<Options>) => {
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
