/** Work of the chaos run: a few milliseconds, sometimes longer, sometimes failing; answers with its attempt. */

import { setTimeout as sleep } from "node:timers/promises";
import { defineExecutors } from "hyperscale/queue";

export default defineExecutors({
  async work(input, context) {
    const { i } = input as { readonly i: number };
    await sleep(i % 97 === 0 ? 2_500 : i % 7);
    if (i % 53 === 0 && context.attempt === 1) throw new Error("the first attempt fails");
    return { attempt: context.attempt };
  },
});
