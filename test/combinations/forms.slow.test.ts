/**
 * Both forms of a linear case give equal histograms. Time is virtual here: it advances only when everything waits for
 * it, so that every metric is exact, and the two forms must agree to the cell.
 */

import { afterAll, beforeAll, expect, it, vi } from "vitest";
import type { Flow } from "../../src/workflow/flow.ts";
import type { Workflow } from "../../src/workflow/workflow.ts";
import { combination, type Part, SLOW_SETUP_MS } from "./grammar.ts";

const DRAWS = 12;
const TIMERS = ["setTimeout", "setInterval", "setImmediate"] as const;
const realImmediate = setImmediate;

beforeAll(() => {
  const toFake = [...TIMERS, "clearTimeout", "clearInterval", "clearImmediate", "performance"];
  vi.useFakeTimers({ toFake: toFake as (typeof TIMERS)[number][] });
});
afterAll(() => {
  vi.useRealTimers();
});

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** How long a step takes: others for each iteration and each step. */
const takesMs = (iteration: number, step: string): number =>
  3 + ((iteration * 7 + step.charCodeAt(1) * 5) % 23);

/** Steps of a part, by layer. */
function layersOf({ layers, parallel }: Part): readonly string[][] {
  const beside = Array.from({ length: parallel - 1 }, (_, at) => `p${at + 1}`);
  return Array.from({ length: layers }, (_, at) => [`s${at}`, ...(at === 0 ? beside : [])]);
}

/** Sources are loaded when time is ours already: they hold on to the clock that they find. */
async function sources() {
  const { InProcessRun } = await import("../../src/runner/testing/in-process-run.ts");
  const { measure } = await import("../../src/workflow/custom-result.ts");
  const { flow } = await import("../../src/workflow/flow.ts");
  const { workflow } = await import("../../src/workflow/workflow.ts");
  const { optionsOf } = await import("./run.ts");
  return { InProcessRun, measure, flow, workflow, optionsOf };
}
type Sources = Awaited<ReturnType<typeof sources>>;

function asLayers(part: Part, { measure, optionsOf, workflow }: Sources): Workflow {
  const made = workflow("w", optionsOf(part)).userSetup(() => wait(setupMs(part)));
  const before = part.pauseFirstMs > 0 ? ["before"] : [];
  // Names are made here, so the typed chain cannot follow them.
  let chain = made as unknown as Chain;
  if (part.pauseFirstMs > 0)
    chain = chain.action("before", ({ sleep }) => sleep(part.pauseFirstMs));
  for (const [at, names] of layersOf(part).entries())
    for (const name of names) {
      const after = at === 0 ? before : (layersOf(part)[at - 1] ?? []);
      chain = chain.step(name, { after }, ({ user }) =>
        measure(() => wait(takesMs(user.iteration, name))),
      );
    }
  return chain as unknown as Workflow;
}

interface Chain {
  action(name: string, run: (context: { sleep(ms: number): Promise<void> }) => unknown): Chain;
  step(
    name: string,
    options: { readonly after: readonly string[] },
    run: (context: { readonly user: { readonly iteration: number } }) => unknown,
  ): Chain;
}

function asFlow(part: Part, { flow, optionsOf }: Sources): Flow {
  const own = { ...optionsOf(part), userSetup: () => wait(setupMs(part)) };
  return flow("w", own, async ({ pause, step, user }) => {
    if (part.pauseFirstMs > 0) await pause(part.pauseFirstMs);
    for (const names of layersOf(part))
      await Promise.all(names.map((name) => step(name, () => wait(takesMs(user.iteration, name)))));
  }) as Flow;
}

function setupMs({ userSetup }: Part): number {
  return userSetup === "slow" ? SLOW_SETUP_MS : 0;
}

/** Advances time to the next event whenever everything in progress is idle. */
async function figures(written: Workflow | Flow, { InProcessRun }: Sources): Promise<unknown> {
  let over = false;
  const run = InProcessRun.whole(written).finally(() => {
    over = true;
  });
  while (!over) {
    await new Promise((resolve) => realImmediate(resolve));
    await vi.advanceTimersToNextTimerAsync();
  }
  const [workflow] = (await run).summary().workflows;
  const steps = workflow?.steps.map(({ histogram, latencyMs, name, ok, requests, series }) => {
    const { p50, p95, p99, requests: calls } = series;
    return { name, requests, ok, latencyMs, histogram, series: { calls, p50, p95, p99 } };
  });
  return { steps, completed: workflow?.iterations.completed, arrivals: workflow?.arrivals };
}

const parts = Array.from({ length: DRAWS }, (_, at) => combination(`forms/${at}`).workflows[0]);

it.each(parts.map((part) => [JSON.stringify(part), part] as const))("%s", async (_, part) => {
  if (part === undefined) throw new Error("a combination has a workflow");
  const found = await sources();
  const layers = await figures(asLayers(part, found), found);
  expect(layers).toMatchObject({ steps: { length: layersOf(part).flat().length } });
  expect(await figures(asFlow(part, found), found)).toEqual(layers);
});
