import { describe, expect, it } from "vitest";
import { Pace } from "./pace.ts";

describe("Pace", () => {
  it("leases nothing ahead of long tasks", () => {
    const pace = new Pace(4);
    for (let now = 0; now < 60_000; now += 5_000) {
      pace.finished(now, 5_000);
      expect(pace.ahead(now + 4_000, 1_000)).toBe(0);
    }
  });

  it("leases nothing ahead of long tasks that finish together", () => {
    const pace = new Pace(4);
    for (let now = 3_000; now < 60_000; now += 3_000) {
      for (let slot = 0; slot < 4; slot++) {
        pace.finished(now + slot, 3_000);
        expect(pace.ahead(now + slot, 1_000)).toBe(0);
      }
      expect(pace.ahead(now + 100, 1_000)).toBe(0);
    }
  });

  it("leases half a second of short ones, up to the maximum", () => {
    const pace = new Pace(4);
    for (let now = 0; now < 1_000; now++) pace.finished(now, 1);
    expect(pace.ahead(1_000, 1_000)).toBe(500);
    expect(pace.ahead(1_000, 100)).toBe(100);
  });

  it("decays when the pace drops", () => {
    const pace = new Pace(4);
    for (let now = 0; now < 1_000; now++) pace.finished(now, 1);
    pace.ahead(2_000, 1_000);
    expect(pace.ahead(3_000, 1_000)).toBe(0);
  });
});
