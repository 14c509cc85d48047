/**
 * Work of the chaos run: a few milliseconds, sometimes longer than a lease, sometimes failing once or for good. What
 * came in goes out again, so that the audit sees whether it came whole; with the attempt that answered.
 */

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { defineExecutors, NotRetryable } from "hyperscalejs/queue";

interface Work {
  readonly ms: number;
  readonly fate: "succeeds" | "fails once" | "fails";
  readonly text: string;
  readonly sha256: string;
}

export default defineExecutors({
  async work(input, context) {
    const { ms, fate, text, sha256 } = input as Work;
    await sleep(ms);
    if (createHash("sha256").update(text).digest("hex") !== sha256)
      throw new NotRetryable("the input is damaged");
    if (fate === "fails") throw new NotRetryable("it fails, as planned");
    if (fate === "fails once" && context.attempt === 1)
      throw new Error("it fails once, as planned");
    return { attempt: context.attempt, text };
  },
});
