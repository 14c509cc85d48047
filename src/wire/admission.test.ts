import { describe, expect, it } from "vitest";
import { Random } from "../core/base/random.ts";
import { ADMISSION_LIMITS, Admission } from "./admission.ts";
import { PRIORITIES, type Priority } from "./registry.ts";

const take = (admission: Admission, priority: Priority, count: number): number => {
  let taken = 0;
  for (let i = 0; i < count; i++) if (admission.tryAcquire(priority)) taken++;
  return taken;
};

describe("admission", () => {
  it("lets critical pass with every counter at its limit (BEX-1, BEX-2)", () => {
    const admission = new Admission(ADMISSION_LIMITS.default);
    for (const priority of PRIORITIES) take(admission, priority, 10_000);
    expect(take(admission, "critical", 100)).toBe(100);
    expect(admission.stats("critical").shed).toBe(0);
  });

  // C20-12
  // BEX-6..8
  it("refuses low before normal before high, and critical load takes nothing from them", () => {
    const admission = new Admission(ADMISSION_LIMITS.default);
    take(admission, "critical", 5_000);
    expect(admission.state).toBe("healthy");
    expect(take(admission, "low", 300)).toBe(200);
    expect(admission.state).toBe("pressured");
    expect(take(admission, "normal", 500)).toBe(300);
    expect(admission.state).toBe("overloaded");
    expect(take(admission, "high", 600)).toBe(500);
    expect(admission.stats("high").nearLimit).toBe(true);
  });

  it("keeps a tenth of the global limit for high", () => {
    const admission = new Admission({ global: 100, high: 0, normal: 0, low: 0 });
    expect(take(admission, "low", 200)).toBe(90);
    expect(take(admission, "normal", 200)).toBe(0);
    expect(take(admission, "high", 200)).toBe(10);
  });

  it("counts what it has taken on and what it refused, by priority (BEX-4)", () => {
    const admission = new Admission({ global: 100, high: 50, normal: 30, low: 20 });
    const random = new Random("counts");
    const counts = new Map(PRIORITIES.map((one) => [one, { acquired: 0, shed: 0 }]));
    const open: Priority[] = [];
    for (let i = 0; i < 10_000; i++) {
      const priority = random.pick(PRIORITIES);
      const count = counts.get(priority);
      if (count === undefined) continue;
      if (admission.tryAcquire(priority)) {
        count.acquired++;
        open.push(priority);
      } else count.shed++;
      const done = random.chance(0.6) ? open.shift() : undefined;
      if (done !== undefined) admission.release(done);
    }
    for (const priority of PRIORITIES)
      expect(admission.stats(priority)).toMatchObject(counts.get(priority) ?? {});
    expect(admission.stats("low").shed).toBeGreaterThan(0);
  });

  it("ends at zero after any history of requests (BEX-3)", () => {
    const admission = new Admission(ADMISSION_LIMITS.worker);
    const random = new Random("admission");
    const open: Priority[] = [];
    for (let i = 0; i < 100_000; i++) {
      if (random.chance(0.5)) {
        const priority = random.pick(PRIORITIES);
        if (admission.tryAcquire(priority)) open.push(priority);
      } else if (open.length > 0) {
        const [done] = open.splice(random.below(open.length), 1);
        if (done !== undefined) admission.release(done);
      }
    }
    for (const priority of open) admission.release(priority);
    for (const priority of PRIORITIES) expect(admission.stats(priority).inFlight).toBe(0);
    expect(() => admission.release("low")).toThrow("released once");
  });
});
