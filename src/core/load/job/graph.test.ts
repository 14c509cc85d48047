import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { descendantsOf, type GraphNode, layersOf } from "./graph.ts";

/** "b: a, x" reads: b comes after a and x. */
function graph(...lines: string[]): GraphNode[] {
  return lines.map((line) => {
    const [name = "", after = ""] = line.split(":");
    return {
      name: name.trim(),
      after: after
        .split(",")
        .map((part) => part.trim())
        .filter(Boolean),
    };
  });
}

describe("layers", () => {
  it.each([
    ["two roots", graph("a", "b"), [["a", "b"]]],
    [
      "a chain, whatever the order of declaration",
      graph("c: b", "a", "b: a"),
      [["a"], ["b"], ["c"]],
    ],
    [
      "a fork that joins again",
      graph(
        "authenticate",
        "getUsers: authenticate",
        "getConfig: authenticate",
        "processData: getUsers, getConfig",
      ),
      [["authenticate"], ["getUsers", "getConfig"], ["processData"]],
    ],
    ["the longest path, not the shortest", graph("A", "B: A", "C: A, B"), [["A"], ["B"], ["C"]]],
    [
      "workflows of a job",
      graph("Setup", "LoadTest", "Validate: LoadTest", "Report: Validate, LoadTest"),
      [["Setup", "LoadTest"], ["Validate"], ["Report"]],
    ],
    ["a name given twice in after", graph("a", "b: a, a"), [["a"], ["b"]]],
    ["nothing", [], []],
  ])("of %s", (_, nodes, layers) => {
    expect(layersOf(nodes)).toEqual({ ok: true, layers });
  });

  it("name the step, the unknown name and the one that was probably meant", () => {
    const result = layersOf(graph("login", "buy: logn"));
    expect(result).toMatchObject({
      ok: false,
      problem: "unknown",
      node: "buy",
      name: "logn",
      suggestion: "login",
    });
    expect(result).toHaveProperty(
      "message",
      'step "buy" waits for "logn", but no step has that name; did you mean "login"?',
    );
    expect(layersOf(graph("login", "buy: elephant"), "workflow")).toHaveProperty(
      "message",
      'workflow "buy" waits for "elephant", but no workflow has that name; there are: login',
    );
  });

  it("list a cycle, also one that other nodes depend on", () => {
    expect(layersOf(graph("start", "tail: b", "a: start, c", "b: a", "c: b"))).toEqual({
      ok: false,
      problem: "cycle",
      cycle: ["b", "a", "c", "b"],
      message: "steps wait for each other in a circle: b -> a -> c -> b",
    });
    expect(layersOf(graph("a: a"))).toMatchObject({ problem: "cycle", cycle: ["a", "a"] });
  });

  it("reject a name given to two steps", () => {
    expect(layersOf(graph("a", "b", "a"))).toMatchObject({
      ok: false,
      problem: "duplicate",
      node: "a",
    });
  });

  it("put every node behind its dependencies, and as early as they allow (DAG-4, DEP-2)", () => {
    const edges = fc.array(fc.tuple(fc.nat(14), fc.nat(14)), { maxLength: 40 });
    fc.assert(
      fc.property(edges, fc.boolean(), (pairs, acyclic) => {
        const nodes = Array.from({ length: 15 }, (_, i) => ({
          name: `n${i}`,
          after: pairs
            .filter(([to, from]) => to === i && (!acyclic || from < i))
            .map(([, from]) => `n${from}`),
        }));
        const result = layersOf(nodes);
        if (acyclic) expect(result.ok).toBe(true);
        if (!result.ok) {
          if (result.problem !== "cycle") throw new Error(result.message);
          // Every arrow of the reported cycle is a real one.
          for (let i = 0; i + 1 < result.cycle.length; i++) {
            const node = nodes.find(({ name }) => name === result.cycle[i]);
            expect(node?.after).toContain(result.cycle[i + 1]);
          }
          expect(result.cycle[0]).toBe(result.cycle.at(-1));
          return;
        }
        const at = new Map(
          result.layers.flatMap((names, layer) => names.map((name) => [name, layer])),
        );
        expect(at.size).toBe(15);
        for (const { name, after } of nodes) {
          const latest = Math.max(-1, ...after.map((before) => at.get(before) ?? 99));
          expect(at.get(name)).toBe(latest + 1);
        }
      }),
    );
  });
});

describe("descendants", () => {
  it("are all direct and indirect dependents", () => {
    const nodes = graph("a", "b: a", "c: b", "d", "e: d, c");
    expect(descendantsOf("a", nodes)).toEqual(["b", "c", "e"]);
    expect(descendantsOf("d", nodes)).toEqual(["e"]);
    expect(descendantsOf("e", nodes)).toEqual([]);
  });
});
