import { describe, expect, it } from "vitest";
import type { ToldRun } from "../../load/execution/told-run.ts";
import type { WorkflowStatus } from "../../load/results/model.ts";
import { submission } from "../manager/testing/world.ts";
import { ANYWHERE } from "../messages.ts";
import { partsOf } from "./job-parts.ts";
import { encodeBegun, JointWords } from "./joint-words.ts";

const CHOSEN = ["dc1", "dc2"].map((dcId) => ({ dcId, cores: 2 }));
const PARTS = partsOf(submission(), { ...ANYWHERE, count: 2 }, CHOSEN);

/** Report of a datacenter about its only workflow. */
function report(waits: "begin" | "over" | null, over: Partial<ToldRun["workflows"][number]> = {}) {
  const status: WorkflowStatus = waits === "begin" ? "waiting" : "running";
  return {
    waits: waits === null ? [] : [{ workflow: "shop", for: waits, value: { token: 7 } }],
    workflows: [
      {
        ...{ name: "shop", status, error: null, startedAtMs: null, frame: new Uint8Array() },
        vitals: { cpu: 0, residentBytes: 0, activeUsers: 0 },
        timing: { pauses: [], factors: [] },
        ...over,
      },
    ],
  };
}

function words(first: ToldRun | null, second: ToldRun | null, isOver = false, begun = false) {
  const setUps = begun
    ? [{ workflow: "shop", value: encodeBegun({ atMs: 500, value: { token: 7 } }) }]
    : [];
  const places = [
    { datacenter: "dc1", report: first, isOver: false },
    { datacenter: "dc2", report: second, isOver },
  ];
  return new JointWords(PARTS, places, setUps);
}

describe("a workflow in two datacenters", () => {
  it("is ready when it is prepared in both, and not before", () => {
    expect(words(report("begin"), report(null)).ready()).toBeNull();
    expect(words(report("begin"), null).ready()).toBeNull();
    const ready = { workflow: "shop", value: { token: 7 } };
    expect(words(report("begin"), report("begin")).ready()).toEqual(ready);
  });

  it("is started where it still waits, and nowhere else", () => {
    const begun = words(report(null), report("begin"), false, true);
    expect(begun.of("dc1")).toEqual([]);
    expect(begun.of("dc2")).toEqual([
      { kind: "begin", workflow: "shop", atMs: 500, value: { token: 7 } },
    ]);
    expect(begun.ready()).toBeNull();
  });

  it("is over for the first when it has finished in the other, or the other is lost", () => {
    const over = [{ kind: "over", workflow: "shop", error: null }];
    expect(words(report("over"), report(null), false, true).of("dc1")).toEqual([]);
    const ended = report(null, { status: "completed" });
    expect(words(report("over"), ended, false, true).of("dc1")).toEqual(over);
    expect(words(report("over"), report(null), true, true).of("dc1")).toEqual(over);
  });

  it("never starts when it has failed in one of them", () => {
    const failed = words(
      report("begin"),
      report(null, { status: "failed", error: "no such file" }),
    );
    expect(failed.ready()).toBeNull();
    expect(failed.of("dc1")).toEqual([
      { kind: "over", workflow: "shop", error: "dc2: no such file" },
    ]);
  });

  it("never starts with a value that is too large for the other", () => {
    const large = report("begin");
    const waits = [{ workflow: "shop", for: "begin" as const, value: "x".repeat(70_000) }];
    const refused = words({ ...large, waits }, report("begin"));
    expect(refused.ready()).toBeNull();
    for (const datacenter of ["dc1", "dc2"])
      expect(refused.of(datacenter)).toMatchObject([
        { kind: "over", error: expect.stringContaining("at most 65536") },
      ]);
  });
});
