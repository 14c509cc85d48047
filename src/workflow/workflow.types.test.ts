/**
 * Compiler checks of a workflow. `@ts-expect-error` fails the type check when a mistake is accepted; the run-time half
 * of each case is what a JavaScript user sees.
 */

import { describe, expect, expectTypeOf, it } from "vitest";
import type { HttpResponse } from "../protocols/http/index.ts";
import { http } from "../protocols/http1/index.ts";
import type { CustomResult } from "./custom-result.ts";
import { measure } from "./custom-result.ts";
import { type CsvRow, feed } from "./feed.ts";
import { workflow } from "./workflow.ts";

const load = { vus: 1, duration: "1s" } as const;
const home = http.get("http://127.0.0.1/");

describe("the compiler and the run reject", () => {
  it("a step that waits for one of another workflow, or for a later one", () => {
    const flow = workflow("a", load).step("own", home);
    // @ts-expect-error "foreign" is no step of this workflow.
    expect(() => flow.step("next", { after: ["foreign"] }, home)).toThrow(
      'workflow "a": step "next" waits for "foreign", which is not a step of this workflow (known so far: own)',
    );
    // @ts-expect-error A step cannot wait for itself.
    expect(() => flow.step("self", { after: ["self"] }, home)).toThrow(/waits for "self"/);
  });

  it("a check that refers to an unknown step", () => {
    const flow = workflow("a", load).step("own", home);
    // @ts-expect-error "other" is no step of this workflow.
    expect(() => flow.check("c", { after: ["other"] }, () => true)).toThrow(
      /check "c" waits for "other"/,
    );
  });

  it("a duplicate name", () => {
    const flow = workflow("a", load).step("login", home);
    // @ts-expect-error "login" is already a step of this workflow.
    expect(() => flow.step("login", home)).toThrow(/two steps named "login"/);
    // @ts-expect-error Actions and steps share their names.
    expect(() => flow.action("login", () => 1)).toThrow(/"login" is the name of a step already/);
  });

  it("a step that is neither a request nor a function", () => {
    // @ts-expect-error A URL alone is no request.
    expect(() => workflow("a", load).step("x", "http://127.0.0.1/")).toThrow(
      /step "x" needs a prepared request or a function, not string/,
    );
    // @ts-expect-error An action is a function.
    expect(() => workflow("a", load).action("x", home)).toThrow(/action "x" needs a function/);
    // @ts-expect-error A check needs a function.
    expect(() => workflow("a", load).check("x", true)).toThrow(/check "x" needs a function/);
  });

  it("options of two load models at once, of which one would be ignored", () => {
    // @ts-expect-error A rate and a number of iterations exclude each other.
    expect(() => workflow("a", { rate: 5, duration: "1s", iterations: 5 })).toThrow(
      /rate and iterations exclude each other/,
    );
    // @ts-expect-error Iterations end by maxDuration.
    expect(() => workflow("a", { vus: 1, iterations: 5, duration: "1s" })).toThrow(
      /duration does not go with iterations; beside iterations there may be vus and maxDuration/,
    );
    // @ts-expect-error Only open models have a bound on users.
    expect(() => workflow("a", { ...load, maxVus: 5 })).toThrow(/maxVus does not go with vus/);
    // @ts-expect-error A bound alone is no model.
    expect(() => workflow("a", { maxVus: 5 })).toThrow(/maxVus needs a rate or stages beside it/);
    expect(() => workflow("a", { maxDuration: "1s" })).not.toThrow();
  });

  it("meaningless load options, where it can know", () => {
    // @ts-expect-error Users are a number.
    expect(() => workflow("a", { vus: "10", duration: "1s" })).toThrow(/vus is "10"/);
    // @ts-expect-error There is no such priority.
    expect(() => workflow("a", { ...load, priority: "urgent" })).toThrow(/urgent/);
    // @ts-expect-error There is no such cookie mode.
    expect(() => workflow("a", { ...load, cookies: "maybe" })).toThrow(/cookies is "maybe"/);
    // @ts-expect-error There is no such kind of connections.
    expect(() => workflow("a", { ...load, connections: "both" })).toThrow(/connections is "both"/);
  });
});

