/** Definition of workflows, and run-time errors for their authors. */

import { describe, expect, it } from "vitest";
import { threadRange } from "../core/load/job/partition.ts";
import { http } from "../protocols/http1/index.ts";
import { CustomResult, measure } from "./custom-result.ts";
import { manifestOf } from "./definition.ts";
import { DefinitionError } from "./errors.ts";
import type { Feed } from "./feed.ts";
import { flow } from "./flow.ts";
import { mix } from "./mix.ts";
import { workflowsOf } from "./module.ts";
import type { WorkflowOptions } from "./options.ts";
import { type Workflow, workflow } from "./workflow.ts";

const load = { vus: 2, duration: "30s" } as const;
const home = http.get("http://127.0.0.1/");
/** As written by a JavaScript user, without type checks. */
const untyped = workflow as unknown as (...args: unknown[]) => Workflow;

describe("reports mistakes by name", () => {
  it.each<[string, unknown[], RegExp]>([
    ["no name", ["", load], /a workflow needs a name/],
    ["no options", ["a"], /workflow "a": options are missing/],
    [
      "VUs 0",
      ["a", { vus: 0, duration: "1s" }],
      /workflow "a": vus is 0; it must be a whole number/,
    ],
    ["half a user", ["a", { vus: 1.5, duration: "1s" }], /vus is 1.5/],
    ["no duration", ["a", { vus: 1 }], /workflow "a": duration is missing/],
    ["no users", ["a", { duration: "1s" }], /workflow "a": vus is missing/],
    [
      "a bad duration",
      ["a", { vus: 1, duration: "soon" }],
      /duration: "soon" is not a duration\. Use/,
    ],
    ["a bare number as text", ["a", { vus: 1, duration: "30" }], /did you mean "30s"\?/],
    ["a duration of zero", ["a", { vus: 1, duration: "0s" }], /duration must be more than zero/],
    [
      "a negative rate",
      ["a", { rate: -1, duration: "1s" }],
      /rate is -1; it must be a number above 0/,
    ],
    ["no stages", ["a", { stages: [] }], /stages is empty/],
    ["stages of nothing", ["a", { stages: [{ duration: "1s", vus: 0 }] }], /all stages are 0/],
    ["a bad stage", ["a", { stages: [{ duration: "x", vus: 1 }] }], /stages\[0\]\.duration: "x"/],
    [
      "a misspelt option",
      ["a", { ...load, tresholds: [] }],
      /no option "tresholds"; did you mean "thresholds"\?/,
    ],
    [
      "two load models",
      ["a", { rate: 1, iterations: 5, duration: "1s" }],
      /rate and iterations exclude each other/,
    ],
    [
      "users of an open model",
      ["a", { rate: 1, vus: 5, duration: "1s" }],
      /vus and rate exclude each other; maxVus/,
    ],
    [
      "think bounds the wrong way",
      ["a", { ...load, think: { min: "2s", max: "1s" } }],
      /think\.max is less/,
    ],
    ["an unknown priority", ["a", { ...load, priority: "urgent" }], /workflow "a": .*urgent/],
    [
      "a bad threshold",
      ["a", { ...load, thresholds: ["latency.p99 <"] }],
      /workflow "a": threshold "latency\.p99 <"/,
    ],
    [
      "a pool of nothing",
      ["a", { ...load, connections: "shared", sharedConnectionsMax: 0 }],
      /sharedConnectionsMax is 0/,
    ],
    ["a bad timeout", ["a", { ...load, timeout: "fast" }], /timeout: "fast" is not a duration/],
  ])("%s", (_name, args, message) => {
    expect(() => untyped(...args)).toThrow(message);
    expect(() => untyped(...args)).toThrow(DefinitionError);
  });

  it("in the builder", () => {
    const flow = (): Workflow => untyped("shop", load);
    expect(() => flow().step("", home)).toThrow(/workflow "shop": a step needs a name/);
    expect(() => flow().step("a", undefined as never)).toThrow(/step "a" needs .*, not undefined/);
    expect(() =>
      flow()
        .check("c", () => true)
        .check("c", () => true),
    ).toThrow(/two checks named "c"/);
    const give = (): unknown => 1;
    expect(() =>
      flow()
        .provide("k", { to: ["x"] }, give)
        .provide("k", { to: ["y"] }, give),
    ).toThrow(/"k" is provided twice/);
    const from = { from: ["x"], keys: {} };
    expect(() => flow().use("u", from).use("u", from)).toThrow(/"u" is used twice/);
    expect(() =>
      flow()
        .metric("m", "trend", () => 1)
        .metric("m", "trend", () => 2),
    ).toThrow(/two metrics named "m"/);
    expect(() => flow().metric("bad name", "trend", () => 1)).toThrow(/not a metric name/);
    expect(() => flow().metric("once_only", "trend", undefined as never)).toThrow(
      /needs a function/,
    );
    expect(() => flow().dependsOn(undefined as never)).toThrow(/dependsOn takes workflows/);
  });

  it("in what a file exports", () => {
    expect(() => workflowsOf({})).toThrow(/no flow or workflow is exported.*export default flow/s);
    expect(() => workflowsOf({ default: { vus: 1 }, helper: () => 1 })).toThrow(
      /no flow or workflow/,
    );
    expect(() =>
      workflowsOf({ a: workflow("x", load), b: workflow("y", load).step("s", home) }),
    ).toThrow(/workflow "x" has no steps/);
    const twice = {
      a: workflow("x", load).step("s", home),
      b: workflow("x", load).step("s", home),
    };
    expect(() => workflowsOf(twice)).toThrow(/two workflows are named "x"/);
    const [one, other] = [flow("x", async () => {}), flow("x", async () => {})];
    const mixed = mix([one.weight(1)], { ...load, name: "m" });
    expect(() => workflowsOf({ mixed, other })).toThrow(/two workflows are named "x"/);
    const second = mix([other.weight(1)], { ...load, name: "n" });
    expect(() => workflowsOf({ mixed, second })).toThrow(/two workflows are named "x"/);
    expect(() => workflowsOf({ mixed, one }, ["m", "x"])).toThrow(/mix "m" runs "x" already/);
    expect(workflowsOf({ mixed, one }, ["x"]).map(({ name }) => name)).toEqual(["x"]);
    expect(() => workflowsOf({ default: workflow("x", {}).step("s", home) })).toThrow(
      /workflow "x": vus and duration are missing/,
    );
  });
});

