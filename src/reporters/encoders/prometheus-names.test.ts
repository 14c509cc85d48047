import { expect, it } from "vitest";
import { prometheusLabels } from "./prometheus-names.ts";

function labelsOf(run: Record<string, string>, own: Record<string, string>): string {
  return prometheusLabels(run, own)
    .map((pair) => pair.join("="))
    .join(" ");
}

it("gives every label a unique, valid Prometheus name, in order", () => {
  expect(labelsOf({ run: "r", "a-b": "1", a_b: "2" }, { step: "s", é: "3", ü: "4" })).toBe(
    "_=3 a_b=2 run=r step=s",
  );
  expect(labelsOf({ run: "r", "1st": "1", empty: "" }, { __name__: "x", "my.run": "2" })).toBe(
    "_1st=1 _name__=x my_run=2 run=r",
  );
});
