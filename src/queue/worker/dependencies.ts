/** Results of dependencies, as an execution sees them. */

import { NotRetryable } from "./executor.ts";

export type DependencyResults = Readonly<Record<string, unknown>>;
/** Why a result is missing, by the same names. */
export type MissingResults = Readonly<Record<string, string>>;

const NONE: DependencyResults = Object.freeze({});

/**
 * Results by name. A missing one is not among the keys, and reading it fails with the reason: an executor that only
 * waits for others needs none of them.
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
