/** Calls that the function of a step makes and does not return: counted as steps of their own. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../demo/server.ts";
import "../protocols/graphql/index.ts";
import type { HttpClient } from "../protocols/http1/index.ts";
import "../protocols/http1/index.ts";
import "../protocols/websocket/index.ts";
import { InProcessRun } from "../runner/testing/in-process-run.ts";
import { measure } from "../workflow/custom-result.ts";
import { workflow } from "../workflow/workflow.ts";

let demo: DemoTarget;

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
});
afterAll(() => demo.close());

const single = { vus: 1, iterations: 1 } as const;

describe("calls that a step does not return", () => {
  for (const [model, load] of [
    ["closed", { vus: 4, iterationsPerVu: 5 }],
    ["open", { rate: 50, duration: "400ms", maxVus: 4 }],
    ["warmed up", { rate: 50, duration: "400ms", warmup: "200ms", maxVus: 4 }],
  ] as const)
    it(`are counted once with what was sent (${model}, two cores)`, async () => {
      const before = demo.stats().requests;
      const flow = workflow("w", load).step("buy", async ({ http }) => {
        await http.get(`${demo.url}/slow?ms=1`);
        await http.post(`${demo.url}/echo`, { body: "x" });
        return http.get(demo.url);
      });
      const run = await InProcessRun.whole(flow, { cores: 2 });
      const names = ["buy", "buy > GET /slow", "buy > POST /echo"];
      const steps = names.map((name) => run.step("w", name));
      const [buy] = steps;
      expect(buy?.ok).toBeGreaterThan(0);
      for (const { ok, totals } of steps.slice(1)) {
        // In open models an iteration may begin in the warm-up and go on in measured time.
        if (model === "warmed up") expect(ok).toBeGreaterThan(0);
        else expect([ok, totals.latency.count]).toEqual([buy?.ok, buy?.ok]);
      }
      const sent = steps.reduce((sum, { totals }) => sum + totals.sent, 0);
      expect(sent).toBe(demo.stats().requests - before);
      expect(run.notes).toEqual([]);
    });

  it("belong to the step that made them, also where two run side by side", async () => {
    const pair =
      (path: string) =>
      async ({ http }: { http: HttpClient }) => {
        await http.get(`${demo.url}/slow?ms=5`);
        return http.get(`${demo.url}${path}`);
      };
    const flow = workflow("w", { vus: 2, iterations: 6 })
      .step("a", pair("/"))
      .step("b", pair("/json"));
    const run = await InProcessRun.whole(flow);
    const counts = ["a", "b", "a > GET /slow", "b > GET /slow"].map((n) => run.step("w", n).ok);
    expect(counts).toEqual([6, 6, 6, 6]);
  });

  it("are failures when they fail; one returned by a later step is counted there alone", async () => {
    const flow = workflow("w", single)
      .step("first", async ({ http, vars }) => {
        vars["kept"] = await http.get(demo.url);
        await http.get(`${demo.url}/fail`);
        return measure(() => 1);
      })
      .step("later", { after: ["first"] }, ({ vars }) => vars["kept"] as never);
    const run = await InProcessRun.whole(flow);
    expect(run.step("w", "first > GET /fail").errors).toEqual({ status: 1 });
    expect(run.step("w", "later").ok).toBe(1);
    expect(run.workflow("w").steps.length).toBe(3);
  });

  it("are counted over a WebSocket or GraphQL, too; those of actions outside the iterations", async () => {
    const url = demo.url.replace("http", "ws");
    const flow = workflow("w", single)
      .action("log in", ({ http }) => http.get(demo.url))
      .step("talk", async ({ graphql, ws }) => {
        await graphql.query(`${demo.url}/graphql`, "{ user(id: 1) { id } }");
        await ws.connect(`${url}/ws`);
        await ws.request("x");
        return ws.close();
      });
    const run = await InProcessRun.whole(flow);
    for (const name of ["POST /graphql", "ws connect", "ws request"])
      expect(run.step("w", `talk > ${name}`).ok).toBe(1);
    expect(run.step("w", "talk").ok).toBe(1);
    const [aside] = run.workflow("w").data().aside;
    expect([aside?.name, aside?.tags, aside?.totals.ok]).toEqual(["GET /", { phase: "action" }, 1]);
    expect(run.notes).toEqual([]);
  });

  it("have at most 500 names, and none is lost beyond", async () => {
    const flow = workflow("w", { vus: 1, iterations: 520 }).step("id", async ({ http, user }) => {
      await http.get(`${demo.url}/bytes/${user.iteration}`);
      return measure(() => 1);
    });
    const run = await InProcessRun.whole(flow);
    const { steps } = run.workflow("w").data();
    expect(steps.length).toBeLessThanOrEqual(501);
    expect(steps.reduce((sum, { totals }) => sum + totals.requests, 0)).toBe(1_040);
  });
});
