import { describe, expect, it } from "vitest";
import { HandOver } from "./hand-over.ts";

describe("a node that hands over leadership", () => {
  it("waits for available successors for a limited time", () => {
    const handOver = new HandOver();
    handOver.begin(1_000);
    for (let now = 1_000; now < 16_000; now += 1_000) {
      expect(handOver.endsAt(true, now)).toBeGreaterThan(now);
    }
    expect(handOver.endsAt(true, 16_000)).toBe(16_000);
  });

  it("exits shortly after the last of them has disconnected or drains too", () => {
    const handOver = new HandOver();
    handOver.begin(1_000);
    expect(handOver.endsAt(true, 5_000)).toBe(8_000);
    expect(handOver.endsAt(false, 7_000)).toBe(8_000);
    expect(handOver.endsAt(false, 9_000)).toBe(8_000);
  });

  it("does not count a pause of its own process against its successors", () => {
    const handOver = new HandOver();
    handOver.begin(1_000);
    expect(handOver.endsAt(true, 9_000)).toBe(12_000);
  });
});
