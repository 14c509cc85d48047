/**
 * Findings that the reader of the results must know besides the metrics, collected while an execution runs: notes,
 * broken rules, and calls that were not awaited.
 */

import { errorText } from "../core/base/error-text.ts";
import { type CountedNote, CountedNotes } from "../core/load/job/counted-notes.ts";
import type { Fault } from "../core/load/job/faults.ts";
import { connectionNotes } from "../protocols/protocol.ts";
import { Complaints } from "./complaints.ts";
import { Faults } from "./faults.ts";
import { locationOf } from "./problem.ts";

const NOTES_MAX = 50;

export class Findings {
  readonly #workflow: string;
  readonly #complaints: Complaints;
  readonly #notes = new Set<string>();
  readonly #faults = new Faults();
  readonly #counted = new CountedNotes();

  constructor(workflow: string, log: (line: string) => void) {
    this.#workflow = workflow;
    this.#complaints = new Complaints(log);
  }

  /** A check that returns neither true nor false counts as failed, which its author may not expect. */
  checked(name: string, value: unknown): boolean {
    if (typeof value === "boolean") return value;
    const given = value instanceof Promise ? "a promise" : JSON.stringify(value);
    this.note(`the check "${name}" gave ${given}, which is not true: it counts as failed`);
    return false;
  }

  /** Adds a note once, however often it happens. */
  note(text: string): void {
    if (this.#notes.size < NOTES_MAX) this.#notes.add(`"${this.#workflow}": ${text}`);
  }

  /** Reports an error of user code to its author, without further effect. */
  complain(what: string, error: unknown): void {
    this.#complaints.add(what, error);
  }

  fault(fault: Fault): void {
    this.#faults.add(fault);
  }

  /** Code outside the steps threw or timed out: the run must not pass. */
  failed(what: string, shown: string, error: unknown): void {
    this.#complaints.add(shown, error);
    this.#faults.failed(what, error);
  }

  /**
   * The body of a flow threw: the iteration failed, without a call to count it under. One of the warm-up is reported
   * and breaks no rule, like a failed call of the warm-up.
   */
  bodyThrew(error: unknown, measured: boolean): void {
    const location = locationOf(error);
    const where = location === null ? "" : ` (${location})`;
    this.#complaints.add("the body threw", error);
    if (!measured) return;
    const text = `${errorText(error)}${where}`;
    this.#faults.add({ gate: "no uncaught errors in flow code", text, count: 1 });
  }

  /** A user was cut off before its teardown: in an iteration, say. */
  notTornDown(cutOffIn: string): void {
    this.#count("notTornDown", cutOffIn);
  }

  /** A body ended while a call of this step was under way. */
  unawaited(step: string): void {
    this.#count("unawaited", step);
  }

  /** An iteration ended because of this step, or for this reason. */
  endedBy(by: string): void {
    this.#count("ended", by);
  }

  get faults(): readonly Fault[] {
    return this.#faults.list;
  }

  get notes(): string[] {
    return [...this.#notes, ...connectionNotes()];
  }

  /** Notes with counts, to be added over all cores. */
  get counted(): CountedNotes {
    return this.#counted;
  }

  #count(topic: CountedNote["topic"], name: string): void {
    this.#counted.add({ workflow: this.#workflow, topic, name, count: 1 });
  }
}
