import { expect, it } from "vitest";
import { PressureMeter } from "./pressure.ts";

it("measures shares of the available resources, and a stalled event loop", async () => {
  const meter = new PressureMeter();
  try {
    await new Promise((resolve) => setTimeout(resolve, 60));
    const calm = meter.take();
    for (const share of [calm.cpu, calm.memory]) {
      expect(share).toBeGreaterThanOrEqual(0);
      expect(share).toBeLessThanOrEqual(1);
    }
    expect(calm.memory).toBeGreaterThan(0);
    const until = performance.now() + 300;
    while (performance.now() < until);
    await new Promise((resolve) => setTimeout(resolve, 60));
    const held = meter.take();
    expect(held.lagMs).toBeGreaterThan(10);
    expect(held.cpu).toBeGreaterThan(0);
  } finally {
    meter.stop();
  }
});
