import { describe, expect, it } from "vitest";
import { initialState, type JobState } from "../../ledger/job/job-state.ts";
import { AGGREGATE_METRICS_BYTES_MAX } from "../../ledger/job/limits.ts";
import { JOB } from "../../ledger/job/testing/events.ts";
import { encodeEnd, type LastFigures, lastFiguresOf, missingMsOf } from "./lost-parts.ts";
import { reasonOf } from "./status.ts";
import { GateWorld } from "./testing/world.ts";

const BOTH = ["dc1", "dc2"];
const LAST: LastFigures = {
  ...{ datacenter: "dc2", users: 3 },
  measured: [
    { workflow: "shop", ms: 400 },
    { workflow: "pay", ms: 0 },
  ],
};

function ended(aggregateMetrics: Uint8Array): JobState {
  const end = { kind: "completed", finalStatus: "PARTIAL", aggregateMetrics } as const;
  return { ...initialState(JOB), status: "COMPLETED", end };
}

function workflow(name: string, startedAtSeconds: number, elapsedSeconds: number) {
  return { name, startedAtSeconds, elapsedSeconds };
}

describe("the last known state of a lost datacenter", () => {
  it("is in the job's log next to the reason", () => {
    const state = ended(encodeEnd("dc2: lost", [LAST]));
    expect([reasonOf(state), lastFiguresOf(state, "dc2")]).toEqual(["dc2: lost", LAST]);
    expect(lastFiguresOf(state, "dc1")).toBeNull();
  });

  it("is omitted when too long, while the reason is kept", () => {
    const measured = Array.from({ length: 2_000 }, (_, at) => ({
      ...{ workflow: `${at}`.padStart(60, "w"), ms: at },
    }));
    const bytes = encodeEnd("dc2: lost", [{ ...LAST, measured }]);
    expect(bytes.length).toBeLessThan(AGGREGATE_METRICS_BYTES_MAX);
    const state = ended(bytes);
    expect([reasonOf(state), lastFiguresOf(state, "dc2")]).toEqual(["dc2: lost", null]);
  });

  it("gives the missing load time, for sequential and concurrent workflows", () => {
    const after = [workflow("shop", 0, 1), workflow("pay", 1, 2)];
    expect(missingMsOf(LAST, after)).toBe(600 + 2_000);
    const beside = [workflow("shop", 0, 1), workflow("pay", 0.5, 2)];
    expect(missingMsOf(LAST, beside)).toBe(2_100);
    expect(missingMsOf(LAST, [workflow("shop", 0, 0.4)])).toBe(0);
  });
});

describe("the loss of a datacenter in a result", () => {
  function lost(away: (world: GateWorld, job: string) => void) {
    const world = new GateWorld({ gates: 3, datacenters: BOTH, loadMs: 3_000 });
    const job = world.submit({}, { datacenters: BOTH });
    world.until(() => world.status(job) === "RUNNING");
    world.run(1_000);
    world.cut.add("dc2");
    away(world, job);
    return world.end(job, 200_000).summary?.lost;
  }

  it("has its users and how long they were missing", () => {
    const [loss, ...others] = lost(() => undefined) ?? [];
    expect([loss?.users, others]).toEqual([2, []]);
    expect(loss?.missingMs).toBeGreaterThan(1_000);
    expect(loss?.missingMs).toBeLessThan(2_500);
  });

  it("has neither when the gate that knew them is gone", () => {
    const found = lost((world, job) => world.kill(world.leaderOf(job)));
    expect(found).toMatchObject([{ users: null, missingMs: null }]);
  });

  it("has neither when the job was cancelled", () => {
    const control = { kind: "cancel", reason: "enough" } as const;
    const found = lost((world, job) => world.ask({ kind: "control", job, by: "me", control }));
    expect(found).toMatchObject([{ users: null, missingMs: null }]);
  });
});