describe("the compiler rejects", () => {
  it("a result of a step that is not in `after`", () => {
    const flow = workflow("a", load).step("first", home).step("second", home);
    flow.step("third", { after: ["second"] }, ({ http, results }) => {
      expectTypeOf(results.second).toEqualTypeOf<HttpResponse>();
      // @ts-expect-error "first" is not in `after`.
      void results.first;
      return http.get("http://127.0.0.1/");
    });
    flow.step("root", ({ http, results }) => {
      // @ts-expect-error A step without `after` has no results.
      void results.second;
      return http.get("http://127.0.0.1/");
    });
  });

  it("a function that does not return a measured result", () => {
    const flow = workflow("a", load);
    // @ts-expect-error A plain object is not measured.
    flow.step("plain", () => ({ status: 200 }));
    // @ts-expect-error Nothing is not measured.
    flow.step("nothing", async ({ http }) => {
      await http.get("http://127.0.0.1/");
    });
    // @ts-expect-error A body is not a response.
    flow.step("body", async ({ http }) => (await http.get("http://127.0.0.1/")).json());
  });

  it("a check that is not true or false", () => {
    const flow = workflow("a", load).step("s", home);
    // @ts-expect-error A status is no verdict.
    flow.check("c", ({ results }) => results.s.status);
  });
});

describe("types are inferred", () => {
  it("for results of requests, functions, measured work and actions", () => {
    workflow("a", load)
      .step("get", home)
      .step("fn", ({ http }) => http.post("http://127.0.0.1/"))
      .step("own", () => measure(() => 42))
      .action("plain", () => ({ token: "t" }))
      .action("later", async () => [1, 2])
      .step("all", { after: ["get", "fn", "own", "plain", "later"] }, ({ http, results }) => {
        expectTypeOf(results.get).toEqualTypeOf<HttpResponse>();
        expectTypeOf(results.fn).toEqualTypeOf<HttpResponse>();
        expectTypeOf(results.own).toEqualTypeOf<CustomResult<number | undefined>>();
        expectTypeOf(results.plain).toEqualTypeOf<{ token: string }>();
        expectTypeOf(results.later).toEqualTypeOf<number[]>();
        return http.get("http://127.0.0.1/");
      })
      .check("c", ({ results }) => {
        expectTypeOf(results.all).toEqualTypeOf<HttpResponse>();
        return results.get.ok;
      });
  });

  it("for data, setup, and values of other workflows", () => {
    const provider = workflow("auth", load)
      .step("login", home)
      .provide("token", { to: ["b"] }, ({ last }) => {
        expectTypeOf(last.login).toEqualTypeOf<HttpResponse | undefined>();
        return last.login?.status ?? null;
      });
    workflow("b", load)
      .dependsOn(provider)
      .dependsOn("auth")
      .data("user", feed.csv("users.csv"))
      .data("n", feed.rows([1, 2, 3]))
      .use("auth", { from: ["auth"], keys: { token: "" } }, ({ token }) => `Bearer ${token}`)
      .use("raw", { from: ["auth"], keys: { token: null as string | null } })
      .setup(async ({ http }) => ({ id: (await http.get("http://127.0.0.1/")).status }))
      .step("s", ({ data, http, setup, used, user }) => {
        expectTypeOf(data.user).toEqualTypeOf<CsvRow>();
        expectTypeOf(data.n).toEqualTypeOf<number>();
        expectTypeOf(setup).toEqualTypeOf<{ id: number }>();
        expectTypeOf(used.auth).toEqualTypeOf<string>();
        expectTypeOf(used.raw).toEqualTypeOf<{ token: string | null }>();
        expectTypeOf(user.id).toEqualTypeOf<number>();
        return http.get("http://127.0.0.1/");
      })
      .teardown(({ setup }) => {
        expectTypeOf(setup).toEqualTypeOf<{ id: number }>();
      });
  });
});
