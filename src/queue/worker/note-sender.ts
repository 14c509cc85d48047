/**
 * What a worker tells the leader besides results: that executions began, and the words of executors for
 * whoever follows them. Words are not kept for a leader that does not answer; how many were left out is
 * said in their place.
 */

import { errorText } from "../../core/base/error-text.ts";
import { batchesOf, batchLength, textBytesBound } from "../../core/queue/batches.ts";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import type { Background, Work } from "../../host/background.ts";
import type { Grant, LeaseRef, Progress } from "../api/types.ts";

/** An execution shorter than this is noted as started together with its result. */
const NOTE_MS = 5;
/** Fields of a note beside its words. */
const NOTE_BYTES = 256;
const BOUNDS = {
  countMax: QUEUE_LIMITS.claimTasksMax,
  bytesMax: QUEUE_LIMITS.messageBytesMax,
};

interface Note extends Progress {
  readonly bytes: number;
}

/** An execution as far as its start is noted. */
export interface Startable {
  readonly lease: LeaseRef;
  readonly over: boolean;
  startNoted: boolean;
}

interface NoteSenderOptions {
  readonly started: (leases: readonly LeaseRef[]) => Promise<unknown>;
  readonly progress: (messages: readonly Progress[]) => Promise<unknown>;
  readonly background: Background;
}

export class NoteSender {
  readonly #options: NoteSenderOptions;
  #starts: Startable[] = [];
  #notes: Note[] = [];
  /** Words left out since the last message, by lease. */
  readonly #leftOut = new Map<string, { readonly grant: Grant; count: number }>();
  #due: Work | undefined;

  constructor(options: NoteSenderOptions) {
    this.#options = options;
  }

  began(execution: Startable): void {
    this.#starts.push(execution);
    this.#soon();
  }

  say(grant: Grant, kind: Progress["kind"], value: unknown): void {
    if (this.#notes.length >= QUEUE_LIMITS.notesMax) {
      const token = grant.lease_token;
      const left = this.#leftOut.get(token) ?? { grant, count: 0 };
      left.count++;
      this.#leftOut.set(token, left);
      return;
    }
    this.#push(grant, kind, value);
    this.#soon();
  }

  #push(grant: Grant, kind: Progress["kind"], value: unknown): void {
    const { message, bytes } = bounded(value);
    const { task_id, lease_token } = grant;
    this.#notes.push({ task_id, lease_token, kind, message, bytes });
  }

  #soon(): void {
    this.#due ??= this.#options.background.after("send notes", NOTE_MS, () => this.#send());
  }

  async #send(): Promise<void> {
    for (const { grant, count } of this.#leftOut.values())
      this.#push(grant, "log", `${count} lines were left out: they came faster than they are sent`);
    this.#leftOut.clear();
    const starts = this.#starts.filter((execution) => !execution.over);
    this.#starts = [];
    for (const execution of starts) execution.startNoted = true;
    for (const batch of batchesOf(starts, BOUNDS.countMax))
      await this.#options.started(batch.map(({ lease }) => lease));
    while (this.#notes.length > 0) {
      const batch = this.#notes.splice(
        0,
        batchLength(this.#notes, BOUNDS, ({ bytes }) => bytes),
      );
      await this.#options.progress(batch.map(({ bytes, ...note }) => note));
    }
    this.#due = undefined;
    if (this.#starts.length > 0 || this.#leftOut.size > 0) this.#soon();
  }
}

/** A value as it is told; one that is too large or no JSON is replaced by a sentence that says so. */
function bounded(value: unknown): { readonly message: unknown; readonly bytes: number } {
  try {
    const text = JSON.stringify(value) ?? "null";
    const bytes = NOTE_BYTES + textBytesBound(text);
    if (text.length <= QUEUE_LIMITS.noteBytesMax) return { message: value, bytes };
    return tooLarge(
      `${text.length} characters were left out: a note holds ${QUEUE_LIMITS.noteBytesMax}`,
    );
  } catch (error) {
    return tooLarge(`left out, as it cannot be written as JSON: ${errorText(error)}`);
  }
}

function tooLarge(message: string): { readonly message: string; readonly bytes: number } {
  return { message, bytes: NOTE_BYTES + textBytesBound(message) };
}
