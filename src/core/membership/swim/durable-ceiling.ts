/** The highest incarnation that may have been announced, as stored on disk. */

import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { COUNTER_MAX, type Incarnation, incarnation } from "../../base/ids.ts";

export function encodeCeiling(ceiling: Incarnation): Uint8Array {
  const out = new ByteWriter(16);
  out.varint(ceiling);
  return out.take();
}

/** The ceiling, or why these bytes are none that a member can have written. */
export function decodeCeiling(bytes: Uint8Array): Incarnation | string {
  const from = new ByteReader(bytes);
  const ceiling = from.varint();
  if (from.failed) return "it is no incarnation";
  if (ceiling > COUNTER_MAX) return `no member ever reaches incarnation ${ceiling}`;
  return incarnation(ceiling);
}
