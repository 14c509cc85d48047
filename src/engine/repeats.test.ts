/** A repeated command changes nothing, and is answered again. */

import { expect, it } from "vitest";
import { InProcessRun, until } from "../runner/testing/in-process-run.ts";
import { measure } from "../workflow/custom-result.ts";
import { workflow } from "../workflow/workflow.ts";

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

it("executes it once, while it is under way and after it has finished", async () => {
  let setups = 0;
  const flow = workflow("w", { vus: 2, iterationsPerVu: 10 })
    .setup(() => {
      setups++;
    })
    .step("s", async () => {
      await pause(20);
      return measure(() => 1);
    });
  const run = await InProcessRun.start(flow);
  const count = (kind: string): number =>
    run.events.filter(({ event }) => event.kind === kind).length;
  const [core] = run.cores;
  const again = (): void => {
    const share = { index: 0, count: 1, users: [2] };
    core?.handle({ kind: "prepare", execution: 0, workflow: "w", share, context: {} });
    core?.handle({ kind: "setup", execution: 0 });
    core?.handle({ kind: "start", execution: 0, setup: undefined, planMs: 0 });
  };
  await until(() => count("frame") > 0);
  again();
  expect([count("prepared"), count("setupDone"), count("finished")]).toEqual([2, 2, 0]);
  await run.done;
  expect(run.step("w", "s").requests).toBe(20);
  again();
  expect([count("finished"), setups]).toEqual([2, 1]);
});
