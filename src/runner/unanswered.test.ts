/** Calls and iterations without an end when the run ends: evaluated as by the command line. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { http } from "../protocols/http1/index.ts";
import { flow } from "../workflow/flow.ts";
import { mix } from "../workflow/mix.ts";
import { workflow } from "../workflow/workflow.ts";
import { InProcessRun } from "./testing/in-process-run.ts";

/** Calls that the server answers before it hangs forever. */
const ANSWERED = 20;

let server: Server;
let url: string;
let arrived = 0;

beforeAll(async () => {
  server = createServer((request, response) => {
    if (request.url === "/hangs" && ++arrived > ANSWERED) return;
    response.end("ok");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  arrived = 0;
});

const open = { rate: 50, duration: "1s", gracefulStop: "400ms" } as const;
const closed = { vus: 25, duration: "1s", gracefulStop: "400ms", pacing: "100ms" } as const;

function failed(run: InProcessRun): string[] {
  return run
    .summary()
    .thresholds.filter(({ passed }) => !passed)
    .map(({ actualText, expression }) => `${expression}: ${actualText}`);
}

const oneFlow = (load: typeof open | typeof closed) =>
  flow("w", load, async ({ step }) => {
    await step("s", http.get(`${url}/hangs`));
  });
const oneWorkflow = (load: typeof open | typeof closed) =>
  workflow("w", load).step("s", http.get(`${url}/hangs`));
const oneFunction = (load: typeof open | typeof closed) =>
  workflow("w", load).step("s", ({ http }) => http.get(`${url}/hangs`));

describe("a target that hangs forever", () => {
  it.each([
    ["flow, open", oneFlow, open, 1],
    ["workflow, open, 2 cores", oneWorkflow, open, 2],
    ["function step, closed", oneFunction, closed, 1],
  ])("fails the run: %s", async (_, written, load, cores) => {
    const run = await InProcessRun.whole(written(load), { cores });
    const { errors, interrupted, ok, requests, totals } = run.step("w", "s");
    // On a busy machine a slow answer makes the youngest calls typical ones: they are cut off.
    const unanswered = arrived - ANSWERED - interrupted;
    expect(unanswered).toBeGreaterThan(4);
    expect({ errors, ok, requests }).toEqual({
      errors: { unanswered },
      ok: ANSWERED,
      requests: arrived - interrupted,
    });
    expect(totals.sent).toBe(arrived);
    // Each waited at least the graceful stop, which is its latency.
    expect(totals.latency.count).toBe(requests);
    expect(totals.latency.max).toBeGreaterThan(400_000);
    const [calls, ...users] = failed(run);
    expect(calls).toMatch(/^unanswered\.rate <= 1%: \d/);
    if (load === open) expect(users).toEqual([]);
    else expect(users).toEqual([expect.stringMatching(/^users\.unanswered\.rate <= 50%: \d/)]);
    expect(run.summary()).toMatchObject({ verdict: "failed" });
  });

  it("is an error in the last stretch of time, and in each flow of a mix", async () => {
    const load = { ...open, thresholds: ["errors.rate over 200ms < 1%"] as const };
    const run = await InProcessRun.whole(mix([oneFlow(open).weight(1)], load));
    expect(failed(run)).toEqual([
      expect.stringMatching(/^errors\.rate over 200ms < 1%: \d/),
      expect.stringMatching(/^unanswered\.rate <= 1%: \d/),
    ]);
  });

  it("passes when the run allows that many", async () => {
    const run = await InProcessRun.whole(oneFlow(open), { overrides: { unansweredMax: 1 } });
    expect(run.step("w", "s").errors["unanswered"]).toBeGreaterThan(4);
    expect(run.summary()).toMatchObject({ verdict: "passed" });
  });
});

describe("young calls that are cut off", () => {
  it("are interrupted, and in no rate, latency or duration", async () => {
    const load = { vus: 3, duration: "500ms", gracefulStop: 0 } as const;
    let begun = 0;
    // Users begin together: the first three take longer than any that is cut off.
    const written = flow("w", load, async ({ step }) => {
      const ms = begun++ < 3 ? 400 : 4_000;
      await step("s", () => new Promise((resolve) => setTimeout(resolve, ms)));
    });
    const run = await InProcessRun.whole(written);
    const { interrupted, requests } = run.step("w", "s");
    expect({ interrupted, requests }).toEqual({ interrupted: 3, requests: 3 });
    const [iterations] = run.summary().workflows.map((one) => one.iterations);
    expect(iterations).toMatchObject({ completed: 3, interrupted: 3 });
    expect(iterations?.durationMs?.count).toBe(3);
    expect(iterations?.activeMs?.count).toBe(3);
    expect(failed(run)).toEqual([]);
  });
});

describe("code that never returns", () => {
  const never = (): Promise<void> => new Promise(() => {});
  const load = { vus: 4, duration: "200ms", gracefulStop: "50ms" } as const;

  it("fails the run of a flow", async () => {
    const written = flow("w", load, async ({ step }) => {
      await step("s", http.get(url));
      await never();
    });
    expect(failed(await InProcessRun.whole(written))).toEqual([
      "users.unanswered.rate <= 50%: 100 %, 4 of 4",
      "iterations.unresolved.rate <= 1%: 100 %, 4 of 4",
    ]);
  });

  it("fails the run of a workflow", async () => {
    const written = workflow("w", load).step("s", http.get(url)).action("a", never);
    expect(failed(await InProcessRun.whole(written))).toEqual([
      "users.unanswered.rate <= 50%: 100 %, 4 of 4",
      "iterations.unresolved.rate <= 1%: 100 %, 4 of 4",
    ]);
  });

  it("is not reported where the body rests", async () => {
    const written = flow("w", { ...load, finish: "iteration" }, async ({ pause, step }) => {
      await step("s", http.get(url));
      await pause("30s");
    });
    const cutOff = "iterations.count >= 1: the end of the run cut off all 4";
    expect(failed(await InProcessRun.whole(written))).toEqual([cutOff]);
  });
});
