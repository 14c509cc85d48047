/**
 * The file work of one machine: tasks waiting for a disk, for a later turn, or for a condition. Each task continues as
 * soon as its wait is over, in the order in which the tasks started.
 */

import { assert } from "../../base/assert.ts";
import { type Millis, millis } from "../../base/brand.ts";
import type { FileEffect, FileOperation, FileResult, FileWork } from "./files.ts";
import { FILE_DONE } from "./files.ts";

type Then = (result: FileResult) => void;

interface Condition {
  readonly holds: () => boolean;
  readonly goOn: () => void;
}

export class FileTasks {
  /** The time of the step under way. */
  now: Millis = millis(0);
  #effects: FileEffect[] = [];
  #lastId = 0;
  readonly #waiting = new Map<number, Then>();
  #turns: (() => void)[] = [];
  #conditions: Condition[] = [];

  /** Operations that the disk has not answered. */
  get underWay(): number {
    return this.#waiting.size;
  }

  /** True: someone waits for a turn. */
  get wantsTurn(): boolean {
    return this.#turns.length > 0;
  }

  start(operation: FileOperation, then: Then): void {
    const id = ++this.#lastId;
    this.#waiting.set(id, then);
    this.#effects.push({ kind: "file", id, operation });
  }

  /** Begins now. */
  run<Value>(work: FileWork<Value>, then: (value: Value) => void): void {
    const goOn = (result: FileResult): void => {
      const next = work.next(result);
      if (next.done === true) {
        then(next.value);
        return;
      }
      const request = next.value;
      if (request.kind === "turn") this.#turns.push(() => goOn(FILE_DONE));
      else if (request.kind !== "until") this.start(request, goOn);
      else this.#conditions.push({ holds: request.holds, goOn: () => goOn(FILE_DONE) });
    };
    goOn(FILE_DONE);
  }

  done(id: number, result: FileResult): void {
    const then = this.#waiting.get(id);
    assert(then !== undefined, "an operation is answered once");
    this.#waiting.delete(id);
    then(result);
  }

  /** Lets go on who waited for a turn. */
  turn(): void {
    const turns = this.#turns;
    this.#turns = [];
    for (const goOn of turns) goOn();
  }

  /** Resumes tasks whose condition is true by now; called at the end of a step. */
  settle(): void {
    for (let at = 0; at < this.#conditions.length; ) {
      const condition = this.#conditions[at];
      if (condition?.holds() !== true) at++;
      else {
        this.#conditions.splice(at, 1);
        condition.goOn();
        at = 0;
      }
    }
  }

  /** Stops resuming waiting tasks; results are still delivered. */
  abandon(): void {
    this.#turns = [];
    this.#conditions = [];
    for (const id of this.#waiting.keys()) this.#waiting.set(id, () => {});
  }

  takeEffects(): readonly FileEffect[] {
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }
}
