/** Faults of others cost a healthy worker no attempt: its tasks here may be tried once only. (TQ-34) */

import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterEach, describe, expect, it } from "vitest";
import { QueueClient } from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import { freePort, type Relay, relayTo } from "../ledger/relay.ts";
import {
  calmSettings,
  eventually,
  fastEnvironment,
  hasBegun,
  NodeProcess,
  queueBench,
} from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const LEASE_MS = 3_000;
const settings = { ...calmSettings, taskLeaseMs: LEASE_MS };
const environment = { HYPERSCALE_LEASE_DURATION_SECONDS: String(LEASE_MS / 1_000) };

describe("healthy workers", needs(TestPostgres.available(), NO_POSTGRES), () => {
  const bench = queueBench();
  const relays: Relay[] = [];
  afterEach(async () => {
    await Promise.all(relays.splice(0).map((relay) => relay.close()));
  });

  async function relay(port: number): Promise<readonly [Relay, number]> {
    const made = await relayTo(port);
    relays.push(made[0]);
    return made;
  }

  /** One task that runs for this long, begun on a worker. */
  async function running(client: QueueClient, ms: number): Promise<string> {
    const input = { ms, result: "done" };
    const { id } = await client.submit({ executor: "sleep", input, max_attempts: 1 });
    await hasBegun(client, id);
    return id;
  }

  async function succeedsAtOnce(client: QueueClient, id: string): Promise<void> {
    expect(await client.wait(id)).toMatchObject({ state: "SUCCEEDED", attempt_id: 1 });
  }

  it("get again what a leader granted and did not live to send", async () => {
    const database = await bench.database();
    const port = await freePort();
    const [wire, at] = await relay(port);
    const leader = bench.keep(
      new NodeProcess(
        [
          ...["--database", database, "--node-id", "doomed", "--max-parallel", "0"],
          ...["--listen", `127.0.0.1:${port}`, "--advertise", `http://127.0.0.1:${at}`],
        ],
        // Long enough that a busy machine does not change the leader before it is killed.
        { ...fastEnvironment, HYPERSCALE_LEADER_LEASE_SECONDS: "8" },
      ),
    );
    await leader.ready;
    await bench.node({ database, settings: { maxParallel: 0 } });
    const patient = { pollIntervalMs: 30_000 };
    await bench.node({ database, nodeId: "healthy", role: "worker", settings: patient });
    const client = bench.keep(new QueueClient(`http://127.0.0.1:${port}`));
    // The worker's request has reached the leader; the response is held back.
    await eventually("the worker is known", async () =>
      (await client.status()).nodes.some(({ node_id }) => node_id === "healthy"),
    );
    await sleep(1_000);
    wire.freeze();
    const task = await client.submit({ executor: "sleep", input: { ms: 1 }, max_attempts: 1 });
    const state = `select state, last_assigned_node as node from tasks where id = ${task.id}`;
    await eventually("it is granted", async () => {
      const [row] = await bench.query(database, state);
      return row?.["state"] === "RUNNING" && row["node"] === "healthy";
    });
    await leader.end("SIGKILL");
    await eventually("it ran", async () => {
      const [row] = await bench.query(database, state);
      return row?.["state"] !== "RUNNING" && row?.["state"] !== "QUEUED";
    });
    const [row] = await bench.query(
      database,
      `select state, (select details ->> 'reason' from task_events e
         where e.task_id = t.id and event_type = 'reassigned') as reason from tasks t`,
    );
    expect(row).toEqual({ state: "SUCCEEDED", reason: "undelivered" });
  });

  it("keep a lease whose renewal waits for the database", async () => {
    const database = await bench.database();
    const leader = await bench.node({ database, settings: { ...settings, maxParallel: 0 } });
    await bench.node({ database, role: "worker", settings });
    const client = bench.client(leader);
    const id = await running(client, 4 * LEASE_MS);
    const other = new pg.Client({ connectionString: database });
    await other.connect();
    await other.query("begin");
    await other.query("select from tasks where id = $1 for update", [id]);
    await sleep(2 * LEASE_MS);
    await other.query("rollback");
    await other.end();
    await succeedsAtOnce(client, id);
  });

  it("keep their leases while only their way to the database is silent", async () => {
    const database = await bench.database();
    const [wire, at] = await relay(bench.server().port);
    const leader = await bench.node({ database, settings: { ...settings, maxParallel: 0 } });
    const { pathname } = new URL(database);
    const apart = `postgres://postgres@127.0.0.1:${at}${pathname}`;
    await bench.node({ database: apart, role: "worker", settings });
    const client = bench.client(leader);
    const id = await running(client, 3 * LEASE_MS);
    wire.freeze();
    await sleep(2 * LEASE_MS);
    wire.heal();
    await succeedsAtOnce(client, id);
  });

  it("keep their leases over a leader that stalled for longer than they last", async () => {
    const database = await bench.database();
    const args = ["--database", database, "--max-parallel", "0"];
    const calm = { HYPERSCALE_LEADER_LEASE_SECONDS: "60" };
    const leader = bench.keep(new NodeProcess(args, { ...environment, ...calm }));
    const { url } = await leader.ready;
    const client = bench.keep(new QueueClient(url));
    await bench.node({ database, role: "worker", settings });
    const id = await running(client, 3 * LEASE_MS);
    leader.signal("SIGSTOP");
    await sleep(2 * LEASE_MS);
    leader.signal("SIGCONT");
    await succeedsAtOnce(client, id);
  });
});
