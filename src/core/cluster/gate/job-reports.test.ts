import { describe, expect, it } from "vitest";
import { GateWorld } from "./testing/world.ts";

/** Kinds of reports of a job by gate, without consecutive duplicates. */
function toldOf(world: GateWorld, job: string): string[] {
  const all = world.reports
    .filter(({ report }) => report.job === job)
    .map(({ gate, report }) => `${gate} ${report.kind}`);
  return all.filter((one, at) => one !== all[at - 1]);
}

describe("reporters of a gate", () => {
  it("receive the progress of a job, and once its end with the same result as clients", () => {
    const world = new GateWorld({ loadMs: 5_000 });
    const job = world.submit();
    world.until(() => {
      world.look();
      return toldOf(world, job).includes("0 ended");
    });
    const { summary } = world.end(job);
    for (let looks = 0; looks < 5; looks++) world.look();
    expect(toldOf(world, job)).toEqual(["0 running", "0 ended"]);
    const ends = world.reports.flatMap(({ report }) => (report.kind === "ended" ? [report] : []));
    expect(ends).toMatchObject([{ job, isTakenOver: false }]);
    expect(ends[0]?.summary).toEqual(summary);
    expect(summary?.totals?.requests).toBe(world.calls());
    const running = world.reports.flatMap(({ report }) =>
      report.kind === "running" ? [report.live.summary.runId] : [],
    );
    expect(new Set(running)).toEqual(new Set([job]));
  });

  it("are continued by the next leader, which knows that it took over, and receive the end once", () => {
    const world = new GateWorld({ gates: 3, loadMs: 20_000 });
    const job = world.submit();
    world.until(() => {
      world.look();
      return world.reports.length > 0;
    });
    const first = world.leaderOf(job);
    world.kill(first);
    world.until(() => {
      world.look();
      return world.reports.some(({ report }) => report.kind === "ended");
    });
    world.start(first);
    for (let looks = 0; looks < 10; looks++) world.look();
    const ends = world.reports.filter(({ report }) => report.kind === "ended");
    expect(ends).toHaveLength(1);
    expect(ends[0]?.gate).not.toBe(first);
    expect(ends[0]?.report).toMatchObject({ job, isTakenOver: true });
    const later = world.reports.filter(
      ({ gate, report }) => gate !== first && report.kind === "running",
    );
    expect(later.length).toBeGreaterThan(0);
    for (const { report } of later) expect(report).toMatchObject({ isTakenOver: true });
  });

  it("receive no jobs unless reports were requested", () => {
    const world = new GateWorld({ loadMs: 1_000 });
    world.end(world.submit());
    expect(world.reports).toEqual([]);
  });
});
