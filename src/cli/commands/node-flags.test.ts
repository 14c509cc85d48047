import { describe, expect, it } from "vitest";
import { checkWorkerConfig } from "../../nodes/worker/config.ts";
import { FLAGS_PLACE, flagProblem } from "./node-flags.ts";

describe("a node started by flags", () => {
  it("reports missing or wrong flags by name", () => {
    const read = checkWorkerConfig(FLAGS_PLACE, { cores: 1, managers: [] });
    const problems = read.ok ? [] : read.problems.map(flagProblem);
    expect(problems).toEqual([
      "--name: is missing",
      "--join: at least one manager",
      "--data-dir: is missing",
    ]);
  });
});
