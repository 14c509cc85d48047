/** Refusals within the size limit of the wire. */

import { ERROR_BYTES_MAX } from "../../../wire/limits.ts";
import type { StreamEnvelope } from "../../../wire/registry.ts";
import { encodeUtf8 } from "../../base/bytes.ts";

/** Retrying is pointless: the message would be refused again. */
export const NOT_UNDERSTOOD = "UNSUPPORTED";

export function refusalOf(
  correlation: number,
  code: string,
  text: string,
  retryAfterMs: number | null = null,
): StreamEnvelope {
  const value = { code, text: clipped(text), retryAfterMs };
  return { name: "refusal", correlation, value };
}

function clipped(text: string): string {
  let kept = text;
  while (encodeUtf8(kept).length > ERROR_BYTES_MAX) {
    kept = kept.slice(0, Math.floor(kept.length * 0.9));
  }
  return kept;
}
