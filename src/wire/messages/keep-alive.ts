/** Keep-alive request on a silent connection, and its answer. */

import { bool, required, struct } from "../schema.ts";

export const keepAlive = struct<{ readonly answer: boolean }>("KeepAlive", {
  answer: required(1, bool),
});
