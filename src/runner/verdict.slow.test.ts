/** Outcome of a run, evaluated as by the command line: real cores, no processes. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { http } from "../protocols/http1/index.ts";
import { flow } from "../workflow/flow.ts";
import { counter } from "../workflow/metrics.ts";
import { mix } from "../workflow/mix.ts";
import { workflow } from "../workflow/workflow.ts";
import { InProcessRun } from "./testing/in-process-run.ts";

/** "/" answers at once, "/slow" after the given milliseconds, "/fail" with 500 until `failing` ends. */
let server: Server;
let url: string;
let failing = false;

beforeAll(async () => {
  server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://here");
    if (pathname === "/slow") {
      setTimeout(() => response.end("slow"), Number(searchParams.get("ms")));
      return;
    }
    response.statusCode = pathname === "/fail" && failing ? 500 : 200;
    response.end("ok");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

function outcome(run: InProcessRun, expression: string) {
  const found = run.summary().thresholds.find((one) => one.expression.includes(expression));
  if (found === undefined) throw new Error(`no threshold has ${expression}`);
  return found;
}

describe("thresholds over a stretch of time", () => {
  it("see failures at the very start", async () => {
    failing = true;
    const flow = workflow("w", {
      vus: 2,
      duration: "2s",
      pacing: "20ms",
      thresholds: ["errors.rate over 500ms < 5%"],
    }).step("s", http.get(`${url}/fail`));
    const run = await InProcessRun.start(flow);
    while (run.step("w", "s").failed === 0) await new Promise((later) => setTimeout(later, 10));
    failing = false;
    await run.done;
    expect(run.step("w", "s").failed).toBeGreaterThan(0);
    expect(outcome(run, "errors.rate")).toMatchObject({ passed: false });
  });

  it("have no value in a warm-up, before their workflow begins, and after it has finished", async () => {
    const paced = { vus: 5, pacing: "10ms" } as const;
    const thresholds = [{ threshold: "requests.rate over 500ms > 1/s", abortOnFail: true }];
    const first = workflow("first", { ...paced, duration: "1s", thresholds }).step(
      "s",
      http.get(url),
    );
    const second = workflow("second", { ...paced, duration: "1500ms", warmup: "1s", thresholds })
      .dependsOn("first")
      .step("s", http.get(url));
    const run = await InProcessRun.whole([first, second]);
    const { thresholds: judged, verdict, workflows } = run.summary();
    expect(judged.filter(({ passed }) => !passed)).toEqual([]);
    expect(workflows.map(({ status }) => status)).toEqual(["completed", "completed"]);
    expect(verdict).toBe("passed");
  });
});

describe("rates", () => {
  it("count what ended inside the measured time, and windows add up to them", async () => {
    const flow = workflow("w", { vus: 10, duration: "1s" }).step(
      "s",
      http.get(`${url}/slow?ms=700`),
    );
    const run = await InProcessRun.whole(flow);
    const { elapsedSeconds, steps } = run.summary().workflows[0] ?? {
      elapsedSeconds: 0,
      steps: [],
    };
    const [step] = steps;
    expect(elapsedSeconds).toBe(1);
    // Each user makes two calls at most; the second cannot end before 1.4 s.
    expect(step?.requests).toBeGreaterThanOrEqual(10);
    expect(step?.latencyMs.count).toBe(step?.requests);
    expect(step?.ratePerSecond).toBeLessThanOrEqual(10);
    const inWindows = step?.series.requests.reduce((sum, count) => sum + count, 0);
    expect(inWindows).toBe(step?.ratePerSecond);
  });
});

const failed = (run: InProcessRun): string[] =>
  run
    .summary()
    .thresholds.filter(({ passed }) => !passed)
    .map(({ actualText, expression }) => `${expression}: ${actualText}`);

describe("a run does not pass", () => {
  it("that measured nothing: all its iterations were in the warm-up", async () => {
    const flow = workflow("w", { vus: 1, iterations: 3, warmup: "20s", maxDuration: "1s" }).step(
      "s",
      http.get(url),
    );
    const run = await InProcessRun.whole(flow);
    expect(run.step("w", "s").requests).toBe(0);
    expect(failed(run)).toEqual(["every step was measured: nothing was measured"]);
    expect(run.summary().verdict).toBe("failed");
  });

  it("when one step was never reached, though no error was found", async () => {
    const flow = workflow("w", { vus: 1, duration: "200ms", thresholds: ["errors.count == 0"] })
      .step("first", http.get(`${url}/slow?ms=400`))
      .step("never", { after: ["first"] }, http.get(url));
    const run = await InProcessRun.whole(flow);
    expect(failed(run)).toEqual([
      'every step was measured: nothing was measured of "never"',
      "iterations.count >= 1: the end of the run cut off all 1",
    ]);
  });

  it("when every call of one step was cut off, though others succeeded", async () => {
    const load = { vus: 2, duration: "200ms", gracefulStop: "50ms" } as const;
    const flow = workflow("w", load)
      .step("first", http.get(url))
      .step("hangs", { after: ["first"] }, http.get(`${url}/slow?ms=30000`));
    const run = await InProcessRun.whole(flow);
    expect(run.step("w", "hangs").errors).toEqual({ unanswered: 2 });
    expect(failed(run)).toEqual([
      'every step succeeded at least once: none of 2 of "hangs"',
      "unanswered.rate <= 1%: 50 %, 2 of 4",
      "users.unanswered.rate <= 50%: 100 %, 2 of 2",
      "iterations.count >= 1: the end of the run cut off all 2",
    ]);
  });

  it("when more than 1 % of the arrivals were missed, unless a threshold allows it", async () => {
    const options = { rate: 100, duration: "500ms", maxVus: 1 } as const;
    const slow = http.get(`${url}/slow?ms=100`);
    const run = await InProcessRun.whole(workflow("w", options).step("s", slow));
    const { arrivals } = run.workflow("w").data();
    expect((arrivals?.started ?? 0) + (arrivals?.missed ?? 0)).toBe(50);
    expect(arrivals?.waited.count).toBe(arrivals?.missed);
    expect(failed(run)).toHaveLength(1);
    expect(failed(run)[0]).toMatch(/^arrivals\.missed\.rate <= 1%: \d/);
    const thresholds = ["arrivals.missed.rate < 99%", "latency.max > 300ms"];
    const allowed = workflow("w", { ...options, thresholds }).step("s", slow);
    expect(failed(await InProcessRun.whole(allowed))).toEqual([]);
  });

  it("for arrivals missed in the warm-up only in what is measured", async () => {
    const flow = workflow("w", { rate: 50, duration: "500ms", warmup: "500ms", maxVus: 1 }).step(
      "s",
      http.get(`${url}/slow?ms=2000`),
    );
    const run = await InProcessRun.whole(flow);
    const { arrivals } = run.workflow("w").data();
    // One began in the warm-up and kept the only user busy; the 25 that were measured never began.
    expect([arrivals?.started, arrivals?.missed]).toEqual([0, 25]);
    expect(run.workflow("w").iterations).toBe(0);
    expect(failed(run)).toContain("every step was measured: nothing was measured");
  });

  it.each([1, 2])("when userSetup threw, counted over %d cores", async (cores) => {
    const flow = workflow("w", { vus: 4, iterationsPerVu: 1 })
      .userSetup(() => {
        throw new Error("no account");
      })
      .step("s", http.get(url));
    const run = await InProcessRun.whole(flow, { cores });
    expect(failed(run)).toEqual([
      "no code beside the steps threw: userSetup threw: no account (4 times)",
    ]);
  });

  it("when the teardown of a flow of a mix threw; that of the others runs all the same", async () => {
    const tornDown: string[] = [];
    const part = (name: string) =>
      flow(
        name,
        {
          teardown: () => {
            tornDown.push(name);
            if (name === "first") throw new Error("still in use");
          },
        },
        async ({ step }) => {
          await step("s", http.get(url));
        },
      );
    const parts = [part("first").weight(1), part("second").weight(1)];
    const run = await InProcessRun.whole(mix(parts, { vus: 2, iterations: 4 }));
    expect(tornDown).toEqual(["first", "second"]);
    expect(failed(run)).toEqual(["no code beside the steps threw: teardown threw: still in use"]);
  });

  it("when code of a mix aborted it", async () => {
    const part = flow("part", async ({ abort, step }) => {
      await step("s", http.get(url));
      abort("enough");
    });
    const run = await InProcessRun.whole(mix([part.weight(1)], { vus: 1, duration: "1h" }));
    expect(run.summary().verdict).toBe("failed");
    expect(failed(run)[0]).toMatch(/^no code asked for the end: enough/);
  });

  it("when maxDuration cut its iterations off, on whichever cores", async () => {
    const flow = workflow("w", { vus: 2, iterations: 1_000, maxDuration: "300ms" }).step(
      "s",
      http.get(`${url}/slow?ms=50`),
    );
    const run = await InProcessRun.whole(flow, { cores: 2 });
    expect(failed(run)).toEqual([
      "every iteration was done: maxDuration (300ms) ended it before all iterations were done",
    ]);
  });

  it("when maxDuration cut the iterations of a mix off", async () => {
    const slow = flow("slow", async ({ step }) => {
      await step("s", http.get(`${url}/slow?ms=50`));
    });
    const load = { vus: 1, iterations: 1_000, maxDuration: "300ms" } as const;
    const run = await InProcessRun.whole(mix([slow.weight(1)], load));
    expect(failed(run)[0]).toMatch(/^every iteration was done: maxDuration \(300ms\) ended it/);
  });
});

it("reports 0 for a declared counter that was never incremented", async () => {
  counter("refused_orders");
  const flow = workflow("w", { vus: 1, iterations: 1, thresholds: ["refused_orders.count == 0"] });
  const run = await InProcessRun.whole(flow.step("s", http.get(url)));
  expect(failed(run)).toEqual([]);
});

it("does not fail a workflow because another one's target is down", async () => {
  const closed = createServer();
  await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
  const gone = `http://127.0.0.1:${(closed.address() as AddressInfo).port}/`;
  await new Promise((resolve) => closed.close(resolve));
  const load = { vus: 1, iterations: 1 } as const;
  const run = await InProcessRun.whole([
    workflow("first", load).step("s", http.get(gone)),
    workflow("second", load).step("s", http.get(url)),
  ]);
  const status = new Map(run.ended.map(([name, how]) => [name, how]));
  expect([status.get("first"), status.get("second")]).toEqual(["failed", "completed"]);
});

it("ends the workflow at once when a step returns nothing measured", async () => {
  // As in JavaScript, without a compiler error for the missing return.
  const careless = ((context: { http: typeof http }) => void context.http.get(url)) as () => never;
  const flow = workflow("w", { vus: 1, duration: "10m" }).step("s", careless);
  const run = await InProcessRun.whole(flow);
  expect(run.ended).toEqual([["w", "failed", expect.stringMatching(/step "s" returned nothing/)]]);
});
