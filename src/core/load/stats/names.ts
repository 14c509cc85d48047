/**
 * Numbers for names: what a part of a run measures gets a number when it is first seen, and frames
 * carry each name once. Parts that were seen in another order, or did not see the same names, are
 * merged by name.
 *
 *   core 0   0 "home"  1 "pay"             ─┐
 *   core 1   0 "home"  1 "search" 2 "pay"  ─┴─ merged   0 "home"  1 "pay"  2 "search"
 *
 * Names come from user code and can explode (an id in a name): those beyond `NAMES_MAX` share
 * the name "(other)", so that every count stays right and memory bounded. A part also reports which
 * names it gave up: a row of which any part gave up the name is folded into "(other)" where parts
 * are merged, because it would miss the calls of that part.
 */

import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { GivenUpNames } from "./given-up-names.ts";

/** Steps of a workflow that are kept separately; the same limit applies to groups and to checks. */
export const NAMES_MAX = 500;
/** Limit among those for steps named by their call: an address may contain an id. */
export const UNNAMED_MAX = 200;
export const OTHER_NAME = "(other)";
/** Tag of calls beside the iterations, such as those of setup: their "(other)" is a row of its own. */
export const PHASE_TAG = "phase";
/** Rows named "(other)": of the iterations, and of each phase beside them. */
const OTHERS_MAX = 8;
export const ROWS_MAX = NAMES_MAX + OTHERS_MAX;
/** Longer texts are truncated: names are not meant for data. */
const TEXT_LENGTH_MAX = 256;
export const TEXT_BYTES_MAX = 3 * TEXT_LENGTH_MAX;
const TAGS_MAX = 32;

export type Tags = Readonly<Record<string, string>>;
export const NO_TAGS: Tags = {};

/** A step; groups and checks have only a name. Equal names with other tags are different. */
export interface Name {
  readonly name: string;
  readonly protocol: string;
  readonly tags: Tags;
}

/** A row that is counted under another one from now on. */
export interface Fold {
  readonly from: number;
  readonly into: number;
}

export class NameTable {
  readonly #list: Name[] = [];
  readonly #numbers = new Map<string, number>();
  /** By phase; that of the iterations is "". */
  readonly #others = new Map<string, number>();
  readonly #folds: Fold[] = [];
  readonly #folded = new Set<number>();
  /** Names that this table, or a part merged into it, counts under "(other)"; null while there are none. */
  givenUp: GivenUpNames | null = null;

  constructor(known: readonly Name[] = []) {
    for (const { name, protocol, tags } of known) this.numberOf(name, protocol, tags);
  }

  /** In the order of their numbers, folded ones included. */
  get list(): readonly Name[] {
    return this.#list;
  }

  nameOf(number: number): string {
    return this.#list[number]?.name ?? OTHER_NAME;
  }

  /** True when names beyond the limit were seen, here or by a part that reported so. */
  get overflowed(): boolean {
    return this.#others.size > 0;
  }

  /** The number of a name, a new one when it was not seen before. */
  numberOf(name: string, protocol = "", tags: Tags = NO_TAGS): number {
    const known = this.#numbers.get(keyOf(name, tags));
    if (known !== undefined) return known;
    const short = { name: clip(name), protocol: clip(protocol), tags: clipTags(tags) };
    const key = keyOf(short.name, short.tags);
    const clipped = this.#numbers.get(key);
    if (clipped !== undefined) return clipped;
    if (name === OTHER_NAME) return this.#otherOf(short);
    if (this.#numbers.size >= NAMES_MAX) return this.giveUp(name, protocol, tags);
    this.#numbers.set(key, this.#list.length);
    return this.#list.push(short) - 1;
  }

  /** Counts a name under "(other)"; returns its number. */
  giveUp(name: string, protocol: string, tags: Tags): number {
    const short = { name: clip(name), protocol: clip(protocol), tags: clipTags(tags) };
    this.givenUp ??= new GivenUpNames();
    this.givenUp.add(keyOf(short.name, short.tags));
    return this.#otherOf(short);
  }

  #otherOf({ protocol, tags }: Name): number {
    const phase = this.#others.size < OTHERS_MAX ? (tags[PHASE_TAG] ?? "") : "";
    const known = this.#others.get(phase);
    if (known !== undefined) return known;
    const own = phase === "" ? NO_TAGS : { [PHASE_TAG]: phase };
    const number = this.#list.push({ name: OTHER_NAME, protocol, tags: own }) - 1;
    this.#others.set(phase, number);
    return number;
  }

  /** Whether a row is counted under "(other)". */
  isFolded(number: number): boolean {
    return this.#folded.has(number);
  }

  /** Folded rows, in order of folding. */
  get folds(): readonly Fold[] {
    return this.#folds;
  }

  /** Counts a numbered row under "(other)" from now on; returns its number. */
  fold(from: number): number {
    const name = this.#list[from];
    if (name === undefined || name.name === OTHER_NAME || this.#folded.has(from)) return from;
    const into = this.#otherOf(name);
    this.#numbers.set(keyOf(name.name, name.tags), into);
    this.#folded.add(from);
    this.#folds.push({ from, into });
    return into;
  }

  /** Rows whose name the filter may include, except "(other)". */
  *among(names: GivenUpNames): Iterable<number> {
    for (const [number, { name, tags }] of this.#list.entries())
      if (name !== OTHER_NAME && !this.#folded.has(number) && names.has(keyOf(name, tags)))
        yield number;
  }
}

export function writeName(writer: ByteWriter, { name, protocol, tags }: Name): void {
  writer.text(name);
  writer.text(protocol);
  writeTags(writer, tags);
}

/** Undefined when the bytes are not a name. */
export function readName(reader: ByteReader): Name | undefined {
  const name = reader.text(TEXT_BYTES_MAX);
  const protocol = reader.text(TEXT_BYTES_MAX);
  const tags = readTags(reader);
  return tags === undefined ? undefined : { name, protocol, tags };
}

export function writeTags(writer: ByteWriter, tags: Tags): void {
  const pairs = Object.entries(tags);
  writer.varint(pairs.length);
  for (const [key, value] of pairs) {
    writer.text(key);
    writer.text(value);
  }
}

/** Undefined when the bytes are not tags. */
export function readTags(reader: ByteReader): Tags | undefined {
  const count = reader.varint();
  if (reader.failed || count > TAGS_MAX) return undefined;
  const pairs: [string, string][] = [];
  for (let i = 0; i < count; i++)
    pairs.push([reader.text(TEXT_BYTES_MAX), reader.text(TEXT_BYTES_MAX)]);
  return reader.failed ? undefined : Object.fromEntries(pairs);
}

/** The same for the same pairs in any order. */
export function tagsKey(tags: Tags): string {
  const keys = Object.keys(tags);
  return keys.length === 0 ? "" : JSON.stringify(keys.sort().map((key) => [key, tags[key]]));
}

export function clip(text: string): string {
  return text.length > TEXT_LENGTH_MAX ? text.slice(0, TEXT_LENGTH_MAX) : text;
}

export function clipTags(tags: Tags): Tags {
  const pairs = Object.entries(tags).slice(0, TAGS_MAX);
  return Object.fromEntries(pairs.map(([key, value]) => [clip(key), clip(value)]));
}

function keyOf(name: string, tags: Tags): string {
  const key = tagsKey(tags);
  return key === "" ? name : `${name} ${key}`;
}
