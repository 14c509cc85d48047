/** Downloads a blob from a datacenter, chunk by chunk, from any manager that has it. */

import { hexOf } from "../../base/hex.ts";
import { sha256 } from "../../base/sha256.ts";
import type { BlobHash } from "../messages.ts";
import type { GateContext } from "./context.ts";

/** Size limit of a result, which has a few megabytes at most. */
const RESULT_BYTES_MAX = 64 * 1_048_576;
/** Maximum number of failed attempts. */
const ATTEMPTS_MAX = 8;

/** Calls `done` with null if no manager has the blob. A downloaded blob is stored here. */
export function download(
  context: GateContext,
  datacenter: string,
  hash: BlobHash,
  done: (bytes: Uint8Array | null) => void,
): void {
  let parts: Uint8Array[] = [];
  let offset = 0;
  let attempts = 0;
  /** Manager that has the blob: all chunks come from the same one. */
  let source: string | null = null;
  const failed = (): void => {
    parts = [];
    offset = 0;
    source = null;
    if (++attempts < ATTEMPTS_MAX) next();
    else done(null);
  };
  const next = (): void => {
    const message = { kind: "blobGet", hash, offset } as const;
    context.ask({ datacenter, manager: source, message }, (answer, from) => {
      if (from === null) {
        done(null);
        return;
      }
      source = from;
      if (answer?.kind !== "blobChunk" || answer.total > RESULT_BYTES_MAX) {
        failed();
        return;
      }
      parts.push(answer.bytes);
      offset += answer.bytes.length;
      if (offset < answer.total && answer.bytes.length > 0) next();
      else finish();
    });
  };
  const finish = (): void => {
    const bytes = joined(parts);
    if (hexOf(sha256(bytes)) !== hash) {
      failed();
      return;
    }
    context.emit({ kind: "keepBlob", hash, bytes });
    done(bytes);
  };
  next();
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
