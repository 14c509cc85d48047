/** Finds the end of a response over plain TCP, and extracts its bytes. */

/** How the end of a response is recognised. */
export type TcpAnswer =
  /** Ends with these bytes, which are part of it. */
  | { readonly until: string | Uint8Array }
  /** Has this many bytes. */
  | { readonly bytes: number }
  /** Begins with its length, a big-endian number of this many bytes. */
  | { readonly prefix: 1 | 2 | 4 }
  /** Ends with the connection. */
  | "close";

export type TcpFraming =
  | { readonly kind: "until"; readonly mark: Buffer }
  | { readonly kind: "bytes"; readonly length: number }
  | { readonly kind: "prefix"; readonly size: 1 | 2 | 4 }
  | { readonly kind: "close" }
  | { readonly kind: "none" };

const WAYS = '{ until: "\\n" }, { bytes: 4 }, { prefix: 2 } or "close"';

export function framingOf(answer: TcpAnswer): TcpFraming {
  if (answer === "close") return { kind: "close" };
  if (typeof answer === "object" && answer !== null) {
    if ("until" in answer && answer.until.length > 0)
      return { kind: "until", mark: Buffer.from(answer.until) };
    if ("bytes" in answer && Number.isInteger(answer.bytes) && answer.bytes > 0)
      return { kind: "bytes", length: answer.bytes };
    if ("prefix" in answer && [1, 2, 4].includes(answer.prefix))
      return { kind: "prefix", size: answer.prefix };
  }
  throw new TypeError(`answer says where it ends: ${WAYS}`);
}

/** Length of the response at the start of the bytes; `wanted` when it is known but incomplete. */
export function answerLength(
  framing: TcpFraming,
  buffer: Buffer,
  from: number,
  end: number,
): { readonly length: number } | { readonly wanted: number } {
  switch (framing.kind) {
    case "until": {
      const at = buffer.indexOf(framing.mark, from);
      const length = at + framing.mark.length - from;
      return at < 0 || from + length > end ? { wanted: 0 } : { length };
    }
    case "bytes":
      return end - from < framing.length ? { wanted: framing.length } : { length: framing.length };
    case "prefix": {
      if (end - from < framing.size) return { wanted: framing.size };
      const length = framing.size + buffer.readUIntBE(from, framing.size);
      return end - from < length ? { wanted: length } : { length };
    }
    default:
      return { wanted: 0 };
  }
}
