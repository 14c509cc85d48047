import { expect, it } from "vitest";
import { ServedTenants } from "./served-tenants.ts";

const ended = (tenant: string | null, endedAt: number) =>
  ({ needs: { tenant }, status: "COMPLETED", summary: "{}", endedAt }) as const;

it("returns when each tenant was last served, over the remembered jobs", () => {
  const served = new ServedTenants();
  // The clock of the manager that ended it was a day ahead.
  const ahead = ended("a", 86_400_000);
  const others = [ended("a", 100), ended("a", 300), ended(null, 200)];
  for (const job of [others[0], ahead, others[1], others[2]]) if (job) served.add(job);
  expect([...served.last]).toEqual([
    ["a", 86_400_000],
    ["default", 200],
  ]);
  served.forget(ahead);
  expect(served.last.get("a")).toBe(300);
  served.forget(ended("a", 300));
  expect(served.last.get("a")).toBe(100);
  served.forget(ended("a", 100));
  served.forget(ended(null, 200));
  expect(served.last.size).toBe(0);
});

it("ignores a job that had no cores", () => {
  const served = new ServedTenants();
  served.add({ needs: {}, status: "CANCELLED", summary: null, endedAt: 5 });
  expect(served.last.size).toBe(0);
});
