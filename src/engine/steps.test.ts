/** The step graph and isolation of virtual users, driven through the real manager and cores. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../demo/server.ts";
import { http } from "../protocols/http1/index.ts";
import { InProcessRun, until } from "../runner/testing/in-process-run.ts";
import { CustomResult, measure } from "../workflow/custom-result.ts";
import { counter } from "../workflow/metrics.ts";
import { workflow } from "../workflow/workflow.ts";

let demo: DemoTarget;

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
});
afterAll(() => demo.close());

const once = { vus: 1, iterations: 1 } as const;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe("steps of one iteration (DAG-5)", () => {
  it("overlap inside a layer, and layers follow one another", async () => {
    const log: string[] = [];
    const traced = (name: string) => async (): Promise<CustomResult> => {
      log.push(`+${name}`);
      await pause(20);
      log.push(`-${name}`);
      return new CustomResult(name, { startedAt: 0, endedAt: 1 });
    };
    const flow = workflow("w", once)
      .step("authenticate", traced("authenticate"))
      .step("getUsers", { after: ["authenticate"] }, traced("getUsers"))
      .step("getConfig", { after: ["authenticate"] }, traced("getConfig"))
      .step("process", { after: ["getUsers", "getConfig"] }, traced("process"));
    await InProcessRun.whole(flow);
    expect(log.slice(0, 4)).toEqual(["+authenticate", "-authenticate", "+getUsers", "+getConfig"]);
    expect(log.slice(4, 6).sort()).toEqual(["-getConfig", "-getUsers"]);
    expect(log.slice(6)).toEqual(["+process", "-process"]);
  });

  it("run concurrently when two of them are roots, requests and functions alike", async () => {
    const before = demo.stats().connections;
    const flow = workflow("w", { vus: 1, iterations: 3 })
      .step("a", http.get(`${demo.url}/slow?ms=20`))
      .step("b", ({ http }) => http.get(`${demo.url}/slow?ms=20`));
    const run = await InProcessRun.whole(flow);
    expect([run.step("w", "a").ok, run.step("w", "b").ok]).toEqual([3, 3]);
    // Two at once need two connections; one is the probe before the run.
    expect(demo.stats().connections - before).toBe(3);
  });

  it("pass on results of all earlier layers they name, failed ones too, and of no others (VUC-3)", async () => {
    const seen: unknown[] = [];
    const flow = workflow("w", once)
      .step("fails", http.get(`${demo.url}/fail`))
      .step("throws", (): CustomResult => {
        throw new Error("as planned");
      })
      .action("middle", { after: ["fails"] }, ({ results }) => {
        seen.push(Object.keys(results));
        return "from the middle";
      })
      .step("last", { after: ["fails", "throws", "middle"] }, ({ results }) => {
        seen.push(results.fails.status, results.throws, results.middle);
        return measure(() => 1);
      });
    const run = await InProcessRun.whole(flow);
    expect(seen).toEqual([["fails"], 500, undefined, "from the middle"]);
    expect(run.step("w", "fails").errors).toEqual({ status: 1 });
    expect(run.step("w", "throws").errors).toEqual({ exception: 1 });
    expect(run.step("w", "last").ok).toBe(1);
  });

  it("measure the returned result, and count other calls beside it (STEP-2)", async () => {
    const before = demo.stats().requests;
    const flow = workflow("w", once).step("two calls", async ({ http }) => {
      const first = await http.get(`${demo.url}/slow?ms=40`);
      await http.get(demo.url);
      return first;
    });
    const run = await InProcessRun.whole(flow);
    expect(demo.stats().requests - before).toBe(2);
    expect(run.notes).toEqual([]);
    expect(run.step("w", "two calls > GET /").ok).toBe(1);
    const { ok, totals } = run.step("w", "two calls");
    expect(ok).toBe(1);
    expect(totals.latency.min).toBeGreaterThan(35_000);
  });

  it("fail with advice when they return no measured result", async () => {
    const flow = workflow("w", once)
      .step("plain", (() => ({ status: 200 })) as never)
      .step("nothing", (async () => undefined) as never);
    const run = await InProcessRun.whole(flow);
    expect(run.ended).toEqual([["w", "failed", expect.stringMatching(/step "plain" returned/)]]);
    expect(run.logs.join("\n")).toMatch(/step "plain" returned a plain object; a step must return/);
    expect(run.logs.join("\n")).toMatch(/step "nothing" returned nothing/);
  });

  it("fail the run when one returns nothing, with what it sent", async () => {
    const before = demo.stats().requests;
    const flow = workflow("w", { vus: 2, iterations: 2 }).step("nothing", (async ({
      http,
    }: {
      http: { get(url: string): Promise<unknown> };
    }) => {
      await http.get(demo.url);
    }) as never);
    const run = await InProcessRun.whole(flow);
    expect(run.ended).toEqual([["w", "failed", expect.stringMatching(/step "nothing" returned/)]]);
    const steps = run.workflow("w").data().steps;
    const sent = steps.reduce((sum, { totals }) => sum + totals.sent, 0);
    expect([sent, demo.stats().requests - before]).toEqual([2, 2]);
  });

  it("report the same mistake once, however often it happens", async () => {
    const flow = workflow("w", { vus: 5, iterations: 50 }).step("bad", () => {
      throw new TypeError("cannot do this");
    });
    const run = await InProcessRun.whole(flow);
    expect(run.step("w", "bad").errors).toEqual({ exception: 50 });
    expect(run.logs).toHaveLength(1);
    expect(run.logs[0]).toMatch(/step "bad" threw: cannot do this/);
  });
});

describe("virtual users", () => {
  // VUC-1
  it("see only their own results, 1,000 of them, and nothing of the previous iteration", async () => {
    const mixed: unknown[] = [];
    const stale: unknown[] = [];
    // All connect at once, in one process with their server: slow on a busy machine, and not what is tested here.
    const patience = { connectTimeout: "4m", firstByteTimeout: "4m", timeout: "4m" } as const;
    const flow = workflow("w", { vus: 1_000, iterationsPerVu: 2, ...patience })
      .step("nonce", async ({ http, results, user }) => {
        if (Object.keys(results).length > 0) stale.push({ ...results });
        return http.get(`${demo.url}/echo?user=${user.id}&round=${user.iteration}`);
      })
      .step("own", { after: ["nonce"] }, ({ results, user, vars }) => {
        const { query } = results.nonce.json<{ query: { user: string; round: string } }>();
        if (query.user !== String(user.id) || query.round !== String(user.iteration))
          mixed.push([query, user]);
        vars["rounds"] = Number(vars["rounds"] ?? 0) + 1;
        if (vars["rounds"] !== user.iteration + 1) mixed.push(vars);
        return measure(() => query);
      });
    const run = await InProcessRun.whole(flow, { cores: 2 });
    expect(mixed).toEqual([]);
    expect(stale).toEqual([]);
    expect(run.step("w", "own").ok).toBe(2_000);
  });

  it("are numbered uniquely over all cores", async () => {
    const ids: number[] = [];
    const flow = workflow("w", { vus: 11, iterationsPerVu: 1 }).action("id", ({ user }) => {
      ids.push(user.id);
    });
    await InProcessRun.whole(
      flow.step("s", () => measure(() => 1)),
      { cores: 3 },
    );
    expect(ids.sort((a, b) => a - b)).toEqual([...Array(11).keys()]);
  });

  it("continue when one of them throws (VU-5)", async () => {
    const flow = workflow("w", { vus: 10, iterationsPerVu: 20 }).step("s", ({ user }) => {
      if (user.id === 3) throw new Error("not me");
      return measure(() => user.id);
    });
    const run = await InProcessRun.whole(flow);
    expect(run.step("w", "s")).toMatchObject({ ok: 180, errors: { exception: 20 } });
  });

  it("do not starve the timers when they never wait", async () => {
    const flow = workflow("w", { vus: 50, duration: "300ms" }).step(
      "sync",
      () => new CustomResult(1, { startedAt: 0, endedAt: 0 }),
    );
    const run = await InProcessRun.whole(flow);
    expect(run.step("w", "sync").ok).toBeGreaterThan(50);
    expect(run.ended).toEqual([["w", "completed", null]]);
  });

  it("end with the run when they poll with sleep", async () => {
    const flow = workflow("w", { vus: 3, duration: "150ms", gracefulStop: "100ms" }).step(
      "poll",
      async ({ signal, sleep }) => {
        while (!signal.aborted) await sleep(10);
        return measure(() => 1);
      },
    );
    const run = await InProcessRun.whole(flow);
    const { interrupted, requests } = run.step("w", "poll");
    expect(requests + interrupted).toBe(3);
  });

  it("cost little while they are idle (VU-4)", async () => {
    let begun = 0;
    const flow = workflow("w", {
      vus: 20_000,
      duration: "5m",
      think: "5m",
      gracefulStop: 0,
    }).step("s", () => {
      begun++;
      return new CustomResult(1, { startedAt: 0, endedAt: 0 });
    });
    const before = process.memoryUsage().heapUsed;
    const run = await InProcessRun.start(flow);
    let most = 0;
    const timer = setInterval(() => {
      most = Math.max(most, process.memoryUsage().heapUsed);
    }, 100);
    await until(() => begun === 20_000);
    await new Promise((resolve) => setTimeout(resolve, 500));
    run.stop();
    await run.done;
    clearInterval(timer);
    expect(run.step("w", "s").ok).toBe(20_000);
    expect((most - before) / 20_000).toBeLessThan(8 * 1024);
  });
});

describe("checks and metrics", () => {
  it("count per iteration; a throw or anything but true is a failure", async () => {
    const flow = workflow("w", { vus: 1, iterations: 4 })
      .step("s", http.get(demo.url))
      .check("fine", ({ results }) => results.s.status === 200)
      .check("sometimes", ({ user }) => user.iteration % 2 === 0)
      .check("throws", () => {
        throw new Error("no");
      })
      .check("truthy is not true", (() => 1) as never);
    const run = await InProcessRun.whole(flow);
    expect(run.workflow("w").data().checks).toEqual([
      { name: "fine", passed: 4, failed: 0 },
      { name: "sometimes", passed: 2, failed: 2 },
      { name: "throws", passed: 0, failed: 4 },
      { name: "truthy is not true", passed: 0, failed: 4 },
    ]);
    expect(run.notes).toEqual([
      '"w": the check "truthy is not true" gave 1, which is not true: it counts as failed',
    ]);
  });

  it("note meaningless values: promises, values below zero, pauses of an open model", async () => {
    const debt = counter("debt");
    const flow = workflow("w", { rate: 100, duration: "50ms", think: "1s" })
      .step("s", () => {
        debt.add(-1);
        return measure(() => 1);
      })
      .check("later", (async () => true) as never);
    const run = await InProcessRun.whole(flow);
    expect(run.notes.toSorted()).toEqual([
      '"w": metric "debt" was given values below 0 or no numbers: left out',
      '"w": the check "later" gave a promise, which is not true: it counts as failed',
      '"w": think and pacing are without effect where a rate begins the iterations',
    ]);
  });

  it("take milliseconds in sleep", async () => {
    const flow = workflow("w", { vus: 1, iterations: 1 }).step("s", async ({ sleep }) => {
      await sleep("1s" as never);
      return measure(() => 1);
    });
    const run = await InProcessRun.whole(flow);
    expect(run.step("w", "s").errors).toEqual({ exception: 1 });
    expect(run.logs.join()).toContain('sleep takes milliseconds, such as sleep(1000), not "1s"');
  });

  it("run after the layer they refer to", async () => {
    const order: string[] = [];
    const flow = workflow("w", once)
      .step("a", async () => {
        order.push("a");
        return measure(() => 1);
      })
      .step("b", { after: ["a"] }, async () => {
        order.push("b");
        return measure(() => 1);
      })
      .check("of a", { after: ["a"] }, ({ results }) => {
        order.push("check a");
        return results.a.ok;
      })
      .check("at the end", () => {
        order.push("check end");
        return true;
      });
    await InProcessRun.whole(flow);
    expect(order).toEqual(["a", "check a", "b", "check end"]);
  });
});
