/** Races of single tasks and recovery of leases on a real server: the smoke test of the queue on PostgreSQL. */

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Random } from "../../../src/core/base/random.ts";
import { parseSubmit } from "../../../src/queue/api/submit-request.ts";
import type { Grant, Report } from "../../../src/queue/api/types.ts";
import type { Leader } from "../../../src/queue/leader/leader.ts";
import { type Database, type Row, sqlArray } from "../../../src/queue/store/database.ts";
import { PostgresDatabase } from "../../../src/queue/store/postgres.ts";
import { needs } from "../../needs.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { audit } from "./audit.ts";
import { eventually } from "./fixtures.ts";
import { lead } from "./leading.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const RACES = 600;
const RACES_AT_ONCE = 200;

describe("races of tasks on PostgreSQL", needs(TestPostgres.available(), NO_POSTGRES), () => {
  let server: TestPostgres;

  beforeAll(async () => {
    server = await TestPostgres.start();
  });

  afterAll(async () => {
    await server.stop();
  });

  /** A leader that polls so rarely that a task it lost is not found again, with one task and a worker that asks. */
  async function leadOneTask(intercept: Intercept) {
    const url = await server.createQueue();
    const database = new PostgresDatabase(url);
    const leader = await lead(interceptReads(database, intercept), "judge", 120_000, {
      pollIntervalMs: PATIENCE_MS,
    });
    if (leader === undefined) throw new Error("nobody else contends");
    const run = randomUUID();
    await leader.register(nodeNamed("a", run));
    await leader.submit([parseSubmit({ executor: "race" }, 3)]);
    const acquire = () => leader.acquire({ nodeId: "a", run, max: 1, waitMs: PATIENCE_MS });
    const end = async (): Promise<void> => {
      leader.end();
      await database.close();
    };
    return { leader, acquire, end };
  }

  it("grants a task that is released while its lane is read (TQ-21)", async () => {
    const read = new Signal();
    const answer = new Signal();
    const { leader, acquire, end } = await leadOneTask(async (statement, query) => {
      const rows = await query();
      if (statement !== "lane-load" || read.isSet) return rows;
      read.set();
      await answer.wait;
      return rows;
    });
    const [grant] = await acquire();
    if (grant === undefined) throw new Error("it got nothing");
    // The database answers with a lane that is empty; the task is put back before the answer arrives.
    leader.memory.lanes.reopen("race", 0);
    leader.dispatch();
    await read.wait;
    await leader.release("a", [grant]);
    const again = acquire();
    answer.set();
    expect(await again).toMatchObject([{ task_id: grant.task_id, attempt_id: 2 }]);
    await end();
  });

  it("grants a task again whose lease expired, and rejects its old holder (TQ-33)", async () => {
    const url = await server.createQueue();
    const database = new PostgresDatabase(url);
    const leader = await lead(database, "judge", 120_000, {
      taskLeaseMs: 500,
      leaseCleanupMs: 100,
    });
    if (leader === undefined) throw new Error("nobody else contends");
    const runs = { a: randomUUID(), b: randomUUID() };
    for (const [node, run] of Object.entries(runs)) await leader.register(nodeNamed(node, run));
    const acquire = (nodeId: "a" | "b") =>
      leader.acquire({ nodeId, run: runs[nodeId], max: 1, waitMs: PATIENCE_MS });
    await leader.submit([parseSubmit({ executor: "race" }, 1_000)]);
    const [first] = await acquire("a");
    if (first === undefined) throw new Error("it got nothing");
    // Leases of later attempts may expire, too, before a busy machine reports.
    const refused = await eventually("an attempt ends in time", async () => {
      const [next] = await acquire("b");
      if (next === undefined) return undefined;
      expect(next.attempt_id).toBeGreaterThan(first.attempt_id);
      const tokens = await leader.report("b", [reportOf(first), reportOf(next)]);
      return tokens.includes(next.lease_token) ? undefined : tokens;
    });
    expect(refused).toEqual([first.lease_token]);
    leader.end();
    await database.close();
    expect(await audit(url, { allTerminal: true })).toMatchObject({
      ...{ problems: [], tasks: 1, states: { SUCCEEDED: 1 } },
    });
  });

  it("grants a task again whose claim the database rejected", async () => {
    const failed = new Signal();
    const { acquire, end } = await leadOneTask(async (statement, query) => {
      if (statement !== "claim" || failed.isSet) return query();
      failed.set();
      throw new Error("canceling statement due to user request");
    });
    await expect(acquire()).rejects.toThrow("canceling statement");
    expect(await acquire()).toMatchObject([{ attempt_id: 1 }]);
    await end();
  });

  it("ends each of 600 raced tasks in exactly one terminal state (TQ-21)", async () => {
    const url = await server.createQueue();
    const database = new PostgresDatabase(url);
    const leader = await lead(database, "judge", 120_000);
    if (leader === undefined) throw new Error("nobody else contends");
    const random = new Random("races");
    const runs = { a: randomUUID(), b: randomUUID() };
    for (const [node, run] of Object.entries(runs)) await leader.register(nodeNamed(node, run));
    const race = async (): Promise<void> => {
      const [submitted] = await leader.submit([parseSubmit({ executor: "race" }, 3)]);
      const id = submitted !== undefined && "id" in submitted ? submitted.id : 0;
      // Two workers for one task: one of them gets it.
      const answers = await Promise.all(
        Object.entries(runs).map(([node, run]) => leader.acquireTask(node, run, id)),
      );
      const granted = answers.flat();
      expect(granted).toHaveLength(1);
      const [grant] = granted;
      if (grant === undefined) return;
      await raceOut(leader, grant, id, random.below(3));
    };
    for (let from = 0; from < RACES; from += RACES_AT_ONCE)
      await Promise.all(Array.from({ length: RACES_AT_ONCE }, race));
    leader.end();
    await database.close();
    const result = await audit(url, { allTerminal: true });
    expect(result.problems).toEqual([]);
    expect(result.tasks).toBe(RACES);
    expect(result.lateResults).toBeGreaterThan(100);
    expect(Object.keys(result.states).sort()).toEqual(["CANCELLED", "SUCCEEDED"]);
  });
});

