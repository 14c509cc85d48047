/** A question for a sign of life on a connection that has been silent, and the answer. */

import { bool, required, struct } from "../schema.ts";

export const keepAlive = struct<{ readonly answer: boolean }>("KeepAlive", {
  answer: required(1, bool),
});
