/** `sent` equals the server's own log, whichever code made the calls and however they ended. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../demo/server.ts";
import { http } from "../protocols/http1/index.ts";
import { InProcessRun, until } from "../runner/testing/in-process-run.ts";
import { measure } from "../workflow/custom-result.ts";
import type { WorkflowDefinition } from "../workflow/definition.ts";
import { flow } from "../workflow/flow.ts";
import { workflow } from "../workflow/workflow.ts";

let demo: DemoTarget;

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
});
afterAll(() => demo.close());

const never = "/slow?ms=60000";
/** Cuts off everything under way after a short time. */
const cut = { vus: 2, duration: "800ms", gracefulStop: "100ms" } as const;

/** Runs it, and returns the reported and the received number of requests. */
async function both(written: { readonly definition: WorkflowDefinition }) {
  const before = demo.stats().requests;
  const run = await InProcessRun.whole(written);
  const sent = run.summary().totals?.sent ?? 0;
  // Requests sent just before the end may not have been read yet.
  await until(() => demo.stats().requests - before >= sent);
  return { run, sent, received: demo.stats().requests - before };
}

/** Names and phases of calls outside the iterations, with the number sent. */
function asideOf(run: InProcessRun) {
  const { aside } = run.workflow("w").data();
  return aside.map(({ name, tags, totals }) => [name, tags["phase"], totals.sent]);
}

