/** What `run(…)` of a program is given and means nothing is refused before anything starts. */

import { expect, it } from "vitest";
import { run } from "./api.ts";
import type { RunOptions } from "./run-options.ts";

/** As JavaScript may give them. */
const refused = (options: object) =>
  run("flow.ts", options as RunOptions).summary.then(
    () => "it ran",
    (error: { readonly exitCode: number; readonly message: string }) =>
      `${error.exitCode}: ${error.message}`,
  );

it("an option that does not exist, with the one that was probably meant", async () => {
  expect(await refused({ vuss: 5 })).toBe('2: run: there is no option "vuss"; did you mean "vus"?');
  expect(await refused({ treshold: [] })).toBe(
    '2: run: there is no option "treshold"; did you mean "thresholds"?',
  );
  expect(await refused({ onFinish: () => {} })).toBe('2: run: there is no option "onFinish"');
});

it("a text where there is a list of them", async () => {
  expect(await refused({ thresholds: "errors.rate < 1%" })).toBe(
    "2: thresholds must be a list of texts",
  );
  expect(await refused({ only: "shop" })).toBe("2: only must be a list of texts");
});
