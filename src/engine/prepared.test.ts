/** Preparation done once before the loop, so that the loop does none of it. */

import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type DemoTarget, startDemoTarget } from "../demo/server.ts";
import { http } from "../protocols/http1/index.ts";
import { prepareBeforeLoop } from "../protocols/protocol.ts";
import { InProcessRun } from "../runner/testing/in-process-run.ts";
import { measure } from "../workflow/custom-result.ts";
import { workflow } from "../workflow/workflow.ts";

let demo: DemoTarget;

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
});
afterAll(() => demo.close());

it("prepares every constant and call of all steps once, before anything is called (OPT-1)", async () => {
  const done: string[] = [];
  prepareBeforeLoop({
    prepare: async () => {
      await new Promise((resolve) => setImmediate(resolve));
      done.push("constant");
    },
  });
  const [shared, other] = [http.get(`${demo.url}/`), http.get(`${demo.url}/json`)];
  for (const [name, call] of [
    ["shared", shared],
    ["other", other],
  ] as const) {
    const prepare = call.prepare.bind(call);
    vi.spyOn(call, "prepare").mockImplementation(async (environment) => {
      await prepare(environment);
      done.push(name);
    });
  }
  const flow = workflow("w", { vus: 3, iterations: 30 })
    .step("first", shared)
    .step("second", { after: ["first"] }, shared)
    .step("third", { after: ["second"] }, other)
    .step("own", { after: ["third"] }, () => {
      done.push("called");
      return measure(() => 1);
    });
  const run = await InProcessRun.whole(flow);
  expect(run.step("w", "second").ok).toBe(30);
  expect(done.slice(0, 3).sort()).toEqual(["constant", "other", "shared"]);
  expect(done.slice(3)).toEqual(new Array(30).fill("called"));
});

it("begins to measure, and its duration, when everything is prepared (OPT-3)", async () => {
  let ready = false;
  const early: boolean[] = [];
  const call = http.get(`${demo.url}/`);
  const prepare = call.prepare.bind(call);
  vi.spyOn(call, "prepare").mockImplementation(async (environment) => {
    await prepare(environment);
    // Longer than the run lasts: nothing would be left of it.
    await new Promise((resolve) => setTimeout(resolve, 900));
    ready = true;
  });
  const flow = workflow("w", { vus: 1, duration: "300ms" })
    .step("called", call)
    .step("seen", { after: ["called"] }, () => {
      early.push(!ready);
      return measure(() => 1);
    });
  const run = await InProcessRun.whole(flow);
  expect(run.step("w", "called").requests).toBeGreaterThan(0);
  expect(early).not.toContain(true);
});

it("encodes nothing of a prepared request in the loop, however long it is (OPT-4)", async () => {
  const encoded = async (iterations: number): Promise<number> => {
    let read = 0;
    const json = {
      get value() {
        read++;
        return "x";
      },
    };
    const call = http.post(`${demo.url}/`, { json });
    const flow = workflow("w", { vus: 2, iterations }).step("post", call);
    const before = demo.stats().requests;
    const run = await InProcessRun.whole(flow);
    expect(run.step("w", "post").requests).toBe(iterations);
    expect(demo.stats().requests - before).toBeGreaterThanOrEqual(iterations);
    return read;
  };
  const once = await encoded(1);
  expect(once).toBeGreaterThan(0);
  expect(await encoded(200)).toBe(once);
});
