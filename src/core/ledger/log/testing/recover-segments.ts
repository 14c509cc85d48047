import { assert } from "../../../base/assert.ts";
import { Recovery, type RecoveryOptions, type RecoveryOutcome } from "../recovery.ts";

/** Recovery of segments that are all in memory. */
export function recoverSegments(
  segments: readonly { readonly segmentId: number; readonly bytes: Uint8Array }[],
  options: RecoveryOptions,
): RecoveryOutcome {
  const recovery = new Recovery(options);
  for (const { segmentId, bytes } of segments) {
    recovery.beginSegment(segmentId, bytes, bytes.length);
    const progress = recovery.scan(bytes.length);
    assert(progress === "done", "a segment that has been read whole is scanned whole");
  }
  return recovery.finish();
}
