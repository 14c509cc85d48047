/** Compiler errors of flows: each line marked below must be an error, and none beside it. */

import { expect, expectTypeOf, it } from "vitest";
import { http } from "../protocols/http1/index.ts";
import { feed } from "./feed.ts";
import { flow } from "./flow.ts";
import type { FlowContext } from "./flow-context.ts";
import { mix } from "./mix.ts";

const shop = http.target("http://127.0.0.1:1");
const once = { vus: 1, iterations: 1 } as const;

it("types results by the declared answer of the call", () => {
  flow("f", once, async ({ poll, step }) => {
    const login = await step("login", shop.post<{ token: string }>("/login"));
    expectTypeOf(login.json()).toEqualTypeOf<{ token: string }>();
    const code = await step("code", async () => 42);
    expectTypeOf(code.value).toEqualTypeOf<number>();
    const call = () => shop.get<{ paid: boolean }>("/");
    const done = await poll("status", call, { until: (r) => r.json().paid });
    expectTypeOf(done?.json()).toEqualTypeOf<{ paid: boolean } | undefined>();
    const must = await poll("status", call, { until: (r) => r.json().paid, required: true });
    expectTypeOf(must.json()).toEqualTypeOf<{ paid: boolean }>();
  });
});

it("types rows, setup and state by their source", () => {
  flow(
    "f",
    {
      ...once,
      data: { account: feed.rows([{ user: "ada", age: 36 }]) },
      setup: async () => ({ room: 7 }),
      userSetup: async ({ data, setup }) => ({
        name: data.account.user,
        room: setup.room,
        said: 0,
      }),
    },
    async ({ data, setup, state }) => {
      expectTypeOf(data.account).toEqualTypeOf<{ user: string; age: number }>();
      expectTypeOf(setup).toEqualTypeOf<{ room: number }>();
      expectTypeOf(state).toEqualTypeOf<{ name: string; room: number; said: number }>();
      // @ts-expect-error there is no such column
      data.account.pasword;
      // @ts-expect-error there is no such feed
      data.acount;
      // @ts-expect-error the set-up gave no such value
      setup.rom;
    },
  );
});

it("rejects wrong arguments of a step", () => {
  flow("f", once, async ({ check, pause, step }) => {
    // @ts-expect-error a misspelt option of a step
    await step("x", shop.get("/"), { requried: true });
    // @ts-expect-error a step performs a description or code
    await step("x", 7);
    // @ts-expect-error a check returns true or false
    check("x", () => 1);
    // @ts-expect-error a duration is text or a number
    await pause({ seconds: 1 });
    // @ts-expect-error a target takes paths
    shop.get(7);
  });
  // @ts-expect-error a misspelt option of a flow
  expect(() => flow("f", { ...once, finsh: "iteration" }, async () => {})).toThrow(/finsh/);
});

it("rejects a description that is awaited, or returned from an async function", () => {
  const wrong = async (): Promise<void> => {
    // @ts-expect-error it sends nothing: await step("name", description)
    await shop.get("/");
  };
  // @ts-expect-error an async function cannot hand a description on
  const returned = async () => shop.get("/");
  return Promise.all([
    expect(wrong()).rejects.toThrow(/await step\("name", …\)/),
    expect(returned()).rejects.toThrow(/GET \/ is only described/),
  ]);
});

it("lets helpers take the context of any flow", () => {
  const login = async ({ step }: FlowContext, user: { name: string }) =>
    (await step("login", shop.post<{ token: string }>("/login", { json: user }))).json().token;
  flow("f", { ...once, data: { who: feed.rows([{ name: "ada" }]) } }, async (ctx) => {
    expectTypeOf(await login(ctx, ctx.data.who)).toEqualTypeOf<string>();
  });
});

it("rejects a mix of flows without weights", () => {
  const browse = flow("browse", async () => {});
  // @ts-expect-error each flow comes with its weight
  expect(() => mix([browse], { vus: 1, duration: "1s" })).toThrow(/weight/);
});
