import { expect, it } from "vitest";
import { planOf } from "./load-options.ts";

const rateOf = (rate: unknown): unknown => {
  const plan = planOf({ rate: rate as number, duration: "1m" }, "w");
  return plan.kind === "rate" ? plan.stages[0]?.to : plan.kind;
};

it("accepts a rate per second as a number, or as text with its unit", () => {
  expect([300, "300/s", "30/m", "30/min", "1.5/s", "36/h"].map(rateOf)).toEqual([
    300, 300, 0.5, 0.5, 1.5, 0.01,
  ]);
  const rateStages = [{ duration: "1s", rate: "120/m" }] as const;
  expect(planOf({ rateStages, startRate: "60/m" }, "w")).toMatchObject({
    stages: [{ from: 1, to: 2 }],
  });
  expect(planOf({ vus: 1, duration: "1s", maxRate: "60/m" }, "w")).toMatchObject({ rateMax: 1 });
  const rate = { from: "60/min", to: "100/s" } as const;
  expect(planOf({ breakpoint: { rate } }, "w")).toMatchObject({ from: 1, to: 100 });
});

it("rejects anything else with what to write", () => {
  for (const wrong of ["300", "300/d", "0/s", "-1/s", "x/s", ""])
    expect(() => rateOf(wrong)).toThrow(
      /w: rate is .*above 0 \(per second\), or text such as "300\/s"/,
    );
  const rate = { from: 1, to: "100" as unknown as number };
  expect(() => planOf({ breakpoint: { rate } }, "w")).toThrow(
    'w: breakpoint.rate.to is "100"; it must be a number above 0 (per second), or text such as "300/s"',
  );
  const stages = [{ duration: "1s", vus: "5/s" as unknown as number }] as const;
  expect(() => planOf({ stages }, "w")).toThrow(/stages\[0\]\.vus is 5\/s/);
});
