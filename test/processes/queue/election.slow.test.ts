/** Leadership under contention and stalls, against a real server. */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Random } from "../../../src/core/base/random.ts";
import { parseSubmit } from "../../../src/queue/api/submit-request.ts";
import { PostgresDatabase } from "../../../src/queue/store/postgres.ts";
import { needs } from "../../needs.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { audit } from "./audit.ts";
import { lead } from "./leading.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const LEASE_MS = 1_000;
/** Contenders continue until more than this many have written as leaders. */
const EPOCHS = 5;

describe("leadership on PostgreSQL", needs(TestPostgres.available(), NO_POSTGRES), () => {
  let server: TestPostgres;

  beforeAll(async () => {
    server = await TestPostgres.start();
  });

  afterAll(async () => {
    await server.stop();
  });

  // TQ-12
  it("lets 12 contenders with stalls past the lease lead one at a time: no write of an old epoch lands", async () => {
    const url = await server.createQueue();
    const databases = Array.from({ length: 12 }, () => new PostgresDatabase(url));
    const random = new Random(4);
    const deadline = Date.now() + PATIENCE_MS;
    const epochs = new Set<number>();
    let written = 0;
    let refused = 0;
    const contend = async (database: PostgresDatabase, index: number): Promise<void> => {
      while ((refused === 0 || epochs.size <= EPOCHS) && Date.now() < deadline) {
        const leader = await lead(database, `contender-${index}`, LEASE_MS);
        if (leader === undefined) {
          await sleep(random.between(5, 40));
          continue;
        }
        // Writes continue past the lease, like those of a process that was paused in between.
        const stallMs = random.chance(0.5) ? LEASE_MS * 1.5 : 20;
        for (let i = 0; i < 4; i++) {
          const answer = await leader
            .submit([parseSubmit({ executor: "none", input: { i } }, 3)])
            .catch(() => undefined);
          if (answer === undefined) refused++;
          else {
            written++;
            epochs.add(leader.epoch);
          }
          await sleep(stallMs / 2);
        }
        leader.end();
      }
    };
    await Promise.all(databases.map(contend));
    const result = await audit(url, { allTerminal: false });
    expect(result.problems).toEqual([]);
    expect(result.tasks).toBe(written);
    expect(refused).toBeGreaterThan(0);
    expect(result.epochs).toBeGreaterThan(EPOCHS);
    const writers = await server.query(
      url,
      "select epoch from task_events where event_type = 'created' group by epoch having count(distinct node_id) > 1",
    );
    expect(writers).toEqual([]);
    await Promise.all(databases.map((database) => database.close()));
  });
});