it("accepts a workflow exported twice, several, or a list, in the order of the file", () => {
  const [a, b, c] = ["a", "b", "c"].map((name) => workflow(name, load).step("s", home));
  const names = workflowsOf({ z: a, also: a, list: [c], b }).map(({ name }) => name);
  expect(names).toEqual(["a", "b", "c"]);
});

it("orders workflows as the file creates them, not by name", () => {
  const later = workflow("login", load).step("s", home);
  const last = workflow("browse", load).step("s", home);
  expect(workflowsOf({ browse: last, login: later }).map(({ name }) => name)).toEqual([
    "login",
    "browse",
  ]);
});

describe("classification (WF-1, WF-2)", () => {
  const pool = 8;
  const coresOf = (
    flow: Workflow<never, never, never, never> | Workflow,
  ): [boolean, number, number] => {
    const { isTest, priority } = manifestOf((flow as Workflow).definition);
    const { min, max } = isTest ? threadRange(priority, pool) : { min: 1, max: 1 };
    return [isTest, min, max];
  };
  const step = (name: string, options: WorkflowOptions): Workflow =>
    workflow(name, options).step("s", home) as unknown as Workflow;
  const action = (name: string, options: WorkflowOptions): Workflow =>
    workflow(name, options).action("a", () => undefined) as unknown as Workflow;

  it.each<[string, Workflow, boolean, number, number]>([
    [
      "step, priority high, vus 10000, 5m",
      step("t", { vus: 10_000, duration: "5m", priority: "high" }),
      true,
      6,
      8,
    ],
    [
      "step, priority normal, vus 50000",
      step("t", { vus: 50_000, duration: "1m", priority: "NORMAL" }),
      true,
      2,
      6,
    ],
    ["action returning nothing, vus 1, 30s", action("t", { vus: 1, duration: "30s" }), false, 1, 1],
    [
      "a plain object is an action's result, vus 1000, 1m",
      action("t", { vus: 1_000, duration: "1m" }),
      false,
      1,
      1,
    ],
    [
      "check or metric only beside actions, vus 10000",
      action("t", { vus: 10_000, duration: "1m", priority: "exclusive" })
        .check("c", () => true)
        .metric("classified", "counter", () => 1),
      false,
      1,
      1,
    ],
    [
      "one step plus any number of actions",
      workflow("t", { ...load, priority: "low" })
        .action("a", () => 1)
        .step("s", home)
        .action("b", () => 2) as unknown as Workflow,
      true,
      1,
      2,
    ],
  ])("%s", (_name, flow, isTest, min, max) => {
    expect(coresOf(flow)).toEqual([isTest, min, max]);
  });

  it("accepts results of any depth of subclass, and user-defined ones (WF-7)", async () => {
    class Ping extends CustomResult<string> {}
    class LoudPing extends Ping {}
    const result = new LoudPing("pong", { startedAt: 1, endedAt: 3 });
    expect([result instanceof CustomResult, result.durationMs, result.value]).toEqual([
      true,
      2,
      "pong",
    ]);
    const flow = workflow("t", load)
      .step("ping", () => result)
      .step("work", () => measure(() => 1));
    expect(manifestOf(flow.definition).isTest).toBe(true);
    const failed = await measure(() => Promise.reject(new Error("no")));
    expect([failed.errorKind, failed.error, failed.value]).toEqual([
      "application",
      "no",
      undefined,
    ]);
  });

  it("runs a workflow that measures nothing once, whatever its load says (C30-10)", () => {
    const { load: plan, warmupMs } = manifestOf(
      action("t", { vus: 50, duration: "30s", warmup: "5s" }).definition,
    );
    expect(plan).toEqual({ kind: "once", durationMsMax: 30_000 });
    expect(warmupMs).toBe(0);
  });
});

