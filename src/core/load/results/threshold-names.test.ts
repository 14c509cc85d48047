import { expect, it } from "vitest";
import { manifest } from "../job/testing/manifest.ts";
import { unknownName } from "./threshold-names.ts";
import { parseThreshold } from "./thresholds.ts";

const step = (name: string, tags = {}) =>
  ({ name, kind: "step", protocol: "http", after: [], layer: 0, tags }) as const;

const manifests = [
  manifest("shop", {
    steps: [step("login", { area: "account" }), step("pay")],
    checks: ["is json"],
    metrics: [
      { name: "orders", kind: "counter" },
      { name: "size", kind: "trend" },
    ],
  }),
  manifest("journey", { flow: { patterns: ["item-*"], series: ["region"] } }),
  manifest("arriving", { corrected: true, steps: [step("home")] }),
];

/** Texts in a bundle with the body of the flow "journey". */
const written = ["home", "checkout", "pay", "/orders", "has an id"];
const texts = { has: (text: string) => written.includes(text), all: written };

function problem(text: string, declaredIn: string | null = null): string | null {
  const parsed = parseThreshold(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  return unknownName(parsed.threshold, declaredIn, {
    manifests,
    errorKinds: ["timeout", "status"],
    texts,
  });
}

it.each([
  "latency.p99 < 1s",
  "shop.latency{step=login,ok}.p99 < 1s",
  "latency{area=account}.p99 < 1s",
  "errors{kind=timeout,step=pay}.count == 0",
  'checks{check="is json"}.rate > 1%',
  "orders{any=thing}.count > 1",
  "size.p95 < 4",
  "arrivals.missed.rate < 1%",
  "generator.cpu < 90%",
  "duration.p95 < 1s",
  "journey.latency{step=home}.p95 < 1s",
  'journey.latency{step="POST /orders"}.p95 < 1s',
  "journey.latency{step=item-7}.p95 < 1s",
  "journey.latency{region=eu}.p95 < 1s",
  "journey.duration{group=checkout/pay,ok}.p95 < 1s",
  'journey.checks{check="has an id"}.rate > 1%',
])("%s can exist", (text) => expect(problem(text)).toBeNull());

it.each<[string, string | null, RegExp]>([
  ["latency{step=lgin}.p99 < 1s", "shop", /^no step is called "lgin"; did you mean "login"\?/],
  ["latency{step=home}.p99 < 1s", "shop", /^no step is called "home"; there are: login, pay/],
  ["shpo.latency.p99 < 1s", null, /^no workflow is called "shpo"; did you mean "shop"\?/],
  [
    "latency{aera=account}.p99 < 1s",
    null,
    /^no tag of a step is called "aera"; did you mean "area"/,
  ],
  ["latency{area=acount}.p99 < 1s", null, /^no area of a step is called "acount"; did you mean/],
  ["errors{kind=timout}.count == 0", null, /^no kind of error is called "timout"; did you mean/],
  ["latency{kind=timeout}.p99 < 1s", null, /^only errors have the tag "kind"/],
  ["checks{check=json}.rate > 1%", "shop", /^no check is called "json"/],
  ["latency{step=hmoe}.p95 < 1s", "journey", /^no step is called "hmoe"; did you mean "home"\?/],
  ["duration{group=chekout/pay}.p95 < 1s", "journey", /no group is called "chekout\/pay"/],
  ["duration{group=pay}.p95 < 1s", "shop", /^no group is called "pay"; there is none/],
  ["duration{step=home}.p95 < 1s", "journey", /^duration has no tag "step"; it has group and ok/],
  ["latency{step=item-}.p95 < 1s", "shop", /^no step is called/],
  ["iterations{step=login}.count > 1", null, /^iterations has no tag "step"/],
  ["failed.rate < 1%", null, /^no metric is called "failed"; there are: orders, size/],
  ["orders.p99 < 1", null, /^the counter "orders" has no p99; it has count, rate/],
  ["arrivals.missed == 0", "shop", /^there are no arrivals.missed: only open models/],
])("%s in %s cannot", (text, declaredIn, expected) => {
  expect(problem(text, declaredIn)).toMatch(expected);
});
