/** Real processes and real time: a writer is killed at random moments. `npm run chaos:wal` does it 1,000 times. */

import { describe, expect, it } from "vitest";
import { killRepeatedly } from "./kill.ts";

describe("a writing process that is killed", () => {
  it("has on disk every entry it called durable, byte for byte (20 kills)", async () => {
    const report = await killRepeatedly(20, 5);
    expect(report.kills).toBe(20);
    expect(report.acknowledged).toBeGreaterThan(0);
  });
});
