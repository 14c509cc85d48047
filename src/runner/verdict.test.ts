/** What a run comes to, judged as the command line judges it: real cores, no processes. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { http } from "../protocols/http1/index.ts";
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
  it("see what fails in the first moments", async () => {
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

  it("have no value in a warm-up, before their workflow begins, and after it has ended", async () => {
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
