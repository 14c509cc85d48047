// Any code can be a measured step: Node's own modules, any npm package. `measure` times a piece of
// work; a thrown error counts as a failure of kind "application". `setup` runs once per run,
// `userSetup` once per virtual user; neither is measured.

import { scrypt } from "node:crypto";
import { lookup } from "node:dns/promises";
import { promisify } from "node:util";
import { CustomResult, measure, workflow } from "hyperscalejs";

const derive = promisify(scrypt);

/** A result of one's own: what was measured, and a value for later steps. */
class QueueResult extends CustomResult<{ readonly depth: number }> {
  override readonly protocol = "queue";
}

export default workflow("custom-step", {
  vus: 2,
  duration: "10s",
  think: "20ms",
  thresholds: ["errors.rate < 1%"],
})
  .setup(() => ({ salt: "per-run" }))
  .userSetup(({ user, vars }) => {
    vars["secret"] = `secret-of-${user.id}`;
  })
  .step("hash", ({ setup, vars }) =>
    measure(() => derive(String(vars["secret"]), setup.salt, 32) as Promise<Buffer>),
  )
  .step("resolve", () => measure(() => lookup("localhost")))
  .step("queue", { after: ["hash"] }, async ({ results, sleep }) => {
    const startedAt = performance.now();
    await sleep(5);
    const depth = results.hash.value?.length ?? 0;
    return new QueueResult({ depth }, { startedAt, endedAt: performance.now(), bytesOut: depth });
  })
  .check("the hash has 32 bytes", ({ results }) => results.hash.value?.length === 32);
