import { describe, expect, it } from "vitest";
import { manifest } from "../../load/job/testing/manifest.ts";
import type { Extended } from "../extension-messages.ts";
import { World } from "./testing/world.ts";

const SECOND = 1_000;
const LONG_MS = 3_600_000;

/** A datacenter whose workers report load, with a job on all of them. */
function running(workers: number, timeoutMs: number | null = null): { world: World; job: string } {
  const world = new World({ workers, loadMs: LONG_MS, cores: 1 });
  const job = world.submit({ timeoutMs, cores: workers });
  world.until(() => world.progress(job)?.status === "RUNNING");
  for (const worker of world.workers) worker.running = 1;
  world.run(25 * SECOND);
  return { world, job };
}

function freeze(world: World, count: number): void {
  for (const worker of world.workers.slice(0, count)) {
    worker.isFrozen = true;
    for (const core of worker.opened) core.isStuck = true;
  }
}

/** Stops the executor processes. */
function silence(world: World, count: number): void {
  for (const worker of world.workers.slice(0, count))
    for (const core of worker.opened) core.isSilent = true;
}

const killed = (world: World): number => world.workers.reduce((sum, one) => sum + one.killed, 0);

function asks(world: World, number: number, progress: number): Extended {
  const request = {
    number,
    progress,
    reason: "long_workflow",
    estimatedMs: 0,
    running: 1,
  } as const;
  return world.askForTime({ kind: "extension", worker: "w0", incarnation: 1, ...request });
}

const healthOf = (world: World, name: string): string => {
  const answer = world.ask({ kind: "nodes" });
  const nodes = answer.kind === "nodes" ? answer.nodes : [];
  return nodes.find((one) => one.name === name)?.health ?? "";
};

const said = (world: World, event: string): number =>
  world.logs.filter((line) => line.startsWith(`${event} `)).length;

describe("workers that do not advance (AD-19)", () => {
  it("leaves a worker alone that runs one load for ten minutes", () => {
    const { world, job } = running(1);
    world.run(600 * SECOND);
    expect(world.progress(job)?.status).toBe("RUNNING");
    expect(said(world, "worker.progress")).toBe(1);
    expect(healthOf(world, "w0")).toBe("busy");
  });

  it("gives no work to a worker that stands still, and takes its cores after the deadline and the grace period", () => {
    const { world, job } = running(3);
    freeze(world, 1);
    world.run(12 * SECOND);
    expect(healthOf(world, "w0")).toBe("stuck");
    expect(said(world, "worker.evicted")).toBe(0);
    world.run(26 * SECOND);
    expect(said(world, "worker.evicted")).toBe(0);
    world.run(5 * SECOND);
    expect(said(world, "worker.evicted")).toBe(1);
    const lost = world.ask({ kind: "status", job });
    expect(lost.kind === "job" && lost.job.lost.length).toBe(1);
    expect(world.worker(0).jobs.get(job)?.cores.size ?? 0).toBe(0);
  });

  it("reassigns the share of a given-up worker where there is capacity", () => {
    const world = new World({ workers: 3, loadMs: LONG_MS, cores: 1 });
    const load = { kind: "vus", stages: [{ durationMs: LONG_MS, from: 4, to: 4 }] } as const;
    const job = world.submit({ cores: 2, manifests: [manifest("shop", { load })] });
    world.until(() => world.progress(job)?.status === "RUNNING");
    for (const worker of world.workers) worker.running = worker.opened.length;
    world.run(25 * SECOND);
    const at = world.workers.findIndex(({ opened }) => opened.length > 0);
    world.worker(at).isFrozen = true;
    world.run(45 * SECOND);
    expect(said(world, "worker.evicted")).toBe(1);
    const open = world.workers.filter(({ opened }) => opened.length > 0);
    expect(open.length).toBe(3);
    expect(world.progress(job)?.status).toBe("RUNNING");
  });

  it("gives it work again when it moves", () => {
    const { world } = running(3);
    freeze(world, 1);
    world.run(20 * SECOND);
    world.worker(0).isFrozen = false;
    world.run(25 * SECOND);
    expect(healthOf(world, "w0")).toBe("busy");
    expect(said(world, "worker.evicted")).toBe(0);
  });

  it.each([
    [6, 3, 3],
    [6, 4, 0],
    [1, 1, 1],
  ])("of %i workers %i stand still: %i are given up (AD-19.31)", (workers, failing, evicted) => {
    const { world } = running(workers);
    freeze(world, failing);
    world.run(60 * SECOND);
    expect(said(world, "worker.evicted")).toBe(evicted);
    expect(said(world, "worker.held")).toBe(evicted === 0 ? failing : 0);
  });

  it("waits briefly for the last of many that move again at once", () => {
    const { world } = running(4);
    freeze(world, 4);
    world.run(60 * SECOND);
    for (const worker of world.workers.slice(1)) worker.isFrozen = false;
    world.run(SECOND);
    world.worker(0).isFrozen = false;
    world.run(SECOND);
    expect(said(world, "worker.evicted")).toBe(0);
    world.worker(0).isFrozen = true;
    world.run(60 * SECOND);
    expect(said(world, "worker.evicted")).toBe(1);
  });

  it("kills no silent core of a worker that has more time, or is retained like most others", () => {
    for (const [failing, seconds] of [
      [1, 35],
      [4, 90],
    ] as const) {
      const { world } = running(6);
      freeze(world, failing);
      silence(world, failing);
      world.run(seconds * SECOND);
      expect(killed(world)).toBe(0);
      expect(said(world, "worker.evicted")).toBe(0);
    }
  });

  it("kills a core that is silent while others of its worker advance", () => {
    const { world } = running(3);
    silence(world, 1);
    world.run(35 * SECOND);
    expect(killed(world)).toBe(1);
  });

  it("loses none of many that fall silent at once for less than half a minute", () => {
    const { world, job } = running(4);
    for (const worker of world.workers.slice(0, 3)) worker.cut = true;
    world.run(20 * SECOND);
    expect(said(world, "worker.lost")).toBe(0);
    expect(said(world, "worker.held")).toBe(3);
    for (const worker of world.workers) worker.cut = false;
    world.run(5 * SECOND);
    const answer = world.ask({ kind: "status", job });
    expect(answer.kind === "job" && answer.job.lost).toEqual([]);
  });

  it("loses them when they are silent for longer, or have closed their connections", () => {
    const { world } = running(4);
    for (const worker of world.workers.slice(0, 3)) worker.cut = true;
    world.run(35 * SECOND);
    expect(said(world, "worker.lost")).toBe(3);
    const other = running(4).world;
    for (const at of [0, 1, 2]) other.killWorker(at);
    other.run(5 * SECOND);
    expect(said(other, "worker.lost")).toBe(3);
  });
});

