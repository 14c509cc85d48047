/** The short form of the chaos run; `npm run chaos:queue` is the long one. */

import { monitorEventLoopDelay } from "node:perf_hooks";
import { describe, expect, it } from "vitest";
import { needs } from "../../needs.ts";
import { chaos } from "./chaos.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

/** Without a turn for this long, a process renews no lease in time. */
const STARVED_MS = 2_000;
const NANOS_PER_MS = 1e6;

describe("queue under chaos", needs(TestPostgres.available(), NO_POSTGRES), () => {
  it("ends every task once, as it should, and explains every attempt, whatever fails meanwhile", async () => {
    const server = await TestPostgres.start();
    const delay = monitorEventLoopDelay();
    delay.enable();
    try {
      const result = await chaos({
        server,
        ...{ seconds: 15, tasks: 1_000, workers: 3, leaders: 2, restarts: 1, everyMs: 2_000 },
        ...{ seed: 1, leases: { taskLeaseMs: 12_000, leaderLeaseMs: 3_000 }, say: () => undefined },
      });
      expect(result.problems).toEqual([]);
      expect(result.tasks).toBe(result.acknowledged);
      expect(result.tasks).toBe(1_000);
      expect(result.faults.length).toBeGreaterThan(2);
      // A grant that a starved worker no longer waited for costs no attempt, and is no fault of this run's.
      const cost = result.lost.filter(({ reason }) => reason !== "undelivered");
      // Where this process stalled for this long, so did workers: leases expire that no fault explains.
      if (delay.max / NANOS_PER_MS < STARVED_MS)
        expect(cost.filter(({ because }) => because === null)).toEqual([]);
    } finally {
      delay.disable();
      await server.stop();
    }
  });
});
