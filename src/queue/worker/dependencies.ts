/** What an execution sees of the tasks that its own depended on. */

import { NotRetryable } from "./executor.ts";

export type DependencyResults = Readonly<Record<string, unknown>>;
/** Why a result is not there, by the same names. */
export type MissingResults = Readonly<Record<string, string>>;

const NONE: DependencyResults = Object.freeze({});

/**
 * Results by name. One that was not handed over is not among the keys, and whoever reads it fails with the reason:
 * an executor that only waits for others needs none of them.
 */
export function dependencyResults(
  handed: DependencyResults | undefined,
  missing: MissingResults,
): DependencyResults {
  if (handed === undefined) return NONE;
  const results = { ...handed };
  for (const [name, reason] of Object.entries(missing)) {
    Object.defineProperty(results, name, {
      get: () => {
        throw new NotRetryable(`the result of "${name}" was not handed over: ${reason}`);
      },
    });
  }
  return Object.freeze(results);
}
