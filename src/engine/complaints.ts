/** Reports errors of user code once per kind of mistake, not once per request. */

import { errorText } from "../core/base/error-text.ts";
import { maskCredentials } from "../core/base/mask-credentials.ts";
import { locationOf } from "./problem.ts";

const SHOWN_MAX = 20;

export class Complaints {
  readonly #shown = new Set<string>();
  readonly #log: (line: string) => void;

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  add(what: string, error: unknown): void {
    const line = `${what}: ${maskCredentials(errorText(error))}`;
    if (this.#shown.has(line) || this.#shown.size >= SHOWN_MAX) return;
    this.#shown.add(line);
    const location = locationOf(error);
    this.#log(location === null ? line : `${line} (${location})`);
  }
}
