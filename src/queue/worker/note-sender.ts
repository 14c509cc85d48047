/**
 * Messages from a worker to the leader besides results: starts of executions, and their logs and progress, which are
 * stored with the attempt. Unanswered messages are sent again unchanged: their numbers identify a repeat. Beyond the
 * limit, only the number of dropped messages is sent.
 */

import { errorText } from "../../core/base/error-text.ts";
import { batchesOf, batchLength, textBytesBound } from "../../core/queue/batches.ts";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import type { Background, Work } from "../../host/background.ts";
import type { LeaseRef, Progress } from "../api/types.ts";

/** The start of an execution shorter than this is reported together with its result. */
const NOTE_MS = 5;
/** Fields of a note beside its text. */
const NOTE_BYTES = 256;
const BOUNDS = {
  countMax: QUEUE_LIMITS.claimTasksMax,
  bytesMax: QUEUE_LIMITS.messageBytesMax,
};

interface Note extends Progress {
  readonly bytes: number;
}

/** An execution as the source of notes. */
export interface Speaker {
  readonly lease: LeaseRef;
  readonly over: boolean;
  startNoted: boolean;
  lines: number;
}

interface NoteSenderOptions {
  readonly started: (leases: readonly LeaseRef[]) => Promise<unknown>;
  /** Returns false when they were not answered and are to be sent again. */
  readonly progress: (messages: readonly Progress[]) => Promise<boolean>;
  readonly stopped: () => boolean;
  readonly background: Background;
}

export class NoteSender {
  readonly #options: NoteSenderOptions;
  #starts: Speaker[] = [];
  #notes: Note[] = [];
  /** Messages dropped since the last one, by lease. */
  readonly #leftOut = new Map<string, { readonly speaker: Speaker; count: number }>();
  /** Messages under way, by lease, and a callback for when all are sent. */
  readonly #unsent = new Map<string, { count: number; onSent?: () => void }>();
  #due: Work | undefined;

  constructor(options: NoteSenderOptions) {
    this.#options = options;
  }

  began(execution: Speaker): void {
    this.#starts.push(execution);
    this.#soon();
  }

  say(speaker: Speaker, kind: Progress["kind"], value: unknown): void {
    if (this.#notes.length >= QUEUE_LIMITS.notesMax) {
      const token = speaker.lease.lease_token;
      const left = this.#leftOut.get(token) ?? { speaker, count: 0 };
      left.count++;
      speaker.lines++;
      this.#leftOut.set(token, left);
      return;
    }
    this.#push(speaker, kind, value);
    this.#soon();
  }

  /** Resolves when all messages under a lease have reached the leader; undefined when they have. */
  delivered({ lease: { lease_token: token } }: Speaker): Promise<void> | undefined {
    const unsent = this.#unsent.get(token);
    if (unsent === undefined) return undefined;
    return new Promise((resolve) => {
      unsent.onSent = resolve;
    });
  }

  #push(speaker: Speaker, kind: Progress["kind"], value: unknown): void {
    const { message, bytes } = bounded(value);
    const numbered = kind === "log" ? { line: ++speaker.lines } : {};
    this.#notes.push({ ...speaker.lease, ...numbered, kind, message, bytes });
    const token = speaker.lease.lease_token;
    const unsent = this.#unsent.get(token) ?? { count: 0 };
    unsent.count++;
    this.#unsent.set(token, unsent);
  }

  #soon(): void {
    this.#due ??= this.#options.background.after("send notes", NOTE_MS, () => this.#send());
  }

  async #send(): Promise<void> {
    for (const { speaker, count } of this.#leftOut.values())
      this.#push(
        speaker,
        "log",
        `${count} lines were left out: they came faster than they are sent`,
      );
    this.#leftOut.clear();
    const starts = this.#starts.filter((execution) => !execution.over);
    this.#starts = [];
    for (const execution of starts) execution.startNoted = true;
    for (const batch of batchesOf(starts, BOUNDS.countMax))
      await this.#options.started(batch.map(({ lease }) => lease));
    while (this.#notes.length > 0 && !this.#options.stopped()) {
      const count = batchLength(this.#notes, BOUNDS, ({ bytes }) => bytes);
      const batch = this.#notes.slice(0, count).map(({ bytes, ...note }) => note);
      if (await this.#options.progress(batch)) this.#sent(this.#notes.splice(0, count));
    }
    if (this.#options.stopped()) this.#sent(this.#notes.splice(0));
    this.#due = undefined;
    if (this.#starts.length > 0 || this.#leftOut.size > 0) this.#soon();
  }

  #sent(notes: readonly Note[]): void {
    for (const { lease_token: token } of notes) {
      const unsent = this.#unsent.get(token);
      if (unsent === undefined || --unsent.count > 0 || this.#leftOut.has(token)) continue;
      this.#unsent.delete(token);
      unsent.onSent?.();
    }
  }
}

/** Bounds a value; one that is too large or no JSON is replaced by a sentence that says so. */
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
