/** Meaningless options of `run(…)` are rejected before anything starts. */

import { expect, it } from "vitest";
import { run } from "./api.ts";
import type { RunOptions } from "./run-options.ts";

/** As JavaScript may pass them. */
const refused = (options: object) =>
  run("flow.ts", options as RunOptions).summary.then(
    () => "it ran",
    (error: { readonly exitCode: number; readonly message: string }) =>
      `${error.exitCode}: ${error.message}`,
  );

it("rejects an unknown option, with the one that was probably meant", async () => {
  expect(await refused({ vuss: 5 })).toBe('2: run: there is no option "vuss"; did you mean "vus"?');
  expect(await refused({ treshold: [] })).toBe(
    '2: run: there is no option "treshold"; did you mean "thresholds"?',
  );
  expect(await refused({ onFinish: () => {} })).toBe('2: run: there is no option "onFinish"');
});

it("rejects a text where a list is expected", async () => {
  expect(await refused({ thresholds: "errors.rate < 1%" })).toBe(
    "2: thresholds must be a list of texts",
  );
  expect(await refused({ only: "shop" })).toBe("2: only must be a list of texts");
});
