import { describe, expect, it } from "vitest";
import { codeRefusal } from "./permissions.ts";

describe("code of clients", () => {
  const loadtest = { executor: "loadtest", input: { bundle: "code" } };

  it.each([
    ["a task", loadtest],
    ["one of many", [{ tasks: [{ executor: "sleep" }, loadtest] }]],
    ["a member of a graph", { tasks: { a: loadtest } }],
    ["a member that is called executor", { tasks: { executor: loadtest } }],
    [
      "a member beside one that is called executor",
      { tasks: { executor: { executor: "x" }, a: loadtest } },
    ],
  ])("is rejected as %s", (_, params) => {
    expect(codeRefusal("client", params, false)).toMatch(/--client-bundles/);
    expect(codeRefusal("client", params, true)).toBeNull();
    expect(codeRefusal("operator", params, false)).toBeNull();
  });

  it.each([
    { executor: "sleep", input: { executor: "loadtest", input: { bundle: "data" } } },
    { executor: "loadtest", input: { file: "http://example.test/" } },
  ])("is not data of a task: %j", (params) => {
    expect(codeRefusal("client", params, false)).toBeNull();
  });
});
