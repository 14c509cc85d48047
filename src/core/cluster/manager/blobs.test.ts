import { describe, expect, it } from "vitest";
import { ANYWHERE } from "../messages.ts";
import { BUNDLE, submission, World } from "./testing/world.ts";

describe("blobs of jobs", () => {
  it("ends a job only once a quorum of the managers has its result", () => {
    const world = new World({ managers: 3 });
    world.keepsNothing = true;
    const job = world.submit();
    world.run(10_000);
    expect(world.progress(job)?.status).toBe("RUNNING");
    world.keep(null);
    const { status, summary } = world.end(job);
    expect([status, summary?.totals?.requests]).toEqual(["COMPLETED", world.calls()]);
  });

  it("ends the job and records the reason when a result cannot be stored", () => {
    const world = new World();
    world.keepsNothing = true;
    const job = world.submit();
    world.run(5_000);
    world.keep("no space left");
    expect(world.end(job)).toMatchObject({
      status: "COMPLETED",
      reason: "its result is lost: no space left",
    });
  });

  it("serves a result from every manager and fetches it again when it is not cached", () => {
    const world = new World({ managers: 3 });
    const job = world.submit();
    const { summary } = world.end(job);
    world.run(1_000);
    const watch = { kind: "watch", job, line: 0, live: false, latencies: false } as const;
    const leader = world.leaderOf(job);
    const other = (leader + 1) % 3;
    expect(world.ask(watch, other)).toMatchObject({ kind: "progress", summary });
    world.loseBlobs();
    expect(world.ask(watch, (leader + 2) % 3)).toMatchObject({ kind: "refused", reason: "retry" });
    // Already cached.
    expect(world.ask(watch, other)).toMatchObject({ kind: "progress", summary });
  });

  it("pins files of waiting and running jobs and results of finished ones on every manager", () => {
    const world = new World({ managers: 3, loadMs: 3_000 });
    const job = world.submit();
    world.run(2_000);
    expect([0, 1, 2].map((index) => world.pinned.get(index))).toEqual(Array(3).fill([BUNDLE]));
    world.end(job);
    world.run(2_000);
    const [first, ...others] = [0, 1, 2].map((index) => world.pinned.get(index));
    expect(first).toHaveLength(1);
    expect(first).not.toContain(BUNDLE);
    for (const other of others) expect(other).toEqual(first);
  });

  it("identifies a job by its key, not by how the client was invoked", () => {
    const world = new World();
    const job = world.submit({ command: "submit flow.ts", version: "1.0.0" });
    const again = submission({ command: "submit flow.ts --ui none", version: "1.0.1" });
    expect(world.ask({ kind: "submit", key: "key", submission: again, routing: ANYWHERE })).toEqual(
      {
        kind: "accepted",
        job,
        duplicate: true,
      },
    );
  });
});
