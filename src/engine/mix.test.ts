/** Mixes, driven through the real manager and cores. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../demo/server.ts";
import type { HttpTarget } from "../protocols/http/index.ts";
import { http } from "../protocols/http1/index.ts";
import { InProcessRun, until } from "../runner/testing/in-process-run.ts";
import { feed } from "../workflow/feed.ts";
import { flow } from "../workflow/flow.ts";
import { counter } from "../workflow/metrics.ts";
import { mix } from "../workflow/mix.ts";
import { workflowsOf } from "../workflow/module.ts";

let demo: DemoTarget;
let shop: HttpTarget<"http1">;

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
  shop = http.target(demo.url);
});
afterAll(() => demo.close());

const browse = () =>
  flow("browse", async ({ step }) => {
    await step("home", shop.get("/"));
  });
const buy = () =>
  flow("buy", async ({ step }) => {
    await step("home", shop.get("/"));
    await step("pay", shop.get("/slow?ms=20"));
  });

function begun(run: InProcessRun, name: string): number {
  const workflow = run.workflow(name);
  return ["completed", "ended", "failed", "interrupted"].reduce(
    (sum, outcome) => sum + workflow.outcome(outcome as "completed"),
    0,
  );
}

/** Arrivals planned for a flow: begun or missed. */
function due(run: InProcessRun, name: string): number {
  const arrivals = run.workflow(name).data().arrivals;
  return (arrivals?.started ?? 0) + (arrivals?.missed ?? 0);
}

describe("weights are shares of the iterations begun", () => {
  it.each([1, 2])("in an open model, on %s cores", async (cores) => {
    const before = demo.stats().requests;
    const thresholds = ["arrivals.missed.rate <= 100%"];
    const load = { rate: 200, duration: "1s", maxVus: 200 } as const;
    const options = { ...load, gracefulStop: "2m", thresholds } as const;
    const run = await InProcessRun.whole(mix([browse().weight(70), buy().weight(30)], options), {
      cores,
    });
    const [browsed, bought] = ["browse", "buy"].map((name) => due(run, name));
    expect((browsed ?? 0) + (bought ?? 0)).toBe(200);
    expect(Math.abs((bought ?? 0) - 60)).toBeLessThanOrEqual(cores);
    for (const name of ["browse", "buy"])
      expect(run.workflow(name).data().arrivals?.started).toBe(begun(run, name));
    const homes = run.step("browse", "home").ok + run.step("buy", "home").ok;
    expect(demo.stats().requests - before).toBe(homes + run.step("buy", "pay").ok);
  });

  it("in a closed model, though one flow takes longer", async () => {
    const options = { vus: 4, iterations: 100 };
    const run = await InProcessRun.whole(mix([browse().weight(3), buy().weight(1)], options));
    expect([begun(run, "browse"), begun(run, "buy")]).toEqual([75, 25]);
    const shared = "100 iterations shared by 4 virtual users, at most 1h";
    expect(run.summary().workflows.map(({ load }) => load)).toEqual([
      `${shared}, 75 % of the iterations`,
      `${shared}, 25 % of the iterations`,
    ]);
  });

  it("of arrivals without a free user, too", async () => {
    const slow = (name: string) =>
      flow(name, async ({ step }) => {
        await step("slow", shop.get("/slow?ms=400"));
      });
    const options = {
      rate: 50,
      duration: "1s",
      maxVus: 2,
      thresholds: ["arrivals.missed.rate <= 100%"],
    };
    const run = await InProcessRun.whole(mix([slow("a").weight(4), slow("b").weight(1)], options));
    expect(["a", "b"].map((name) => due(run, name))).toEqual([40, 10]);
    const waited = ["a", "b"].map((name) => run.workflow(name).data().arrivals?.waited.count);
    const missed = ["a", "b"].map((name) => run.workflow(name).data().arrivals?.missed);
    expect(waited).toEqual(missed);
  });
});

