import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type KnownNames,
  parseThreshold,
  THRESHOLD_METRICS,
  type Threshold,
} from "./thresholds.ts";

function parsed(text: string, known: KnownNames = {}): Threshold {
  const result = parseThreshold(text, known);
  if (!result.ok) throw new Error(`${text}: ${result.problem} at ${result.at}`);
  return result.threshold;
}

describe("parsing a threshold", () => {
  it.each<[string, string, Partial<Threshold>]>([
    [
      "latency.p99<200ms",
      "latency.p99 < 200ms",
      { metric: "latency", op: "<", value: 200, custom: false },
    ],
    [
      "latency{step=login}.p95<=1.5s",
      "latency{step=login}.p95 <= 1.5s",
      { tags: { step: "login" }, value: 1_500, unit: { kind: "duration", scale: 1_000 } },
    ],
    ["service.p50 < 20ms", "service.p50 < 20ms", { metric: "service" }],
    [
      "errors.rate < 1%",
      "errors.rate < 1%",
      { value: 0.01, unit: { kind: "percent", scale: 0.01 } },
    ],
    ["errors.rate < 0.01", "errors.rate < 0.01", { value: 0.01 }],
    ["errors.count < 10", "errors.count < 10", { value: 10 }],
    [
      "errors{kind=timeout}.count == 0",
      "errors{kind=timeout}.count == 0",
      { tags: { kind: "timeout" } },
    ],
    [
      "requests.rate > 1000/s",
      "requests.rate > 1000/s",
      { value: 1_000, unit: { kind: "perSecond", scale: 1 } },
    ],
    ["requests.rate > 1000", "requests.rate > 1000/s", { value: 1_000 }],
    [
      "requests.rate over 10s > 1e3/s",
      "requests.rate over 10s > 1e3/s",
      { overMs: 10_000, value: 1_000 },
    ],
    [
      "checks{check=is json}.rate > 95%".replace("is json", '"is json"'),
      'checks{check="is json"}.rate > 95%',
      {},
    ],
    ["checks.rate >= 99%", "checks.rate >= 99%", { value: 0.99 }],
    ["iterations.rate > 5", "iterations.rate > 5/s", {}],
    [
      "arrivals.missed == 0",
      "arrivals.missed == 0",
      { metric: "arrivals.missed", figure: { kind: "value" } },
    ],
    [
      "firstByte.p99.99 < 1m30s",
      "firstByte.p99.99 < 1m30s",
      { figure: { kind: "percentile", percent: 99.99 } },
    ],
    ["latency.p99_9 < 100ms", "latency.p99.9 < 100ms", { value: 100 }],
    ["latency.min > 0", "latency.min > 0ms", { value: 0 }],
    ["latency.avg < 3ms", "latency.mean < 3ms", {}],
    ["connect.max<5ms", "connect.max < 5ms", {}],
    ["generator.cpu < 90%", "generator.cpu < 90%", { metric: "generator.cpu" }],
    ["generator.lag.p99 < 50ms", "generator.lag.p99 < 50ms", { metric: "generator.lag" }],
    [
      "checkout.latency.p99 < 1s",
      "checkout.latency.p99 < 1s",
      { workflow: "checkout", metric: "latency" },
    ],
    ['"my flow".latency.p99 < 1s', '"my flow".latency.p99 < 1s', { workflow: "my flow" }],
    ["a.b.errors.rate < 1%", '"a.b".errors.rate < 1%', { workflow: "a.b", metric: "errors" }],
    [
      "cart_value.p95 < 30",
      "cart_value.p95 < 30",
      { metric: "cart_value", custom: true, value: 30 },
    ],
    ["orders.count > 5", "orders.count > 5", { custom: true }],
    ["hits.rate > 0.5", "hits.rate > 0.5", { custom: true, value: 0.5 }],
    [
      "shop.orders{a=1,b=x.y}.rate > 2/s",
      'shop.orders{a=1,b="x.y"}.rate > 2/s',
      { workflow: "shop", custom: true },
    ],
    ["temperature.last != -3.5", "temperature.last != -3.5", { value: -3.5 }],
    ['"request".count > 1', '"request".count > 1', { metric: "request", custom: true }],
  ])("%s", (text, expression, fields) => {
    const threshold = parsed(text);
    expect(threshold.expression).toBe(expression);
    expect(threshold).toMatchObject(fields);
    expect(parsed(expression)).toEqual(threshold);
  });

  it.each<[string, number, string]>([
    ["", 0, "expected a metric, such as latency.p99, but the text ends"],
    ["latency < 200ms", 7, '"latency" needs a metric and a figure, such as latency.p99'],
    ["requests > 5", 8, "such as requests.rate"],
    ["latency.p99 200ms", 12, 'expected a comparison (< <= > >= == !=) at "200ms"'],
    ["latency.p99", 11, "a comparison is missing"],
    ["latency.p99 = 200ms", 12, '"=" does not compare; write "=="'],
    ["latency.p99 <", 13, 'a value is missing after "<"'],
    ["latency.p99 < 200xs", 14, '"200xs" is not a duration'],
    ["latency.p99 < 1%", 14, 'percentage, but this is a time: write for example "200ms"'],
    ["latncy.p99 < 1s", 0, 'no metric is called "latncy"; did you mean "latency"?'],
    ["latency.p101 < 1s", 8, '"p101" is above p100'],
    ["latency.rate < 1s", 8, 'latency has no "rate"; it has min, mean, max, p50'],
    ["errors.rat < 1%", 7, 'errors has no "rat"; did you mean "rate"?'],
    ["errors.rate < 5", 14, "a share lies between 0 and 1; did you mean 5%?"],
    ["errors.rate < 5ms", 14, '"5ms" is a duration, but this is a share'],
    ["requests.count > many", 17, '"many" is not a number, but this is a plain number'],
    ["latency{step=login.p99 < 1s", 23, 'tags end with "}"'],
    ["latency{step}.p99 < 1s", 12, '"=" and a value must follow the tag "step"'],
    ["latency{step=}.p99 < 1s", 13, "a tag has a value"],
    ["latency.p99{step=a} < 1s", 8, "after the tags comes one figure"],
    ["constructor < 1", 11, '"constructor" needs a metric and a figure'],
    ["latency.p95 < 1", 14, '"1" has no unit; write 1ms or 1s'],
    ["latency.constructor < 1", 8, 'latency has no "constructor"'],
    ['"open.p99 < 1s', 0, "a quote is not closed"],
    ["latency.p99 over soon < 1s", 17, '"soon" is not a duration'],
    ["cart.p95 < cheap", 11, "use a number, a percentage, or a duration"],
  ])("rejects %s", (text, at, problem) => {
    const result = parseThreshold(text);
    if (result.ok) throw new Error(`accepted as ${result.threshold.expression}`);
    expect(result.problem).toContain(problem);
    expect(result.at).toBe(at);
  });

  it("checks names against what exists, when that is known", () => {
    const known = { workflows: ["browse", "checkout"], customMetrics: ["cart_value"] };
    expect(parsed("browse.cart_value.p95 < 3", known).workflow).toBe("browse");
    const problem = (text: string) => {
      const result = parseThreshold(text, known);
      return result.ok ? "" : result.problem;
    };
    expect(problem("brwose.latency.p99 < 1s")).toBe(
      'no workflow is called "brwose"; did you mean "browse"?',
    );
    expect(problem("login.latency.p99 < 1s")).toBe(
      'no workflow is called "login"; for a step write latency{step=login}',
    );
    expect(problem("cart_valu.p95 < 3")).toContain('did you mean "cart_value"?');
    expect(problem("zebra.p95 < 3")).toContain("there are: latency, service");
  });

  it("never throws, and a problem lies inside the text", () => {
    const piece = fc.oneof(
      fc.string({ maxLength: 4 }),
      fc.constantFrom(
        ...THRESHOLD_METRICS,
        ".",
        "{",
        "}",
        "=",
        "<",
        ">=",
        '"',
        " over ",
        "p99",
        "1s",
        "%",
        "/s",
        ",",
      ),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join("");
        const result = parseThreshold(text);
        if (result.ok) expect(parsed(result.threshold.expression)).toEqual(result.threshold);
        else expect(result.at <= text.length && result.at >= 0 && result.problem !== "").toBe(true);
      }),
      { numRuns: 2_000 },
    );
    expect(parseThreshold("x".repeat(5_000)).ok).toBe(false);
  });

  it("reads back what it wrote", () => {
    const name = fc.string({ minLength: 1, maxLength: 8 }).filter((text) => !text.includes('"'));
    const left = fc.record({
      workflow: fc.option(name),
      metric: fc.constantFrom("latency", "generator.lag", "service"),
      tags: fc.dictionary(name, name, { maxKeys: 3 }),
      figure: fc.constantFrom("p50", "p99.9", "max", "mean"),
    });
    const right = fc.record({
      over: fc.option(fc.integer({ min: 1, max: 9_999 })),
      op: fc.constantFrom("<", "<=", ">", ">=", "==", "!="),
      ms: fc.integer({ min: 0, max: 100_000 }),
    });
    fc.assert(
      fc.property(left, right, ({ workflow, metric, tags, figure }, { over, op, ms }) => {
        const pairs = Object.entries(tags).map(([key, value]) => `"${key}" = "${value}"`);
        const braces = pairs.length === 0 ? "" : `{ ${pairs.join(" , ")} }`;
        const head = workflow === null ? "" : `"${workflow}".`;
        const stretch = over === null ? "" : ` over ${over}s `;
        const threshold = parsed(`${head}${metric}${braces}.${figure}${stretch}${op}${ms}ms`);
        expect(threshold).toMatchObject({ workflow, metric, op, value: ms });
        expect({ ...threshold.tags }).toEqual({ ...tags });
        expect(parsed(threshold.expression)).toEqual(threshold);
      }),
    );
  });
});
