import { describe, expect, it } from "vitest";
import { QUEUE_LIMITS } from "./defaults.ts";
import { graphProblem } from "./graph.ts";

const graph = (tasks: Readonly<Record<string, readonly string[]>>) =>
  new Map(Object.entries(tasks));

describe("a graph of tasks", () => {
  it("accepts tasks that name each other in any order", () => {
    expect(graphProblem(graph({ d: ["b", "c"], b: ["a"], c: ["a"], a: [] }))).toBeUndefined();
  });

  it("is rejected with the cycle when tasks wait for each other", () => {
    expect(graphProblem(graph({ a: ["a"] }))).toMatch(/in a circle: a → a$/);
    const behind = { start: [], d: ["c"], a: ["start", "c"], b: ["a"], c: ["b"] };
    expect(graphProblem(graph(behind))).toMatch(/in a circle: c → b → a → c$/);
  });

  it("is rejected for unknown or missing names", () => {
    expect(graphProblem(graph({ a: ["toString"] }))).toMatch(/tasks\.a: .*"toString"/);
    expect(graphProblem(graph({ 12: [] }))).toMatch(/"12" is no name/);
    expect(graphProblem(graph({ __proto: [] }))).toMatch(/is no name/);
    expect(graphProblem(new Map())).toMatch(/at least one/);
  });

  it("is rejected above its bounds, and follows a chain of all its tasks", () => {
    const { graphTasksMax, graphEdgesMax } = QUEUE_LIMITS;
    const chain = new Map<string, string[]>();
    for (let i = 0; i < graphTasksMax; i++) chain.set(`t${i}`, i === 0 ? [] : [`t${i - 1}`]);
    expect(graphProblem(chain)).toBeUndefined();
    chain.set("t0", [`t${graphTasksMax - 1}`]);
    expect(graphProblem(chain)).toMatch(/circle: (t\d+ → ){10}… → t\d+$/);
    expect(graphProblem(chain.set("more", []))).toMatch(/at most 5000 tasks, and this one 5001/);
    const wide = new Map<string, readonly string[]>([["a", []]]);
    for (let i = 0; i <= graphEdgesMax / 1_000; i++) wide.set(`w${i}`, Array(1_000).fill("a"));
    expect(graphProblem(wide)).toMatch(/at most 20000 dependencies/);
  });
});
