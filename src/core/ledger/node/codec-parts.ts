/** Shared parts of the request and answer encodings. Every reader is total: it fails the reader, never throws. */

import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { NODE_ID_BYTES_MAX, type NodeId } from "../../base/ids.ts";
import { MEMBERS_MAX } from "../group/messages.ts";
import { DURABILITY_LEVELS, type Durability } from "../job/durability.ts";

export const TEXT_BYTES_MAX = 4_096;
export const LEVELS = Object.keys(DURABILITY_LEVELS) as readonly Durability[];

export function pick<Choice extends string>(from: ByteReader, choices: readonly Choice[]): Choice {
  const choice = choices[from.uint8()];
  if (choice === undefined) from.fail("an unknown value of a fixed list");
  return choice ?? (choices[0] as Choice);
}

export function put<Choice extends string>(
  out: ByteWriter,
  choices: readonly Choice[],
  choice: Choice,
): void {
  out.uint8(choices.indexOf(choice));
}

export function writeTexts(out: ByteWriter, texts: readonly string[]): void {
  out.varint(texts.length);
  for (const text of texts) out.text(text);
}

export function readTexts(from: ByteReader, countMax: number, bytesMax: number): string[] {
  const count = from.varint();
  if (count > countMax) from.fail("too many texts in a list");
  const texts: string[] = [];
  for (let i = 0; i < count && !from.failed; i++) texts.push(from.text(bytesMax));
  return texts;
}

export function readNodes(from: ByteReader): NodeId[] {
  const nodes = readTexts(from, MEMBERS_MAX, NODE_ID_BYTES_MAX) as NodeId[];
  if (new Set(nodes).size !== nodes.length) from.fail("a node is named twice");
  return nodes;
}

export function writeOptional(out: ByteWriter, text: string | null): void {
  out.uint8(text === null ? 0 : 1);
  if (text !== null) out.text(text);
}

export function readOptional(from: ByteReader): string | null {
  return from.uint8() === 0 ? null : from.text(TEXT_BYTES_MAX);
}