describe("sent", () => {
  it("includes calls of function steps that are cut off, returned or not", async () => {
    const { received, run, sent } = await both(
      workflow("w", cut).step("buy", async ({ http }) => {
        await http.get(demo.url);
        void http.get(`${demo.url}${never}`);
        return http.get(`${demo.url}${never}`);
      }),
    );
    expect(received).toBe(6);
    expect(sent).toBe(received);
    expect(run.step("w", "buy").errors).toEqual({ unanswered: 2 });
    expect(run.step("w", "buy").totals.sent).toBe(4);
  });

  it("includes calls that a function step did not await, when its user ends", async () => {
    const { received, sent } = await both(
      workflow("w", { vus: 1, iterations: 1 }).step("buy", async ({ http }) => {
        void http.get(`${demo.url}${never}`);
        return measure(() => http.get(demo.url));
      }),
    );
    expect([sent, received]).toEqual([2, 2]);
  });

  it("includes calls of all functions outside the steps of a workflow", async () => {
    const get =
      (path: string) =>
      async ({ http: client }: { http: { get(url: string): Promise<unknown> } }): Promise<void> => {
        await client.get(`${demo.url}${path}`);
      };
    const { received, run, sent } = await both(
      workflow("w", { vus: 2, iterationsPerVu: 1 })
        .setup(get("/json"))
        .userSetup(get("/users"))
        .action("prepare", get("/echo"))
        .step("home", { after: ["prepare"] }, http.get(demo.url))
        .userTeardown(get("/bytes/1"))
        .teardown(get("/bytes/2")),
    );
    expect(asideOf(run)).toEqual([
      ["GET /json", "setup", 1],
      ["GET /users", "userSetup", 2],
      ["GET /echo", "action", 2],
      ["GET /bytes/1", "userTeardown", 2],
      ["GET /bytes/2", "teardown", 1],
    ]);
    expect([sent, received]).toEqual([10, 10]);
    expect(run.notes).toEqual([]);
  });

  it("includes calls of all functions outside the body of a flow", async () => {
    const shop = http.target(demo.url);
    const { received, run, sent } = await both(
      flow(
        "w",
        {
          ...{ vus: 2, iterationsPerVu: 1 },
          setup: async ({ step }) => void (await step(shop.get("/json"))),
          userSetup: async ({ step }) => void (await step(shop.get("/users"))),
          userTeardown: async ({ step }) => void (await step(shop.get("/bytes/1"))),
          teardown: async ({ step }) => void (await step(shop.get("/bytes/2"))),
        },
        async ({ step }) => void (await step("home", shop.get("/"))),
      ),
    );
    expect(asideOf(run).map(([, phase, count]) => [phase, count])).toEqual([
      ["setup", 1],
      ["userSetup", 2],
      ["userTeardown", 2],
      ["teardown", 1],
    ]);
    expect([sent, received]).toEqual([8, 8]);
  });

  it("includes calls of a failing setup, of workflows and of flows", async () => {
    const fails = async (call: () => Promise<unknown>): Promise<void> => {
      await call();
      throw new Error("no stock");
    };
    const load = { vus: 1, iterations: 1 } as const;
    const shop = http.target(demo.url);
    const steps = await both(
      workflow("w", load)
        .setup(({ http: client }) => fails(() => client.get(demo.url)))
        .step("home", http.get(demo.url)),
    );
    expect([steps.sent, steps.received]).toEqual([1, 1]);
    const body = await both(
      flow(
        "w",
        { ...load, setup: ({ step }) => fails(async () => step(shop.get("/"))) },
        async ({ step }) => void (await step("home", shop.get("/"))),
      ),
    );
    expect([body.sent, body.received]).toEqual([1, 1]);
  });

  it("includes calls of userSetup under its name, also of a user that came too late to iterate", async () => {
    const { received, run, sent } = await both(
      workflow("w", { vus: 1, duration: "100ms" })
        .userSetup(async ({ http }) => void (await http.get(`${demo.url}/slow?ms=300`)))
        .step("home", http.get(demo.url))
        .userTeardown(async ({ http }) => void (await http.get(`${demo.url}/users`))),
    );
    expect([sent, received]).toEqual([2, 2]);
    expect(asideOf(run)).toEqual([
      ["GET /slow", "userSetup", 1],
      ["GET /users", "userTeardown", 1],
    ]);
  });

  it("includes calls of userSetup, userTeardown and teardown that are cut off", async () => {
    const shop = http.target(demo.url);
    const limits = { teardown: "100ms", userSetup: "60s", userTeardown: "60s" } as const;
    const stuck = await both(
      flow(
        "w",
        { ...cut, limits, userSetup: async ({ step }) => void (await step(shop.get(never))) },
        async ({ step }) => void (await step("home", shop.get("/"))),
      ),
    );
    expect([stuck.sent, stuck.received]).toEqual([2, 2]);
    const steps = await both(
      workflow("w", { ...cut, limits })
        .userSetup(async ({ http }) => void (await http.get(`${demo.url}${never}`)))
        .step("home", http.get(demo.url)),
    );
    expect([steps.sent, steps.received]).toEqual([2, 2]);
    const ends = await both(
      workflow("w", { ...cut, vus: 1, limits })
        .step("home", http.get(`${demo.url}/slow?ms=30`))
        .userTeardown(async ({ http }) => void (await http.get(`${demo.url}${never}`)))
        .teardown(async ({ http }) => void (await http.get(`${demo.url}${never}`))),
    );
    expect(ends.sent).toBe(ends.received);
    expect(asideOf(ends.run)).toEqual([
      ["GET /slow", "userTeardown", 1],
      ["GET /slow", "teardown", 1],
    ]);
    expect(ends.run.notes.join()).toContain(
      "userTeardown of 1 users did not run to its end: they were cut off in userTeardown (1)",
    );
  });
});

describe("users that are cut off", () => {
  it("skip their teardown, and the results say so", async () => {
    const torn: number[] = [];
    const run = await InProcessRun.whole(
      workflow("w", cut)
        .step("slow", http.get(`${demo.url}${never}`))
        .userTeardown(({ user }) => void torn.push(user.id)),
    );
    expect(torn).toEqual([]);
    expect(run.notes.join()).toContain(
      '"w": userTeardown of 2 users did not run to its end: they were cut off in an iteration (2)',
    );
  });
});
