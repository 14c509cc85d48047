import { describe, expect, it } from "vitest";
import { validateManifests } from "./manifest.ts";
import { manifest } from "./testing/manifest.ts";

const step = (name: string, ...after: string[]) => ({
  name,
  kind: "step" as const,
  protocol: "http",
  after,
  layer: 0,
  tags: {},
});

describe("validation of a job", () => {
  it("finds nothing in a valid one", () => {
    const jobs = [
      manifest("auth", { provides: [{ key: "token", to: ["load"] }] }),
      manifest("load", {
        dependsOn: ["auth"],
        uses: [{ name: "session", from: ["auth"], keys: ["token"] }],
        steps: [step("a"), step("b", "a")],
      }),
    ];
    expect(validateManifests(jobs)).toEqual([]);
  });

  it.each([
    ["two of a name", [manifest("a"), manifest("a")], "a", 'two workflows are called "a"'],
    [
      "an unknown dependency",
      [manifest("auth"), manifest("b", { dependsOn: ["auht"] })],
      "b",
      'did you mean "auth"',
    ],
    [
      "a circle",
      [manifest("a", { dependsOn: ["b"] }), manifest("b", { dependsOn: ["a"] })],
      "a",
      "a -> b -> a",
    ],
    [
      "an unknown step",
      [manifest("w", { steps: [step("login"), step("buy", "logn")] })],
      "w",
      'workflow "w": step "buy" waits for "logn"',
    ],
  ])("rejects %s (WF-8)", (_, list, workflow, part) => {
    const problems = validateManifests(list);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatchObject({ severity: "error", workflow });
    expect(problems[0]?.message).toContain(part);
  });

  const uses = (...keys: string[]) => [{ name: "session", from: ["auth"], keys }];
  it.each([
    [
      "a use without the dependency",
      [
        manifest("auth", { provides: [{ key: "token", to: ["b"] }] }),
        manifest("b", { uses: uses("token") }),
      ],
      "without depending on it",
    ],
    [
      "a use of what is not provided to it",
      [manifest("auth"), manifest("b", { dependsOn: ["auth"], uses: uses("token") })],
      "provides nothing to it",
    ],
    [
      "a key that was renamed on one side",
      [
        manifest("auth", { provides: [{ key: "jwt", to: ["b"] }] }),
        manifest("b", { dependsOn: ["auth"], uses: uses("token") }),
      ],
      'provides no "token" (it provides "jwt")',
    ],
    ["a source that is not there", [manifest("b", { uses: uses() })], "not in this job"],
    [
      "a target that is not there",
      [manifest("a", { provides: [{ key: "k", to: ["nobody"] }] })],
      'provides "k" to "nobody"',
    ],
  ])("warns of %s (CTX-5)", (_, list, part) => {
    const problems = validateManifests(list);
    expect(problems.map(({ severity }) => severity)).toEqual(["warning"]);
    expect(problems[0]?.message).toContain(part);
  });
});