describe("extensions for workers (AD-26)", () => {
  it("move the deadline of the worker and the limit of its jobs (AD-26.13, AD-34.40)", () => {
    const { world, job } = running(1, 60 * SECOND);
    freeze(world, 1);
    world.run(20 * SECOND);
    expect(asks(world, 1, 0.4)).toMatchObject({ granted: true, extensionMs: 15_000 });
    // 26 s before it froze, 20 s since: without more time its limit would come in 14 s.
    world.run(20 * SECOND);
    expect(world.progress(job)?.status).toBe("RUNNING");
    world.worker(0).isFrozen = false;
    for (const core of world.worker(0).opened) core.isStuck = false;
    world.run(12 * SECOND);
    const { reason, status } = world.end(job);
    expect([status, reason]).toEqual([
      "TIMED_OUT",
      "it took longer than 1m00s and 15s that workers asked for",
    ]);
  });

  it("are denied without progress, with what became of the worker", () => {
    const { world } = running(3);
    freeze(world, 1);
    world.run(20 * SECOND);
    expect(asks(world, 1, 0.4).granted).toBe(true);
    expect(asks(world, 1, 0.4).granted).toBe(true);
    expect(asks(world, 2, 0.4)).toMatchObject({ granted: false, denial: "no_progress" });
    expect([said(world, "worker.extended"), said(world, "worker.extensionDenied")]).toEqual([1, 1]);
    expect(world.health(0)).toMatchObject({ granted: 1, grantedMs: 15_000 });
    // 30 s and 15 s after it stood still, and 10 s of grace.
    world.run(34 * SECOND);
    expect(said(world, "worker.evicted")).toBe(0);
    world.run(4 * SECOND);
    expect(said(world, "worker.evicted")).toBe(1);
  });

  it("are rejected for an unknown incarnation of a worker", () => {
    const { world } = running(1);
    const request = { number: 1, progress: 0, reason: "gc_pause", estimatedMs: 0 } as const;
    const other = { kind: "extension", worker: "w0", incarnation: 7, running: 1 } as const;
    expect(world.askForTime({ ...other, ...request }).denial).toBe("suspect");
  });
});
