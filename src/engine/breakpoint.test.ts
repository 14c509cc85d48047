/** A debugger that stops the process must not use up the plan's time. */

import inspector from "node:inspector";
import { afterEach, expect, it } from "vitest";
import { InProcessRun } from "../runner/testing/in-process-run.ts";
import { measure } from "../workflow/custom-result.ts";
import { workflow } from "../workflow/workflow.ts";

afterEach(() => {
  if (inspector.url() !== undefined) inspector.close();
});

/** As long as the plan: one stop would end it. */
const HELD_MS = 1_500;

function hold(): void {
  const until = performance.now() + HELD_MS;
  while (performance.now() < until);
}

async function iterationsWithOneHold(): Promise<number> {
  let held = false;
  const flow = workflow("w", { vus: 1, duration: "1s", pacing: "20ms" }).step("s", () => {
    if (!held) hold();
    held = true;
    return measure(() => 1);
  });
  const run = await InProcessRun.whole(flow);
  return run.workflow("w").iterations;
}

it("stops the plan's clock at a breakpoint, and only there", async () => {
  expect(await iterationsWithOneHold()).toBeLessThanOrEqual(2);
  inspector.open(0, "127.0.0.1");
  expect(await iterationsWithOneHold()).toBeGreaterThan(2);
});
