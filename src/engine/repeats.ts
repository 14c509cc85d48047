/**
 * Executes commands of an execution once, however often they arrive: a new leader of the job repeats commands that the
 * previous one may not have sent, and receives the answers again.
 */

import type { CoreCommand, CoreEvent } from "../core/load/job/core-messages.ts";

type Once = "prepare" | "setup" | "start" | "teardown";

/** The command that an event answers. */
const ANSWERS: Readonly<Partial<Record<CoreEvent["kind"], Once>>> = {
  prepared: "prepare",
  setupDone: "setup",
  finished: "start",
  tornDown: "teardown",
};

export class Repeats {
  #execution = -1;
  /** Commands of this execution in order, with their answers. */
  readonly #commands = new Map<Once, CoreEvent | null>();

  /** Returns null for a new command; otherwise the events to repeat, if any. */
  again(command: CoreCommand): readonly CoreEvent[] | null {
    if (!isOnce(command)) return null;
    if (command.kind === "prepare" && command.execution !== this.#execution) {
      this.#execution = command.execution;
      this.#commands.clear();
    }
    const answer = this.#commands.get(command.kind);
    if (answer === undefined) this.#commands.set(command.kind, null);
    if (answer === undefined) return null;
    return answer === null ? [] : [answer];
  }

  onEvent(event: CoreEvent): void {
    if (!("execution" in event) || event.execution !== this.#execution) return;
    const answered =
      event.kind === "failed" ? [...this.#commands.keys()].at(-1) : ANSWERS[event.kind];
    if (answered !== undefined) this.#commands.set(answered, event);
  }
}

function isOnce(command: CoreCommand): command is Extract<CoreCommand, { kind: Once }> {
  return ["prepare", "setup", "start", "teardown"].includes(command.kind);
}
