/**
 * Numbers for names: what a part of a run measures gets a number when it is first seen, and frames
 * carry each name once. Parts that were seen in another order, or did not see the same names, are
 * merged by name.
 *
 *   core 0   0 "home"  1 "pay"             ─┐
 *   core 1   0 "home"  1 "search" 2 "pay"  ─┴─ merged   0 "home"  1 "pay"  2 "search"
 *
 * Names come from user code and can explode (an id in a name): those beyond `NAMES_MAX` share
 * the name "(other)", so that every count stays right and memory bounded.
 */

import type { ByteReader, ByteWriter } from "../../base/bytes.ts";

/** Steps of a workflow that are kept apart; and so many groups, and so many checks. */
export const NAMES_MAX = 500;
export const OTHER_NAME = "(other)";
/** Longer texts are cut: a name is no place for data. */
const TEXT_LENGTH_MAX = 256;
export const TEXT_BYTES_MAX = 3 * TEXT_LENGTH_MAX;
const TAGS_MAX = 32;

export type Tags = Readonly<Record<string, string>>;
export const NO_TAGS: Tags = {};

/** A step; groups and checks are their name alone. Equal names with other tags are apart. */
export interface Name {
  readonly name: string;
  readonly protocol: string;
  readonly tags: Tags;
}

export class NameTable {
  readonly #list: Name[] = [];
  readonly #numbers = new Map<string, number>();
  #other: number | undefined;

  constructor(known: readonly Name[] = []) {
    for (const { name, protocol, tags } of known) this.numberOf(name, protocol, tags);
  }

  /** In the order of their numbers. */
  get list(): readonly Name[] {
    return this.#list;
  }

  nameOf(number: number): string {
    return this.#list[number]?.name ?? OTHER_NAME;
  }

  /** Names beyond the limit were seen, here or by a part that told so. */
  get overflowed(): boolean {
    return this.#other !== undefined;
  }

  /** The number of a name, a new one when it was not seen before. */
  numberOf(name: string, protocol = "", tags: Tags = NO_TAGS): number {
    const known = this.#numbers.get(keyOf(name, tags));
    if (known !== undefined) return known;
    const short = { name: clip(name), protocol: clip(protocol), tags: clipTags(tags) };
    const key = keyOf(short.name, short.tags);
    const clipped = this.#numbers.get(key);
    if (clipped !== undefined) return clipped;
    if (name === OTHER_NAME || this.#numbers.size >= NAMES_MAX)
      return this.#otherOf(short.protocol);
    this.#numbers.set(key, this.#list.length);
    return this.#list.push(short) - 1;
  }

  #otherOf(protocol: string): number {
    this.#other ??= this.#list.push({ name: OTHER_NAME, protocol, tags: NO_TAGS }) - 1;
    return this.#other;
  }
}

export function writeName(writer: ByteWriter, { name, protocol, tags }: Name): void {
  writer.text(name);
  writer.text(protocol);
  writeTags(writer, tags);
}

/** Undefined when the bytes are no name. */
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

/** Undefined when the bytes are no tags. */
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
