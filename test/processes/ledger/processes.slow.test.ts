/**
 * Three real processes: what was acknowledged is there after kill -9, another node leads within the lease,
 * a restarted node comes back, and one key makes one job whatever happens. Real time, since real processes
 * have no other; nothing here asserts how long something took beyond a generous limit.
 */

import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LedgerCluster, until } from "../../../bench/ledger/processes.ts";
import type { LedgerAnswer, LedgerRequest } from "../../../src/core/ledger/node/messages.ts";
import type { JsonObject } from "../../../src/ledger/client.ts";
import { LedgerStream } from "../../../src/ledger/stream-client.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { callPatiently } from "./patient.ts";

const LEASE_MS = 1_500;

let cluster: LedgerCluster;
const apis = (): string => cluster.places.map(({ api }) => api).join(",");

async function ask(
  method: "GET" | "POST",
  path: string,
  body?: unknown,
  api = apis(),
): Promise<{ status: number; body: JsonObject }> {
  const id = randomBytes(8).toString("hex");
  return callPatiently(
    { api, dir: cluster.dir },
    { method, path, id, ...(body === undefined ? {} : { body }) },
  );
}

async function submit(key: string): Promise<string> {
  const { status, body } = await ask("POST", "/v1/jobs", { key, spec: "work" });
  expect(status, JSON.stringify(body)).toBe(200);
  return String(body["jobId"]);
}

const newKey = (): string => `test:1:${randomBytes(8).toString("hex")}`;

beforeAll(async () => {
  cluster = await LedgerCluster.prepare({
    nodes: 3,
    leaseMs: LEASE_MS,
    config: { checkpoint: { entries: 300, seconds: 3 } },
  });
  await cluster.startAll();
});

afterAll(() => cluster?.stop());

describe("a ledger of three processes", () => {
  it("commits through any node and reads it strongly through any other", async () => {
    const jobId = await submit(newKey());
    const accepted = {
      event: "accepted",
      eventId: "a1",
      dc: "dc1",
      workers: 4,
      durability: "GLOBAL",
    };
    const put = await ask("POST", `/v1/jobs/${jobId}/events`, accepted, cluster.place("n2").api);
    expect(put.body).toMatchObject({ answer: "committed", outcome: "applied", level: "GLOBAL" });
    for (const { api } of cluster.places) {
      const read = await ask("GET", `/v1/jobs/${jobId}?level=strong`, undefined, api);
      expect(read.body).toMatchObject({
        job: { status: "ACCEPTED", appliedSeq: put.body["seq"] },
      });
    }
    const again = await ask("POST", `/v1/jobs/${jobId}/events`, accepted, cluster.place("n3").api);
    expect(again.body).toMatchObject({ duplicate: true, seq: put.body["seq"] });
    const progress = { event: "progress", eventId: "p1", dc: "dc1", completed: 3, failed: 0 };
    const kept = await ask("POST", `/v1/jobs/${jobId}/events`, progress);
    expect(kept.body).toMatchObject({ answer: "committed", outcome: "kept", level: "LOCAL" });
  });

  it("keeps what it acknowledged when the primary is killed, continues, and accepts it back", async () => {
    const jobId = await submit(newKey());
    const before = await ask("GET", `/v1/jobs/${jobId}?level=strong`);
    const primary = String(before.body["primary"]);
    await ask("POST", `/v1/jobs/${jobId}/events`, { event: "accepted", eventId: "a1" });
    const victim = cluster.node(primary);
    victim.kill("SIGKILL");
    await victim.ended;
    const survivors = cluster.places.filter(({ name }) => name !== primary);
    const others = survivors.map(({ api }) => api).join(",");
    const done = { event: "complete", eventId: "c1", status: "passed" };
    const put = await ask("POST", `/v1/jobs/${jobId}/events`, done, others);
    expect(put.body).toMatchObject({ answer: "committed", outcome: "applied" });
    const read = await ask("GET", `/v1/jobs/${jobId}?level=strong`, undefined, others);
    const job = read.body["job"] as JsonObject;
    expect(job["status"]).toBe("COMPLETED");
    expect((job["events"] as JsonObject[]).map((event) => event["eventId"])).toEqual([
      `create/${jobId}`,
      "a1",
      "c1",
    ]);
    cluster.start(primary);
    await cluster.ready(primary);
    const { api } = cluster.place(primary);
    await until("the restarted node has caught up", PATIENCE_MS, async () => {
      const { body } = await ask("GET", `/v1/jobs/${jobId}?level=eventual`, undefined, api);
      return (body["job"] as JsonObject | undefined)?.["status"] === "COMPLETED";
    });
    await logged(primary, /Opening WAL at/);
    await logged(primary, /Recovery: replaying \d+ WAL entries after checkpoint/);
  });

  it("makes one job of a hundred equal submissions through three nodes, one of them killed", async () => {
    const streams = await Promise.all(
      cluster.places.map(({ api }) =>
        LedgerStream.connect(api, { ...cluster.tokenAt(api), timeoutMs: PATIENCE_MS }),
      ),
    );
    const key = newKey();
    const request: LedgerRequest = {
      ...{ kind: "submit", key, spec: new TextEncoder().encode("once"), assignedDcs: ["dc1"] },
    };
    const answers = Array.from({ length: 100 }, (_, at) =>
      (streams[at % streams.length] as LedgerStream).ask(request),
    );
    const victim = cluster.node("n2");
    victim.kill("SIGKILL");
    const named = (await Promise.all(answers)).flatMap(jobOf);
    await victim.ended;
    const jobId = await submitAgain(key);
    expect(new Set([...named, jobId])).toEqual(new Set([jobId]));
    cluster.start("n2");
    await cluster.ready("n2");
    expect(await submitAgain(key)).toBe(jobId);
    const created = async (): Promise<number> => {
      const audit = await ask("GET", "/v1/audit?limit=10000", undefined, cluster.place("n1").api);
      return (audit.body["events"] as JsonObject[]).filter(
        (event) => event["kind"] === "JobCreated" && event["jobId"] === jobId,
      ).length;
    };
    // The others have decided it; n1 may learn of it a little later.
    await until("n1 knows the job", PATIENCE_MS, async () => (await created()) > 0);
    expect(await created()).toBe(1);
    for (const stream of streams) stream.close();
  });

  it("ends with 0 at SIGTERM, and starts again from its checkpoint with nothing to replay", async () => {
    const jobId = await submit(newKey());
    const { api } = cluster.place("n3");
    cluster.node("n3").kill("SIGTERM");
    expect(await cluster.node("n3").ended).toBe(0);
    cluster.start("n3");
    await cluster.ready("n3");
    await logged("n3", /Recovering from checkpoint [0-9a-f]{32} at LSN \d+/);
    const read = await ask("GET", `/v1/jobs/${jobId}?level=strong`, undefined, api);
    expect(read.body).toMatchObject({ answer: "job", job: { jobId } });
  });
});

/** Waits for a log line: the log and the ready message come through different pipes. */
async function logged(name: string, line: RegExp): Promise<void> {
  await until(`${name} has logged ${line}`, PATIENCE_MS, () =>
    line.test(cluster.node(name).errors),
  );
}

function jobOf(answer: LedgerAnswer | null): string[] {
  if (answer?.kind !== "submitted" || answer.answer.kind !== "accepted") return [];
  return [answer.answer.jobId];
}

async function submitAgain(key: string): Promise<string> {
  const { status, body } = await ask("POST", "/v1/jobs", { key, spec: "once" });
  expect(status, JSON.stringify(body)).toBe(200);
  return String(body["jobId"]);
}
