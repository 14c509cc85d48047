/**
 * A node that is asked to stop lets others lead first. The lease here is far longer than any test waits: a primary that
 * stopped without a hand-over would have no successor in time.
 */

import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { LedgerCluster } from "../../../bench/ledger/processes.ts";
import { callLedger, type JsonObject } from "../../../src/ledger/client.ts";

const LEASE_MS = 600_000;
const JOBS = 6;

let cluster: LedgerCluster;

beforeAll(async () => {
  cluster = await LedgerCluster.prepare({ nodes: 3, leaseMs: LEASE_MS });
  await cluster.startAll();
});

afterAll(() => cluster?.stop());

async function ask(
  method: "GET" | "POST",
  path: string,
  body?: unknown,
  names: readonly string[] = ["n1", "n2", "n3"],
): Promise<JsonObject> {
  const id = randomBytes(8).toString("hex");
  const api = names.map((name) => cluster.place(name).api).join(",");
  // Pauses double: ten of them add up to a minute and a half, and a group without a primary is reported as such.
  const retry = { retriesMax: 10, delayMs: 100, jitter: 0.5, attemptTimeoutMs: 30_000 };
  const call = { method, path, id, retry, ...(body === undefined ? {} : { body }) };
  const answer = await callLedger({ api, dir: cluster.dir }, call);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
}

const newKey = (): string => `test:1:${randomBytes(8).toString("hex")}`;

it("lets others lead its jobs and its shards before it ends at SIGTERM", async () => {
  const jobs: string[] = [];
  for (let at = 0; at < JOBS; at++) {
    jobs.push(String((await ask("POST", "/v1/jobs", { key: newKey(), spec: "work" }))["jobId"]));
  }
  const first = await ask("GET", `/v1/jobs/${jobs[0]}?level=strong`);
  const primary = String(first["primary"]);
  cluster.node(primary).kill("SIGTERM");
  expect(await cluster.node(primary).ended).toBe(0);
  expect(cluster.node(primary).events.at(-1)).toMatchObject({ event: "stopped", leading: 0 });
  const others = ["n1", "n2", "n3"].filter((name) => name !== primary);
  for (const jobId of jobs) {
    const event = { event: "accepted", eventId: "a1", dc: "dc1", workers: 4 };
    const put = await ask("POST", `/v1/jobs/${jobId}/events`, event, others);
    expect(put).toMatchObject({ answer: "committed", outcome: "applied" });
    const read = await ask("GET", `/v1/jobs/${jobId}?level=strong`, undefined, others);
    expect(others).toContain(read["primary"]);
  }
  // Each node leads a third of the shards: with this many keys some hit one that the stopped node led.
  for (let at = 0; at < 4 * JOBS; at++) {
    await ask("POST", "/v1/jobs", { key: newKey(), spec: "more" }, others);
  }
});
