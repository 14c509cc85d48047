/** The short form of the chaos run; `npm run chaos:queue` is the long one. */

import { describe, expect, it } from "vitest";
import { needs } from "../../needs.ts";
import { chaos } from "./chaos.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

describe("queue under chaos", needs(TestPostgres.available(), NO_POSTGRES), () => {
  it("ends every task once and loses nothing while workers are killed, stopped and the database crashes", async () => {
    const server = await TestPostgres.start();
    try {
      const result = await chaos({
        server,
        seconds: 12,
        tasks: 1_000,
        workers: 3,
        restarts: 1,
        seed: 1,
        say: () => undefined,
      });
      expect(result.problems).toEqual([]);
      expect(result.tasks).toBe(result.acknowledged);
      expect(result.tasks).toBe(1_000);
      expect(result.kills).toBeGreaterThan(2);
    } finally {
      await server.stop();
    }
  });
});
