/**
 * What some failures looked like: up to five of each step, kind and status, so that a reader sees
 * what the target said without a log of everything it said. They only grow in number, and a frame
 * tells those that no earlier one told.
 */

import { type ByteReader, type ByteWriter, encodeUtf8 } from "../../base/bytes.ts";
import { maskSecrets } from "../../base/mask-credentials.ts";
import { clean } from "../../base/terminal-text.ts";

const PER_FAILURE_MAX = 5;
/** Of one part of a workflow, and of all parts together. */
const SAMPLES_MAX = 500;
/** Of an answer; and of the text that says what went wrong. */
const TEXT_BYTES_MAX = 512;
const CALL_LENGTH_MAX = 256;

export interface FailureSample {
  /** Number of the step. */
  readonly step: number;
  /** Place among the kinds of errors. */
  readonly kind: number;
  /** 0 where there is none. */
  readonly status: number;
  /** Measured time. */
  readonly atMs: number;
  /** Method and URL. */
  readonly call: string;
  readonly text: string;
}

export class FailureSamples {
  readonly #list: FailureSample[] = [];
  readonly #taken = new Map<string, number>();

  get list(): readonly FailureSample[] {
    return this.#list;
  }

  /** Another failure like this would be kept. */
  wants(step: number, kind: number, status: number): boolean {
    if (this.#list.length >= SAMPLES_MAX) return false;
    return (this.#taken.get(keyOf(step, kind, status)) ?? 0) < PER_FAILURE_MAX;
  }

  add(sample: FailureSample): void {
    const { kind, status, step } = sample;
    if (!this.wants(step, kind, status)) return;
    const key = keyOf(step, kind, status);
    this.#taken.set(key, (this.#taken.get(key) ?? 0) + 1);
    this.#list.push(sample);
  }

  /** The samples of a step are those of another one from now on. */
  move(from: number, into: number): void {
    for (const [at, sample] of this.#list.entries())
      if (sample.step === from) this.#list[at] = { ...sample, step: into };
  }

  /** Those after the first `told`. */
  write(writer: ByteWriter, told: number): void {
    writer.varint(told);
    writer.varint(this.#list.length - told);
    for (const { atMs, call, kind, status, step, text } of this.#list.slice(told)) {
      writer.varint(step);
      writer.varint(kind);
      writer.varint(status);
      writer.varint(Math.max(0, Math.round(atMs)));
      writer.text(call);
      writer.text(text);
    }
  }
}

/** Samples from a number on. */
export interface NewSamples {
  readonly from: number;
  readonly list: readonly FailureSample[];
}

/** Undefined when the bytes are no samples. */
export function readSamples(reader: ByteReader, kinds: number): NewSamples | undefined {
  const [from, length] = [reader.varint(), reader.varint()];
  if (reader.failed || from + length > SAMPLES_MAX) return undefined;
  const list: FailureSample[] = [];
  for (let i = 0; i < length; i++) {
    const [step, kind, status] = [reader.varint(), reader.varint(), reader.varint()];
    const atMs = reader.varint();
    const call = reader.text(3 * CALL_LENGTH_MAX);
    // What replaces a character that was cut through may take more room than it did.
    const text = reader.text(3 * TEXT_BYTES_MAX);
    if (reader.failed || kind >= kinds) return undefined;
    list.push({ step, kind, status, atMs, call, text });
  }
  return { from, list };
}

/** What a reader may see of a call: no control characters, no secrets, not too long. */
export function sampledCall(call: string): string {
  return maskSecrets(clean(call)).slice(0, CALL_LENGTH_MAX);
}

/** The same of what was said; the first 512 bytes of it. */
export function sampledText(text: string): string {
  const masked = maskSecrets(clean(text.slice(0, TEXT_BYTES_MAX)));
  let length = masked.length;
  while (encodeUtf8(masked.slice(0, length)).length > TEXT_BYTES_MAX) length--;
  return masked.slice(0, length).trim();
}

function keyOf(step: number, kind: number, status: number): string {
  return `${step} ${kind} ${status}`;
}
