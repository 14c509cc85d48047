/** JSON as a field of a message. */

import { type ByteReader, decodeUtf8 } from "../core/base/bytes.ts";
import { type Type, text } from "./schema.ts";

/**
 * Plain data whose shape the wire does not define: values passed by user code, descriptions of workflows, results. JSON
 * contains nothing executable, and its parser makes own properties only. Consumers validate it before use. `undefined`
 * is omitted.
 */
export function json<Value>(bytesMax: number): Type<Value> {
  return {
    wire: text(bytesMax).wire,
    shape: { kind: "json", bytesMax },
    write: (out, value) => out.text(JSON.stringify(value) ?? ""),
    read: (from) => parsed(from, decodeUtf8(from.bytes(bytesMax))) as Value,
  };
}

function parsed(from: ByteReader, source: string): unknown {
  if (source === "") return undefined;
  try {
    return JSON.parse(source) as unknown;
  } catch {
    from.fail("a value is not JSON");
    return undefined;
  }
}
