/**
 * Commands of an execution that are carried out once, however often they are said: a new leader of the job says
 * again what the one before may not have been able to, and hears again what was answered.
 */

import type { CoreCommand, CoreEvent } from "../core/load/job/core-messages.ts";

type Once = "prepare" | "setup" | "start" | "teardown";

/** Which command an event answers. */
const ANSWERS: Readonly<Partial<Record<CoreEvent["kind"], Once>>> = {
  prepared: "prepare",
  setupDone: "setup",
  finished: "start",
  tornDown: "teardown",
};

export class Repeats {
  #execution = -1;
  /** What this execution was told, in order, with the answer that there was. */
  readonly #told = new Map<Once, CoreEvent | null>();

  /** Null for a command that is new; else what to say again, if anything. */
  again(command: CoreCommand): readonly CoreEvent[] | null {
    if (!isOnce(command)) return null;
    if (command.kind === "prepare" && command.execution !== this.#execution) {
      this.#execution = command.execution;
      this.#told.clear();
    }
    const answer = this.#told.get(command.kind);
    if (answer === undefined) this.#told.set(command.kind, null);
    if (answer === undefined) return null;
    return answer === null ? [] : [answer];
  }

  onEvent(event: CoreEvent): void {
    if (!("execution" in event) || event.execution !== this.#execution) return;
    const answered = event.kind === "failed" ? [...this.#told.keys()].at(-1) : ANSWERS[event.kind];
    if (answered !== undefined) this.#told.set(answered, event);
  }
}

function isOnce(command: CoreCommand): command is Extract<CoreCommand, { kind: Once }> {
  return ["prepare", "setup", "start", "teardown"].includes(command.kind);
}
