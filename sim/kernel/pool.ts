/** Runs seeds in child processes, one at a time each, and hands results back in the order they finish. */

import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import { hash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { useSha256 } from "../../src/core/base/sha256.ts";
import type { RunResult } from "../cluster/run.ts";

export interface PoolResult<Options> {
  readonly result: RunResult;
  readonly options: Options;
  /** Milliseconds of processor time this seed took. */
  readonly cpuMs: number;
}

interface Pool<Options> {
  /** The module that calls `serveRuns`. */
  readonly worker: URL;
  readonly jobs: number;
  /** Asked for work whenever a child is free; null ends that child. */
  readonly next: () => Options | null;
  readonly done: (outcome: PoolResult<Options>) => void;
}

export function runPool<Options>(pool: Pool<Options>): Promise<void> {
  const script = fileURLToPath(pool.worker);
  const children = Array.from({ length: pool.jobs }, () =>
    fork(script, [], { stdio: ["ignore", "inherit", "inherit", "ipc"] }),
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

/** The child's side. */
export function serveRuns<Options>(run: (options: Options) => RunResult): void {
  useSha256((message) => hash("sha256", message, "buffer"));
  process.on("message", ({ options }: { readonly options: Options }) => {
    const before = process.cpuUsage();
    const result = run(options);
    const { user, system } = process.cpuUsage(before);
    process.send?.({ result, options, cpuMs: (user + system) / 1_000 });
  });
}