describe("the manifest", () => {
  it("is plain data with everything a manager must know (WF-6)", () => {
    const flow = workflow("shop", {
      rate: 100,
      duration: "1m30s",
      maxVus: 50,
      warmup: "5s",
      gracefulStop: "2s",
      priority: "High" as never,
      tags: { team: "web" },
      thresholds: [
        "errors.rate<1%",
        { threshold: "latency.p99 < 1s", abortOnFail: true, after: "10s" },
      ],
    })
      .dependsOn("auth")
      .use("token", { from: ["auth"], keys: { authToken: "" } })
      .step("authenticate", home)
      .step("getUsers", { after: ["authenticate"], tags: { kind: "read" } }, ({ http }) =>
        http.get("http://127.0.0.1/"),
      )
      .step("getConfig", { after: ["authenticate"] }, home)
      .action("process", { after: ["getUsers", "getConfig"] }, () => 1)
      .check("processed", () => true)
      .provide("count", { to: ["report"] }, () => 1);
    const manifest = manifestOf(flow.definition);
    expect(structuredClone(manifest)).toEqual(manifest);
    expect(manifest).toMatchObject({
      name: "shop",
      load: { kind: "rate", stages: [{ durationMs: 90_000, from: 100, to: 100 }], vusMax: 50 },
      warmupMs: 5_000,
      gracefulStopMs: 2_000,
      priority: "high",
      dependsOn: ["auth"],
      isTest: true,
      corrected: true,
      checks: ["processed"],
      provides: [{ key: "count", to: ["report"] }],
      uses: [{ name: "token", from: ["auth"], keys: ["authToken"] }],
      connectionsMax: 100,
    });
    expect(manifest.steps).toEqual([
      {
        name: "authenticate",
        kind: "step",
        protocol: "http",
        after: [],
        layer: 0,
        tags: { team: "web" },
      },
      {
        name: "getUsers",
        kind: "step",
        protocol: "function",
        after: ["authenticate"],
        layer: 1,
        tags: { team: "web", kind: "read" },
      },
      {
        name: "getConfig",
        kind: "step",
        protocol: "http",
        after: ["authenticate"],
        layer: 1,
        tags: { team: "web" },
      },
      {
        name: "process",
        kind: "action",
        protocol: "action",
        after: ["getUsers", "getConfig"],
        layer: 2,
        tags: { team: "web" },
      },
    ]);
    expect(manifest.thresholds).toEqual([
      { expression: "errors.rate < 1%", abortOnFail: false, afterMs: 0 },
      { expression: "latency.p99 < 1s", abortOnFail: true, afterMs: 10_000 },
    ]);
  });

  it.each<[string, WorkflowOptions, object]>([
    [
      "closed",
      { vus: 5, duration: "1s" },
      { kind: "vus", stages: [{ durationMs: 1_000, from: 5, to: 5 }] },
    ],
    [
      "stages",
      {
        stages: [
          { duration: "1s", vus: 10 },
          { duration: "2s", vus: 0 },
        ],
        startVus: 2,
      },
      {
        kind: "vus",
        stages: [
          { durationMs: 1_000, from: 2, to: 10 },
          { durationMs: 2_000, from: 10, to: 0 },
        ],
      },
    ],
    [
      "ramping rate, with a bound that follows from it",
      { rateStages: [{ duration: "10s", rate: 200 }] },
      { kind: "rate", stages: [{ durationMs: 10_000, from: 0, to: 200 }], vusMax: 400 },
    ],
    [
      "shared iterations, with no more users than iterations",
      { vus: 10, iterations: 3 },
      { kind: "shared", vus: 3, iterations: 3, durationMsMax: 3_600_000 },
    ],
    [
      "iterations per user",
      { vus: 3, iterationsPerVu: 7, maxDuration: "1m" },
      { kind: "perUser", vus: 3, iterations: 7, durationMsMax: 60_000 },
    ],
  ])("has the plan of its load model: %s", (_name, options, plan) => {
    expect(manifestOf(workflow("a", options).step("s", home).definition).load).toEqual(plan);
  });

  it("counts the connections of shared pools by their bound", () => {
    const flow = workflow("a", {
      ...load,
      vus: 1_000,
      connections: "shared",
      sharedConnectionsMax: 20,
    });
    expect(manifestOf(flow.step("s", home).definition).connectionsMax).toBe(20);
  });
});

