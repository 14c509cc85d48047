import { describe, expect, it } from "vitest";
import { type DatacenterJob, DatacenterState, encodeDatacenterEntry } from "./datacenter-state.ts";
import {
  allowed,
  byAge,
  inTurn,
  NO_QUOTAS,
  queueProblem,
  quotaProblem,
  tenantProblem,
  tenantsWaiting,
} from "./tenants.ts";
import { World } from "./testing/world.ts";

const job = (name: string, tenant: string, cores: number | null = 1) =>
  ({ job: name, needs: { cores, usefulCores: 100, timeoutMs: null, tenant } }) as DatacenterJob;

describe("the turn of tenants", () => {
  it("goes to the tenant with the fewest cores, each with its jobs in order", () => {
    const queued = [job("a1", "a"), job("a2", "a"), job("b1", "b"), job("a3", "a"), job("b2", "b")];
    const turn = (held: Readonly<Record<string, number>>) =>
      inTurn(queued, (tenant) => held[tenant] ?? 0).map((one) => one.job);
    expect(turn({})).toEqual(["a1", "b1", "a2", "b2", "a3"]);
    expect(turn({ a: 1 })).toEqual(["b1", "a1", "b2", "a2", "a3"]);
    expect(turn({ a: 5, b: 1 })).toEqual(["b1", "b2", "a1", "a2", "a3"]);
  });

  it("skips the tenant served last among those with equally many cores", () => {
    const queued = [job("a1", "a"), job("a2", "a"), job("b1", "b")];
    const turn = (ended: Readonly<Record<string, number>>) =>
      inTurn(
        queued,
        () => 0,
        (tenant) => ended[tenant] ?? 0,
      ).map((one) => one.job);
    expect(turn({ a: 7 })).toEqual(["b1", "a1", "a2"]);
    expect(turn({ a: 7, b: 9 })).toEqual(["a1", "b1", "a2"]);
  });

  it("counts cores, not jobs", () => {
    const queued = [job("a1", "a", 4), job("a2", "a", 4), job("b1", "b"), job("b2", "b")];
    expect(inTurn(queued, () => 0).map((one) => one.job)).toEqual(["a1", "b1", "b2", "a2"]);
  });

  it("follows the order of submission where no tenant is named", () => {
    const queued = ["1", "2", "3"].map((name) => job(name, "default", null));
    expect(inTurn(queued, () => 7)).toEqual(queued);
  });
});

describe("the order of submission", () => {
  const waits = (key: string, createdAt: number) =>
    ({ ...job(key, "default"), key, createdAt }) as DatacenterJob;

  it("is that in which gates accepted the jobs, whatever order they arrive in", () => {
    const jobs = [
      waits("gates-1794913891152-g1-75024/dc1/2", 1_794_913_930_001),
      waits("gates-1794913877279-g2-76494/dc1/1", 1_794_913_930_002),
      waits("nightly", 1_794_913_880_000),
      waits("gates-1794913891152", 1_794_913_870_000),
    ];
    expect(byAge(jobs).map(({ key }) => key)).toEqual([
      "gates-1794913891152",
      "gates-1794913877279-g2-76494/dc1/1",
      "nightly",
      "gates-1794913891152-g1-75024/dc1/2",
    ]);
  });
});

describe("a queue filled by one tenant", () => {
  it("reserves the same capacity for each other tenant", () => {
    const state = new DatacenterState();
    let seq = 0;
    const fill = (tenant: string): number => {
      for (let count = 0; ; count++) {
        if (queueProblem(NO_QUOTAS, tenantsWaiting(state), tenant) !== null) return count;
        const name = `job-${seq}`;
        const data = encodeDatacenterEntry({
          ...{ kind: "submit", job: name, key: name, name, takenBy: "m0", digest: "" },
          needs: { cores: 1, usefulCores: 1, timeoutMs: null, tenant },
          ...{ createdAt: 0, submission: new Uint8Array(1) },
        });
        const { outcome } = state.apply({ seq: seq++, view: 1, eventId: name, data });
        expect(outcome).toBe("queued");
      }
    };
    expect([fill("greedy"), fill("second"), fill("third")]).toEqual([900, 90, 9]);
    expect(queueProblem(NO_QUOTAS, tenantsWaiting(state), "greedy")).toContain(
      "the rest of the queue is for others",
    );
    expect(queueProblem(NO_QUOTAS, tenantsWaiting(state), "fourth")).toBeNull();
  });
});

