/** GraphQL targets in flows, against the demo target and servers with arbitrary answers. */

import nodeHttp from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../demo/server.ts";
import { graphql } from "../protocols/graphql/index.ts";
import { InProcessRun } from "../runner/testing/in-process-run.ts";
import { flow } from "../workflow/flow.ts";
import type { FlowContext } from "../workflow/flow-context.ts";
import { workflow } from "../workflow/workflow.ts";
import { once } from "./once.ts";

const USER = "query User($id: ID!) { user(id: $id) { id name } }";
interface UserData {
  readonly user: { readonly id: string; readonly name: string };
}

let demo: DemoTarget;
let api: ReturnType<typeof graphql.target>;

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
  api = graphql.target(`${demo.url}/graphql`);
});
afterAll(() => demo.close());

/** A server that records the headers and always sends the same answer. */
async function serve(body: string) {
  const seen: nodeHttp.IncomingHttpHeaders[] = [];
  const server = nodeHttp.createServer((request, response) => {
    seen.push(request.headers);
    request.resume().on("end", () => response.end(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { url, seen, close };
}

describe("calls to a GraphQL target", () => {
  for (const [model, load] of [
    ["closed", { vus: 4, iterationsPerVu: 5 }],
    ["open", { rate: 50, duration: "400ms", maxVus: 4 }],
  ] as const)
    it(`are each counted once in ${model} models on two cores, with what was sent`, async () => {
      const before = demo.stats().requests;
      let iterations = 0;
      const body = async ({ step, user }: FlowContext): Promise<void> => {
        iterations++;
        const id = (user.iteration % 100) + 1;
        const named = await step("user", api.query<UserData>(USER, { id }));
        if (named.data.user.id !== String(id)) throw new Error("another user");
        await step(api.query<UserData>("query Other { user(id: 2) { name } }"));
      };
      const run = await InProcessRun.whole(flow("f", load, body), { cores: 2 });
      const [user, other] = ["user", "query Other"].map((name) => run.step("f", name));
      const completed = run.workflow("f").outcome("completed");
      expect(completed).toBeGreaterThan(0);
      expect(user?.ok).toBe(iterations);
      expect(other?.ok).toBe(completed);
      expect([user?.totals.sent, other?.totals.sent]).toEqual([user?.ok, other?.ok]);
      expect(demo.stats().requests - before).toBe(iterations + completed);
    });

  it("of the warm-up are sent and not measured", async () => {
    const load = { rate: 50, duration: "2s", maxVus: 4, warmup: "200ms" } as const;
    const before = demo.stats().requests;
    const body = async ({ step }: FlowContext): Promise<void> => {
      await step("user", api.query(USER, { id: 1 }));
    };
    const run = await InProcessRun.whole(flow("f", load, body), { cores: 2 });
    const { ok, totals } = run.step("f", "user");
    expect(totals.sent).toBe(demo.stats().requests - before);
    expect(ok).toBeGreaterThan(0);
    expect(ok).toBeLessThan(totals.sent);
  });

  it("end the iteration when the data of a failed one is read", async () => {
    const seen: unknown[] = [];
    const body = async ({ step, end }: FlowContext): Promise<void> => {
      const failed = await step("nobody", api.query<UserData>(USER, { id: 10_000 }));
      seen.push(failed.ok, failed.errorKind, failed.errors[0]?.message);
      seen.push(failed.data.user.name);
      end("not reached");
    };
    const run = await InProcessRun.whole(flow("f", { vus: 1, iterations: 2 }, body));
    expect(seen).toEqual([false, "application", "no user 10000", ...seen.slice(3)]);
    expect(seen.length).toBe(6);
    expect(run.step("f", "nobody").errors).toEqual({ application: 2 });
    expect(run.workflow("f").outcome("ended")).toBe(2);
    expect(run.notes.join()).toContain("2 iterations ended early, by: nobody");
  });

  it("fail when the answer has neither data nor errors", async () => {
    const server = await serve('{"data":null}');
    const target = graphql.target(server.url);
    const body = async ({ step }: FlowContext): Promise<void> => {
      void (await step("null", target.query<UserData>("{ user { id } }"))).data.user.id;
    };
    const run = await InProcessRun.whole(flow("f", { vus: 1, iterations: 1 }, body));
    server.close();
    expect(run.step("f", "null").errors).toEqual({ protocol: 1 });
    expect(run.workflow("f").outcome("ended")).toBe(1);
  });

  it("have the headers of the target, and of its narrowed copies", async () => {
    const server = await serve('{"data":{}}');
    const target = graphql.target(server.url, { headers: { "x-app": "1", accept: "text/json" } });
    const body = async ({ step }: FlowContext): Promise<void> => {
      await step("plain", target.query("{ a }"));
      await step(
        "me",
        target.with({ headers: { Authorization: "Bearer t" } }).mutation("mutation { b }"),
      );
    };
    await InProcessRun.whole(flow("f", { vus: 1, iterations: 1 }, body));
    server.close();
    expect(server.seen.map((one) => [one["x-app"], one.accept, one.authorization])).toEqual([
      ["1", "text/json", undefined],
      ["1", "text/json", "Bearer t"],
    ]);
  });

  it("throw the line to write when awaited without a step", async () => {
    const run = await InProcessRun.whole(
      flow("f", { vus: 1, iterations: 1 }, async () => {
        await (api.query(USER, { id: 1 }) as unknown as Promise<void>);
      }),
    );
    expect(run.workflow("f").outcome("failed")).toBe(1);
    expect(run.logs.join()).toMatch(/query User is only described.*await step\("name"/);
    const steps = workflow("w", { vus: 1, iterations: 1 }).step(
      "s",
      async () => api.query(USER, { id: 1 }) as never,
    );
    const stepsRun = await InProcessRun.whole(steps);
    expect(stepsRun.logs.join()).toMatch(/return graphql\.send\(…\) in a step of a workflow/);
  });

  it("accept canned answers, and can be a step of a workflow", async () => {
    const named = flow("f", async ({ check, step }) => {
      const { data } = await step("user", api.query<UserData>(USER, { id: 1 }));
      check("ada", () => data.user.name === "Ada");
    });
    const answers = { user: { json: { data: { user: { id: "1", name: "Ada" } } } } };
    const { checks, outcome } = await once(named, { answers });
    expect([outcome, checks]).toEqual(["completed", [{ name: "ada", passed: true }]]);
    const steps = workflow("w", { vus: 1, iterations: 3 })
      .step("made", api.query(USER, { id: 1 }))
      .step("sent", ({ graphql: client }) => client.send(api.query(USER, { id: 2 })));
    const run = await InProcessRun.whole(steps);
    expect([run.step("w", "made").ok, run.step("w", "sent").ok]).toEqual([3, 3]);
  });
});

it("validates documents, variables and kinds when they are written", () => {
  expect(() => api.query("mutation { a }")).toThrow(/use graphql\.mutation/);
  expect(() => api.query(USER)).toThrow(/"\$id" is required/);
  expect(() => graphql.target("http://x/graphql", { over: "spdy" as "http2" })).toThrow(/over:/);
});

it("lists a call with errors and its message among the samples", async () => {
  const server = await serve('{"errors":[{"message":"no such room"}]}');
  const room = graphql.target(server.url);
  const load = { vus: 1, iterations: 1, thresholds: ["errors.rate <= 100%"] } as const;
  const chat = flow("chat", load, async ({ step }) => {
    await step("enter", room.query("{ room }"));
  });
  const run = await InProcessRun.whole(chat);
  server.close();
  expect(run.summary().workflows[0]?.steps[0]?.samples).toMatchObject([
    { kind: "application", call: `POST ${server.url}`, text: "GraphQL error: no such room" },
  ]);
});
