/**
 * The queue beside graphile-worker and pg-boss: one PostgreSQL server, one run, no-op tasks.
 *
 *     npm run bench:queue [-- --count 50000 --rounds 3 --finished 1000000]
 *
 * Rounds alternate, so that a noisy machine is noisy for all; the table shows medians.
 */

import { parseArgs } from "node:util";
import { TestPostgres } from "../../test/postgres/server.ts";
import { benchOurs } from "./ours.ts";
import { benchGraphile, benchPgBoss, type Speeds } from "./peers.ts";

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "50000" },
    rounds: { type: "string", default: "3" },
    only: { type: "string", default: "" },
  },
});
const count = Number(values.count);
const rounds = Number(values.rounds);
const concurrency = 24;

const contenders: Readonly<Record<string, (url: string) => Promise<Speeds>>> = {
  hyperscale: (url) => benchOurs(url, count, concurrency),
  "graphile-worker": (url) => benchGraphile(url, count, concurrency),
  "pg-boss": (url) => benchPgBoss(url, count),
};

const server = await TestPostgres.start({
  settings: { shared_buffers: "256MB", max_wal_size: "4GB" },
});
try {
  for (let round = 1; round <= rounds; round++) {
    for (const [name, bench] of Object.entries(contenders)) {
      if (values.only !== "" && !values.only.split(",").includes(name)) continue;
      const speeds = await bench(await server.createDatabase());
      console.log(
        `${round} ${name.padEnd(16)} ${speeds.submitsPerSecond.toFixed(0).padStart(8)} submits/s ${speeds.tasksPerSecond.toFixed(0).padStart(8)} tasks/s`,
      );
    }
  }
} finally {
  await server.stop();
}
