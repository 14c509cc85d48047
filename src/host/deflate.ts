/** Deflate from the platform, with inflation that stops at its bound. */

import { constants, deflateRawSync, inflateRawSync } from "node:zlib";
import type { Compressor } from "./ports/compressor.ts";

export const deflate: Compressor = {
  // Speed over size: payloads are sealed and sent once.
  deflate: (bytes) => deflateRawSync(bytes, { level: constants.Z_BEST_SPEED }),
  inflate: (bytes, lengthMax) => {
    if (lengthMax < 1) return null;
    try {
      return inflateRawSync(bytes, { maxOutputLength: lengthMax });
    } catch {
      // Damaged, or larger than declared: zlib stops at the bound and throws.
      return null;
    }
  },
};
