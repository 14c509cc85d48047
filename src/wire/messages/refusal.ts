/** Answer to a stream message that a node does not carry out. */

import { ERROR_BYTES_MAX, ID_BYTES_MAX } from "../limits.ts";
import { nullable, optional, required, struct, text, uint } from "../schema.ts";

export const refusal = struct("Refusal", {
  code: required(1, text(ID_BYTES_MAX, 1)),
  text: required(2, text(ERROR_BYTES_MAX)),
  /** For overload: when to come again. (BEX-5) */
  retryAfterMs: optional(3, nullable(uint), null),
});
