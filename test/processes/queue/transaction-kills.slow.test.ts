/** Tasks in transactions of applications while connections break and leaders are killed. */

import pg from "pg";
import { describe, expect, it } from "vitest";
import { Random } from "../../../src/core/base/random.ts";
import { submitInTransaction } from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import { audit } from "./audit.ts";
import { calmSettings, eventually, fastEnvironment, NodeProcess, queueBench } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

/** Ten thousand by hand: QUEUE_TRANSACTIONS=10000. */
const TRANSACTIONS = Number(process.env["QUEUE_TRANSACTIONS"] ?? 1_500);
const APPLICATIONS = 4;
const ROLLED_BACK_SHARE = 0.3;
const BROKEN_SHARE = 0.02;

describe("tasks in transactions", needs(TestPostgres.available(), NO_POSTGRES), () => {
  const bench = queueBench();

  async function connect(database: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: database });
    client.on("error", () => undefined);
    await client.connect();
    return client;
  }

  it("has as many tasks as commits over roll-backs, broken connections and killed leaders", async () => {
    const database = await bench.database();
    const start = (id: string): NodeProcess => {
      const args = ["--database", database, "--node-id", id, "--log-level", "error"];
      return bench.keep(new NodeProcess(args, fastEnvironment));
    };
    let doomed = start("doomed-0");
    await doomed.ready;
    // Tasks claimed by killed workers are soon free again.
    const settings = { ...calmSettings, taskLeaseMs: 3_000 };
    const node = await bench.node({ database, settings });
    await bench.query(database, "create table orders (id int primary key)");
    const random = new Random("transactions");
    let next = 0;
    let kills = 0;

    async function application(): Promise<void> {
      let app = await connect(database);
      while (next < TRANSACTIONS) {
        const order = next++;
        const [fate, victim] = [random.float(), random.float()];
        try {
          await app.query("begin");
          await app.query("insert into orders values ($1)", [order]);
          await submitInTransaction(app, { executor: "sleep", input: { ms: 0, result: order } });
          if (fate < BROKEN_SHARE) {
            const { rows } = await app.query("select pg_backend_pid() as pid");
            const kill = bench.query(database, `select pg_terminate_backend(${rows[0].pid})`);
            // The commit and the end of its connection meet.
            await Promise.all([app.query("commit"), kill]);
          }
          await app.query(fate < ROLLED_BACK_SHARE ? "rollback" : "commit");
        } catch {
          await app.end().catch(() => undefined);
          app = await connect(database);
        }
        if (victim < 4 / TRANSACTIONS) {
          await doomed.end("SIGKILL");
          doomed = start(`doomed-${++kills}`);
        }
      }
      await app.end();
    }
    await Promise.all(Array.from({ length: APPLICATIONS }, application));

    const [{ commits } = { commits: 0 }] = (await bench.query(
      database,
      "select count(*)::int as commits from orders",
    )) as readonly { commits: number }[];
    expect(commits).toBeGreaterThan(TRANSACTIONS * 0.6);
    expect(commits).toBeLessThan(TRANSACTIONS * 0.8);
    const unequal = await bench.query(
      database,
      `select count(*)::int as count from orders o
         full join tasks t on (t.input ->> 'result')::int = o.id where o.id is null or t.id is null`,
    );
    expect(unequal).toEqual([{ count: 0 }]);
    const queue = bench.client(node);
    await eventually("all run", async () => (await queue.status()).counts.SUCCEEDED === commits);
    const result = await audit(database, { allTerminal: true });
    expect(result).toMatchObject({ tasks: commits, problems: [], states: { SUCCEEDED: commits } });
  });
});
