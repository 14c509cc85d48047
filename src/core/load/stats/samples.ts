/**
 * Samples of failures: up to five of each step, kind and status, so that a reader sees what the target answered without
 * a full log. The list only grows, and a frame contains the samples that no earlier one did.
 */

import { type ByteReader, type ByteWriter, encodeUtf8 } from "../../base/bytes.ts";
import { maskSecrets } from "../../base/mask-credentials.ts";
import { clean } from "../../base/terminal-text.ts";

const PER_FAILURE_MAX = 5;
/** Maximum samples of one part of a workflow, and of all parts together. */
const SAMPLES_MAX = 500;
/** Maximum size of an answer, and of the error text. */
const TEXT_BYTES_MAX = 512;
const CALL_LENGTH_MAX = 256;

export interface FailureSample {
  /** Number of the step. */
  readonly step: number;
  /** Index of the error kind. */
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

  /** True when another failure like this would be kept. */
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

  /** Moves the samples of a step to another one. */
  move(from: number, into: number): void {
    for (const [at, sample] of this.#list.entries())
      if (sample.step === from) this.#list[at] = { ...sample, step: into };
  }

  /** Writes the samples after the first `sent`. */
  write(writer: ByteWriter, sent: number): void {
    writer.varint(sent);
    writer.varint(this.#list.length - sent);
    for (const { atMs, call, kind, status, step, text } of this.#list.slice(sent)) {
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

/** Undefined when the bytes are not samples. */
export function readSamples(reader: ByteReader, kinds: number): NewSamples | undefined {
  const [from, length] = [reader.varint(), reader.varint()];
  if (reader.failed || from + length > SAMPLES_MAX) return undefined;
  const list: FailureSample[] = [];
  for (let i = 0; i < length; i++) {
    const [step, kind, status] = [reader.varint(), reader.varint(), reader.varint()];
    const atMs = reader.varint();
    const call = reader.text(3 * CALL_LENGTH_MAX);
    // The replacement of a truncated character may be longer than the character.
    const text = reader.text(3 * TEXT_BYTES_MAX);
    if (reader.failed || kind >= kinds) return undefined;
    list.push({ step, kind, status, atMs, call, text });
  }
  return { from, list };
}

/** Sanitises a call: no control characters, no secrets, limited length. */
export function sampledCall(call: string): string {
  return maskSecrets(clean(call)).slice(0, CALL_LENGTH_MAX);
}

/** Sanitises an answer; keeps its first 512 bytes. */
export function sampledText(text: string): string {
  const masked = maskSecrets(clean(text.slice(0, TEXT_BYTES_MAX)));
  let length = masked.length;
  while (encodeUtf8(masked.slice(0, length)).length > TEXT_BYTES_MAX) length--;
  return masked.slice(0, length).trim();
}

function keyOf(step: number, kind: number, status: number): string {
  return `${step} ${kind} ${status}`;
}
