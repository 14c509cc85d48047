import { describe, expect, it } from "vitest";
import { type Running, RunningWorkflows } from "./running.ts";
import { Steering } from "./steering.ts";

const LOADING = {
  ...{ ending: false, level: null },
  manifest: { load: { kind: "vus" } },
} as Running;

describe("what a core is told again", () => {
  it("is nothing when nobody has steered the run", () => {
    expect(new Steering(new RunningWorkflows()).commands(LOADING, 7)).toEqual([]);
  });

  it("lets one go on, as planned, that has heard of a pause and a scale and of nothing after", () => {
    const steering = new Steering(new RunningWorkflows());
    const told = (): unknown => steering.commands(LOADING, 7);
    steering.take({ kind: "pause" }, 100);
    steering.take({ kind: "scale", factor: 2 }, 100);
    expect(told()).toEqual([
      { kind: "scale", execution: 7, factor: 2 },
      { kind: "pause", execution: 7 },
    ]);
    steering.take({ kind: "resume" }, 200);
    steering.take({ kind: "scale", factor: 1 }, 200);
    expect(told()).toEqual([
      { kind: "scale", execution: 7, factor: 1 },
      { kind: "resume", execution: 7 },
    ]);
  });
});