describe("quotas", () => {
  const quotas = { ...NO_QUOTAS, coresPerTenantMax: 8, coresPerJobMax: 4 };
  const needs = { usefulCores: 100, tenant: "a" };

  it.each([
    ["takes what the quota of a job leaves", null, 0, 4],
    ["takes what the quota of its tenant leaves", null, 6, 2],
    ["waits when nothing is left", null, 8, 0],
    ["waits until all that it asks for is left", 3, 6, 0],
    ["gets no more than it asks for elsewhere", 3, 5, 3],
  ])("a job %s", (_what, cores, held, got) => {
    expect(allowed(quotas, { ...needs, cores }, held).cores).toBe(got);
  });

  it("report usage and limit", () => {
    expect(allowed(quotas, { ...needs, cores: 3 }, 6).reason).toBe(
      "it needs 3 cores, tenant a holds 6 of the 8 cores that it may have",
    );
    expect(quotaProblem(quotas, { ...needs, cores: 5 })).toContain("one job may have 4");
    expect(quotaProblem({ ...quotas, coresPerJobMax: 0 }, { ...needs, cores: 9 })).toContain(
      "one tenant may have 8",
    );
    expect(quotaProblem(quotas, { ...needs, cores: 5, usefulCores: 2 })).toBe(null);
  });

  it.each(["", "a b", "-x", "x".repeat(65), "ä"])("reject %j as a tenant name", (name) => {
    expect(tenantProblem(name)).toContain("names no tenant");
  });
});

describe("a datacenter of several tenants", () => {
  // With a single core no tenant has any at the time it is assigned.
  it.each([1, 2])(
    "gives a newcomer its turn before the many jobs of another: %i cores",
    (cores) => {
      const world = new World({ workers: 1, cores });
      const flood = Array.from({ length: 12 }, (_, at) =>
        world.submit({ cores: 1, tenant: "many" }, `many-${at}`),
      );
      const waiting = () => flood.filter((id) => world.progress(id)?.status === "QUEUED").length;
      const one = world.submit({ cores: 1, tenant: "one" }, "one");
      const before = waiting();
      world.until(() => world.progress(one)?.status !== "QUEUED");
      // One of their jobs may have begun at the same time.
      expect(before).toBeGreaterThan(5);
      expect(before - waiting()).toBeLessThanOrEqual(1);
      for (const id of flood) expect(world.end(id).status).toBe("COMPLETED");
    },
  );

  it("reserves cores for others, and shows what a job waits for", () => {
    const world = new World({
      workers: 1,
      cores: 4,
      quotas: { ...NO_QUOTAS, coresPerTenantMax: 2 },
    });
    const first = world.submit({ cores: 2, tenant: "a" }, "1");
    const second = world.submit({ cores: 1, tenant: "a" }, "2");
    const other = world.submit({ cores: 2, tenant: "b" }, "3");
    expect(world.progress(second)).toMatchObject({
      status: "QUEUED",
      reason: expect.stringContaining(
        "it needs 1 core, tenant a holds 2 of the 2 cores that it may have (position 1",
      ),
    });
    expect(world.progress(other)?.status).not.toBe("QUEUED");
    for (const id of [first, second, other]) expect(world.end(id).status).toBe("COMPLETED");
  });

  it("rejects jobs that can never run, and waiting jobs beyond the quota", () => {
    const world = new World({
      ...{ workers: 1, cores: 1 },
      quotas: { ...NO_QUOTAS, coresPerJobMax: 1, waitingPerTenantMax: 1 },
    });
    expect(() => world.submit({ cores: 2 }, "0")).toThrow("one job may have 1 (coresPerJob)");
    world.submit({ tenant: "a" }, "1");
    world.submit({ tenant: "a" }, "2");
    expect(() => world.submit({ tenant: "a" }, "3")).toThrow("one of them has to begin");
    // A repeated submission is not another job, and another tenant has a queue of its own.
    world.submit({ tenant: "a" }, "2");
    world.submit({ tenant: "b" }, "4");
  });
});