describe("a mix", () => {
  it("gives each flow users, rows, state and setup of its own", async () => {
    const seen = new Set<string>();
    const make = (name: string, letters: string[]) =>
      flow(
        name,
        {
          data: { row: feed.rows(letters.map((letter) => ({ letter }))) },
          setup: () => ({ of: name }),
          userSetup: ({ setup }) => ({ of: setup.of }),
        },
        async ({ data, setup, state, step }) => {
          seen.add(`${name} ${data.row.letter} ${setup.of} ${state.of}`);
          await step("x", () => 1);
        },
      );
    const options = { vus: 2, iterations: 20 };
    await InProcessRun.whole(
      mix([make("a", ["p"]).weight(1), make("b", ["q"]).weight(1)], options),
    );
    expect([...seen].sort()).toEqual(["a p a a", "b q b b"]);
  });

  it("evaluates its thresholds over all flows, and those of a flow over that flow", async () => {
    const failing = flow("failing", { thresholds: ["errors.rate < 50%"] }, async ({ step }) => {
      await step("x", shop.get("/fail"));
    });
    const options = {
      vus: 1,
      iterations: 10,
      thresholds: ["errors.rate < 20%", "browse.errors.rate < 1%", "requests.count == 10"],
    };
    const run = await InProcessRun.whole(mix([browse().weight(9), failing.weight(1)], options));
    const outcomes = run.summary().thresholds.filter(({ implicit }) => !implicit);
    expect(outcomes.map(({ actualText, passed }) => [passed, actualText])).toEqual([
      [true, "10 %"],
      [true, "0 %"],
      [true, "10"],
      [false, "100 %"],
    ]);
  });

  it("leaves out its warm-up, and ends when a flow has no rows left", async () => {
    const run = await InProcessRun.whole(
      mix([browse().weight(1), buy().weight(1)], {
        rate: 50,
        duration: "1s",
        warmup: "400ms",
        maxVus: 70,
      }),
    );
    expect(due(run, "browse") + due(run, "buy")).toBe(50);
    const once = flow(
      "once",
      { data: { row: feed.rows([1, 2, 3], { order: "once" }) } },
      async ({ step }) => {
        await step("x", () => 1);
      },
    );
    const over = await InProcessRun.whole(
      mix([once.weight(1), browse().weight(1)], { vus: 1, duration: "1m" }),
    );
    expect(begun(over, "once")).toBe(3);
    expect(over.notes.join()).toContain("ran out of rows");
  });

  it("fixes no number of users per flow: they are where the work is", async () => {
    const run = await InProcessRun.start(
      mix([browse().weight(1), buy().weight(1)], { vus: 4, duration: "1h" }),
    );
    await until(() => run.live().workflows.some(({ activeVus }) => activeVus > 0));
    expect(run.live().workflows.map(({ targetVus }) => targetVus)).toEqual([null, null]);
    run.stop();
    await run.done;
  });

  it("runs alone when it is the default export; flows beside it only by name", () => {
    const [first, second] = [browse(), buy()];
    const traffic = mix([first.weight(1)], { vus: 1, duration: "1s" });
    const names = (module: object, only?: string[]) =>
      workflowsOf(module, only).map(({ name }) => name);
    const file = { default: traffic, first, second };
    expect(names(file)).toEqual(["mix"]);
    expect(names(file, ["buy"])).toEqual(["buy"]);
    expect(names({ traffic, first, second })).toEqual(["buy", "mix"]);
    expect(() => names(file, ["bye"])).toThrow(/no exported workflow is called "bye".*"buy"/);
    expect(() => mix([first as never], { vus: 1, duration: "1s" })).toThrow(/browse\.weight\(95\)/);
    expect(() => workflowsOf({ default: mix([first.weight(1)], {}) })).toThrow(
      /load model is missing/,
    );
  });
});

it("attributes values of a metric to the flow that added them, to the end of its graceful stop", async () => {
  const orders = counter("orders");
  const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  const quick = flow("quick", async ({ step }) => {
    await step("look", () => rest(1));
    orders.add(1);
  });
  // Most of its iterations end after those of the other flow.
  const slow = flow("slow", { finish: "iteration" }, async ({ step }) => {
    await step("order", () => rest(400));
    orders.add(10);
  });
  const run = await InProcessRun.whole(
    mix([quick.weight(1), slow.weight(1)], {
      ...{ rate: 40, maxVus: 40, duration: "500ms", gracefulStop: "2m" },
      metrics: [orders],
      thresholds: ["quick.orders.count > 0", "slow.orders.count > 0", "orders.count > 0"],
    }),
  );
  const done = (name: string): number => run.workflow(name).outcome("completed");
  const [all, ofQuick, ofSlow] = ["orders", "quick.orders", "slow.orders"].map(
    (name) => run.summary().thresholds.find((one) => one.expression.startsWith(`${name}.`))?.actual,
  );
  expect(done("slow")).toBe(10);
  expect([ofQuick, ofSlow]).toEqual([done("quick"), 10 * done("slow")]);
  expect(all).toBe((ofQuick ?? 0) + (ofSlow ?? 0));
});
