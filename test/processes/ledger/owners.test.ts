/**
 * What whoever acts on jobs needs of three real processes: an owner that was deposed is refused, by the
 * command line and by the interface alike.
 */

import { execFile } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LedgerCluster } from "../../../bench/ledger/processes.ts";
import { callLedger, type JsonObject } from "../../../src/ledger/client.ts";
import { PATIENCE_MS } from "../../patience.ts";

const BIN = fileURLToPath(new URL("../../../bin/hyperscale.js", import.meta.url));
const LEASE_MS = 1_500;
const RETRY = { retriesMax: 15, delayMs: 1, jitter: 0.5, attemptTimeoutMs: 30_000 };

let cluster: LedgerCluster;
const apis = (): string => cluster.places.map(({ api }) => api).join(",");

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly errors: string;
}

function hyperscale(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [BIN, ...args], { timeout: PATIENCE_MS }, (error, out, errors) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, errors });
    });
  });
}

async function ask(method: "GET" | "POST", path: string, body?: unknown): Promise<JsonObject> {
  const call = { method, path, id: randomUUID(), retry: RETRY };
  const reply = await callLedger(
    { api: apis() },
    { ...call, ...(body === undefined ? {} : { body }) },
  );
  return reply.body;
}

async function submit(): Promise<string> {
  const key = `test:1:${randomBytes(8).toString("hex")}`;
  const { jobId } = await ask("POST", "/v1/jobs", { key, spec: "work" });
  return String(jobId);
}

beforeAll(async () => {
  cluster = await LedgerCluster.prepare({ nodes: 3, leaseMs: LEASE_MS });
  await cluster.startAll();
});

afterAll(() => cluster?.stop());

describe("an owner", () => {
  it("acts while nothing has moved, and is refused once it was deposed", async () => {
    const jobId = await submit();
    const before = await ask("GET", `/v1/jobs/${jobId}?level=strong`);
    const fence = Number(before["view"]);
    const events = `/v1/jobs/${jobId}/events`;
    const first = await ask("POST", events, { event: "accepted", ifSeq: 0, ifFence: fence });
    expect(first).toMatchObject({ answer: "committed", outcome: "applied", seq: 1 });
    const late = await ask("POST", events, { event: "accepted", dc: "dc2", ifSeq: 0 });
    expect(late).toMatchObject({ answer: "conflict", reason: "SEQ_MOVED", seq: 1, fence });

    const owner = cluster.node(String(before["primary"]));
    owner.kill("SIGKILL");
    await owner.ended;
    const put = ["ledger", "put", jobId, "--api", apis(), "--event", "complete"];
    // Whoever leads next has a higher fence, and says so.
    const refused = await hyperscale(...put, "--if-fence", String(fence));
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.errors).toMatch(/FENCE_MOVED: the job has another owner; it is at place \d+/);
    const now = await ask("GET", `/v1/jobs/${jobId}?level=strong`);
    expect(now).toMatchObject({ job: { status: "ACCEPTED" } });
    const done = await hyperscale(...put, "--if-fence", String(now["view"]), "--if-seq", "1");
    expect(done).toMatchObject({ code: 0 });
    expect(done.out).toContain("outcome  applied");
    cluster.start(String(before["primary"]));
    await cluster.ready(String(before["primary"]));
  });
});