describe("mistakes of JavaScript", () => {
  const load = { vus: 1, iterations: 1 } as const;
  const make = (options: object) => () => workflow("w", { ...load, ...options });

  it("are answered with what to write", () => {
    expect(make({ thresholds: "latency.p99 < 1s" })).toThrow("thresholds are a list");
    expect(make({ thresholds: { latency: "p99" } })).toThrow("thresholds are a list");
    const step = workflow("w", load).step("login", http.get("http://127.0.0.1/"));
    const after = "login" as unknown as readonly "login"[];
    const slip = () => step.step("next", { after }, http.get("http://127.0.0.1/"));
    expect(slip).toThrow('after is a list of names: after: ["login"]');
    const rows = [{ user: "ada" }] as unknown as Feed<unknown>;
    expect(() => workflow("w", load).data("user", rows)).toThrow("feed.rows([…])");
    expect(() => http.get("/users")).toThrow("has no host: write the whole URL");
  });

  it("distinguishes targets for the check of ports", () => {
    const two = workflow("w", { vus: 3, duration: "1s" })
      .step("a", http.get("http://127.0.0.1:8001/"))
      .step("b", http.get("http://127.0.0.1:8002/"))
      .step("c", { after: ["a"] }, ({ http }) => http.get("http://127.0.0.1:8003/"));
    expect(manifestOf(two.definition).targets).toEqual([
      { to: "127.0.0.1:8001", perUser: 1, perCore: 0 },
      { to: "127.0.0.1:8002", perUser: 1, perCore: 0 },
      { to: null, perUser: 1, perCore: 0 },
    ]);
  });
});
