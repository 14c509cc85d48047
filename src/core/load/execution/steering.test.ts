import { describe, expect, it } from "vitest";
import { type Running, RunningWorkflows } from "./running.ts";
import { Steering } from "./steering.ts";

const LOADING = {
  ...{ ending: false, level: null },
  manifest: { load: { kind: "vus" } },
} as Running;

describe("repeated controls of a core", () => {
  it("are empty when the run was not controlled", () => {
    expect(new Steering(new RunningWorkflows()).commands(LOADING, 7)).toEqual([]);
  });

  it("resume at the planned rate a core that missed everything after a pause and a scale", () => {
    const steering = new Steering(new RunningWorkflows());
    const repeated = (): unknown => steering.commands(LOADING, 7);
    steering.take({ kind: "pause" }, 100);
    steering.take({ kind: "scale", factor: 2 }, 100);
    expect(repeated()).toEqual([
      { kind: "scale", execution: 7, factor: 2 },
      { kind: "pause", execution: 7 },
    ]);
    steering.take({ kind: "resume" }, 200);
    steering.take({ kind: "scale", factor: 1 }, 200);
    expect(repeated()).toEqual([
      { kind: "scale", execution: 7, factor: 1 },
      { kind: "resume", execution: 7 },
    ]);
  });
});