/** Completion against cancel, two completions, or a requeue against a late result. */
async function raceOut(leader: Leader, grant: Grant, id: number, kind: number): Promise<void> {
  const report = reportOf(grant);
  if (kind === 0) {
    await Promise.all([leader.cancel([id], "race"), leader.report("a", [report])]);
  } else if (kind === 1) {
    await Promise.all([leader.report("a", [report]), leader.report("b", [report])]);
  } else {
    await Promise.all([leader.release("a", [grant]), leader.report("a", [report])]);
    const run = leader.memory.nodes.get("b")?.registration.run ?? "";
    const second = await nextGrant(leader, run, id);
    if (second !== undefined) await leader.report("b", [reportOf(second), report]);
  }
}

/** The next grant of a task, which the leader may be reading from the database; undefined once it finished. */
async function nextGrant(leader: Leader, run: string, id: number): Promise<Grant | undefined> {
  return eventually("the task is granted again", async () => {
    const [grant] = await leader.acquireTask("b", run, id);
    if (grant !== undefined) return { grant };
    const [row] = await leader.writer.read("outcomes", [sqlArray([id])]);
    return row?.["finished"] === true && { grant: undefined };
  }).then(({ grant }) => grant);
}

function reportOf(grant: Grant): Report {
  return {
    task_id: grant.task_id,
    lease_token: grant.lease_token,
    attempt_id: grant.attempt_id,
    status: "completed",
    result: JSON.stringify({ attempt: grant.attempt_id }),
    error: null,
    elapsed_ms: 0,
    start_noted: false,
  };
}

function nodeNamed(node: string, run: string) {
  return {
    node_id: node,
    run,
    role: "worker",
    url: null,
    executor_types: ["race"],
    capabilities: {},
    max_parallel: 1,
  };
}

class Signal {
  isSet = false;
  #resolve: () => void = () => undefined;
  readonly wait = new Promise<void>((resolve) => {
    this.#resolve = resolve;
  });

  set(): void {
    this.isSet = true;
    this.#resolve();
  }
}

type Intercept = (
  statement: string,
  query: () => Promise<readonly Row[]>,
) => Promise<readonly Row[]>;

function interceptReads(database: PostgresDatabase, intercept: Intercept): Database {
  return {
    kind: database.kind,
    query: (statement, parameters, connection) =>
      intercept(statement, () => database.query(statement, parameters, connection)),
    session: (work) => database.session(work),
    migrate: (migrations) => database.migrate(migrations),
    listen: (channel, hear) => database.listen(channel, hear),
    close: () => database.close(),
  };
}
