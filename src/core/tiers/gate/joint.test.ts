import { describe, expect, it } from "vitest";
import { manifest } from "../../run/job/testing/manifest.ts";
import { submission } from "../manager/testing/world.ts";
import { ANYWHERE, type Progress, type Routing } from "../messages.ts";
import { GateWorld } from "./testing/world.ts";

const BOTH = ["dc1", "dc2"];

function requests({ summary }: Progress): number {
  return summary?.totals?.requests ?? -1;
}

/** Commands that the cores of a datacenter heard, those of each kind counted. */
function heard(world: GateWorld, datacenter: string): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { opened } of world.datacenter(datacenter).workers)
    for (const { commands } of opened)
      for (const kind of commands) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

describe("one job in two datacenters", () => {
  it("is split, begins at one instant and has one result with all that both made", () => {
    const world = new GateWorld({ datacenters: BOTH });
    const job = world.submit({}, { datacenters: BOTH });
    const end = world.end(job);
    expect([end.status, end.reason]).toEqual(["COMPLETED", null]);
    const made = BOTH.map((name) => world.datacenter(name).calls());
    expect(Math.min(...made)).toBeGreaterThan(0);
    expect(requests(end)).toBe(world.calls());
    const cluster = end.summary?.cluster;
    expect(cluster).toMatchObject({
      jobId: job,
      split: [
        { datacenter: "dc1", share: 0.5 },
        { datacenter: "dc2", share: 0.5 },
      ],
      datacenters: BOTH.map((name, at) => ({ name, status: "COMPLETED", requests: made[at] })),
    });
    expect(cluster?.startSkewMs).toBeLessThanOrEqual(20);
    expect(end.summary?.totals?.latencyMs.count).toBe(world.calls());
  });

  it("is set up and torn down once, in the first, and its value reaches the other", () => {
    const world = new GateWorld({ datacenters: BOTH });
    world.end(world.submit({}, { datacenters: BOTH }));
    expect(heard(world, "dc1")).toMatchObject({ setup: 1, teardown: 1 });
    expect(heard(world, "dc2")).toEqual({ prepare: 2, start: 2 });
  });
});
