/** Valid thresholds: accepted by the compiler and by the parser. */

import { expect, it } from "vitest";
import { http } from "../protocols/http1/index.ts";
import { flow } from "./flow.ts";
import { counter, gauge, rate, trend } from "./metrics.ts";
import { mix } from "./mix.ts";
import type { WorkflowOptions } from "./options.ts";
import { workflow } from "./workflow.ts";

const load = { vus: 1, duration: "1s" } as const;
const home = http.get("http://127.0.0.1/");

it("accepts every form of the grammar", () => {
  const { thresholds } = workflow("w", {
    ...load,
    thresholds: [
      "latency.p99 < 200ms",
      " latency.p99.9<=1.5s",
      "latency.p99_9 < 1s",
      "latency{step=login}.p95 < 1s",
      "latency{ok}.med < 1s",
      "latency{area=catalogue, step=login}.avg < 1s",
      "errors{kind=timeout}.count == 0",
      "errors.rate over 5s < 20%",
      "requests.rate\n over 10s > 1000/s",
      "duration{group=checkout/pay}.p99 < 2s",
      "arrivals.missed == 0",
      "arrivals.missed.rate <= 1%",
      "arrivals.lag.p99 < 50ms",
      "generator.cpu < 90%",
      "generator.lag.max < 20ms",
      "cart_value.p95 < 30",
      "cart_value.p99.9 < 30",
      "cart-value.last != 3",
      // A workflow, also one with dots or with the name of a metric.
      "checkout.latency.p99 < 1s",
      "checkout.arrivals.missed == 0",
      "checkout.cart_value.p99.9 < 1",
      "api.v2.latency.p99 < 1s",
      "requests.latency.p99 < 1s",
      '"my flow".latency.p99 < 1s',
      'checks{check="is json"}.rate > 99%',
      '"latencies".p99 < 3',
      { threshold: "latency.p99 < 1s", abortOnFail: true, after: "10s" },
    ],
  }).definition;
  expect(thresholds).toHaveLength(27);
});

it("accepts text that is no literal, and options written elsewhere", () => {
  const most: number = 250;
  const texts: string[] = ["errors.rate < 1%"];
  const options: WorkflowOptions = { ...load, thresholds: texts };
  const { definition } = flow(
    "f",
    { ...load, thresholds: [...texts, `latency.p99 < ${most}ms`] },
    async () => {},
  );
  expect(definition.thresholds).toHaveLength(2);
  expect(workflow("w", options).definition.thresholds).toHaveLength(1);
  const frozen = { ...load, thresholds: ["latency.p99 < 1s"] } as const;
  expect(workflow("w", { ...frozen }).definition.thresholds).toHaveLength(1);
});

it("accepts listed metrics, with the figures of their kind", () => {
  const list = [counter("sold"), gauge("stock"), rate("upsold"), trend("basket")] as const;
  const buy = flow("buy", async () => {});
  const { definition } = mix([buy.weight(1)], {
    ...load,
    metrics: list,
    thresholds: [
      "sold.count > 10",
      "buy.sold.rate > 1/s",
      "mix.stock.last >= 0",
      "upsold.rate > 5%",
      "basket.p99.9 < 30",
      "basket.mean < 10",
      "latency.p99 < 1s",
    ],
  });
  expect(definition.thresholds).toHaveLength(7);
});

it("names a mix by its own name", () => {
  const buy = flow("buy", async () => {});
  mix([buy.weight(1)], { ...load, name: "shop", thresholds: ["shop.latency.p99 < 1s"] });
  // @ts-expect-error its name is another one
  mix([buy.weight(1)], { ...load, name: "shop", thresholds: ["mix.latency.p99 < 1s"] });
});

it("accepts steps that are declared before", () => {
  const { definition } = workflow("w", { ...load, thresholds: ["errors.rate < 1%"] })
    .step("home", home)
    .thresholds("latency{step=home}.p99 < 1s", {
      threshold: "errors{step=home}.rate < 1%",
      abortOnFail: true,
    });
  expect(definition.thresholds.map(({ expression }) => expression)).toEqual([
    "errors.rate < 1%",
    "latency{step=home}.p99 < 1s",
    "errors{step=home}.rate < 1%",
  ]);
});

it("accepts metrics of the workflow itself, after their declaration", () => {
  const counted = workflow("w", { ...load, metrics: [] })
    .step("home", home)
    .metric("bytes", "trend", ({ results }) => results.home.bytesIn);
  expect(counted.thresholds("bytes.p99 < 100").definition.thresholds).toHaveLength(1);
  expect(() => counted.thresholds("bites.p99 < 100")).toThrow(/did you mean "bytes"/);
});

it("accepts metrics of counter(…) and similar functions", () => {
  for (const metrics of [["sold"], { sold: 1 }, [null]])
    expect(() => workflow("w", { ...load, metrics: metrics as never })).toThrow(
      'workflow "w": metrics are a list of those that it has: metrics: [counter("paid")]',
    );
});

it("rejects abortOnFail in a search", () => {
  const search = workflow("w", {
    breakpoint: { rate: { from: 1, to: 2 } },
    thresholds: ["errors.rate < 1%"],
  });
  expect(() => search.thresholds({ threshold: "latency.p99 < 1s", abortOnFail: true })).toThrow(
    "abortOnFail would end the search",
  );
});
