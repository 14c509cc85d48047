/** One iteration of a flow as a function, with canned answers and with a real server. */

import { expect, it } from "vitest";
import { startDemoTarget } from "../demo/server.ts";
import { http } from "../protocols/http1/index.ts";
import { http2 } from "../protocols/http2/index.ts";
import { feed } from "../workflow/feed.ts";
import { flow } from "../workflow/flow.ts";
import { once } from "./once.ts";

const shop = http.target("http://nobody.invalid");

const buy = flow(
  "buy",
  {
    data: { who: feed.rows([{ name: "ada" }]) },
    setup: async ({ step }) => ({
      room: (await step("make", shop.get<{ id: number }>("/make"))).json().id,
    }),
    userSetup: async ({ data, setup }) => ({ key: `${data.who.name} ${setup.room}` }),
  },
  async ({ check, pause, state, step }) => {
    const login = await step("login", http2.post<{ token: string }>("http://nobody.invalid/login"));
    check("has a token", () => login.json().token === state.key);
    await pause("1h");
    await step("count", () => 42);
    await step("pay", shop.post("/pay"), { required: true });
    await step("never", shop.get("/"));
  },
);

it("answers steps by name, without a network, and reports what happened", async () => {
  const { calls, checks, endedBy, outcome } = await once(buy, {
    answers: {
      make: { json: { id: 7 } },
      login: { json: { token: "ada 7" } },
      pay: { status: 503, body: "closed" },
    },
  });
  expect(outcome).toBe("ended");
  expect(endedBy).toBe("pay");
  expect(checks).toEqual([{ name: "has a token", passed: true }]);
  expect(calls.map(({ name, phase, result }) => [name, phase, result.ok, result.status])).toEqual([
    ["make", "setup", true, 200],
    ["login", null, true, 200],
    ["count", null, true, 0],
    ["pay", null, false, 503],
  ]);
});

it("takes rows instead of the feed's, and returns what the body threw", async () => {
  const { error, outcome } = await once(buy, {
    data: { who: { name: "bob" } },
    answers: { make: { json: { id: 7 } }, login: { body: "no JSON" }, pay: {} },
  });
  expect(outcome).toBe("failed");
  expect(String(error)).toMatch(/no answer for the step "never"/);
  const unanswered = await once(buy, { answers: { make: { json: { id: 7 } } } });
  expect(String(unanswered.error)).toMatch(/no answer for the step "login"/);
});

it("performs calls when no answers are given", async () => {
  const demo = await startDemoTarget({ port: 0 });
  const real = http.target(demo.url);
  const before = demo.stats().requests;
  const journey = flow("real", async ({ step }) => {
    await step(real.get("/"));
    await step("fails", real.get("/fail"));
  });
  const { calls, outcome } = await once(journey);
  expect(outcome).toBe("completed");
  expect(calls.map(({ name, result }) => [name, result.status])).toEqual([
    ["GET /", 200],
    ["fails", 500],
  ]);
  expect(demo.stats().requests - before).toBe(2);
  await demo.close();
});

it("rejects an unknown option", () => {
  const options: object = { answer: {} };
  expect(() => once(buy, options)).toThrow(
    'once: there is no option "answer"; did you mean "answers"?',
  );
});
