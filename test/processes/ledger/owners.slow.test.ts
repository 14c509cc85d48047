/**
 * Ownership of jobs on three real processes: a deposed owner is rejected, jobs are found by status and owner, and a
 * watcher receives everything once, whichever nodes are killed meanwhile; by the command line and by the interface
 * alike.
 */

import { execFile } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LedgerCluster, until } from "../../../bench/ledger/processes.ts";
import type { JsonObject } from "../../../src/ledger/client.ts";
import { LedgerFollower } from "../../../src/ledger/follower.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { callPatiently } from "./patient.ts";

const BIN = fileURLToPath(new URL("../../../bin/hyperscale.js", import.meta.url));
const LEASE_MS = 1_500;

let cluster: LedgerCluster;
const apis = (): string => cluster.places.map(({ api }) => api).join(",");

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly errors: string;
}

function hyperscale(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [BIN, ...args, "--dir", cluster.dir],
      { timeout: PATIENCE_MS },
      (error, out, errors) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, errors });
      },
    );
  });
}

async function ask(method: "GET" | "POST", path: string, body?: unknown): Promise<JsonObject> {
  const call = { method, path, id: randomUUID(), ...(body === undefined ? {} : { body }) };
  return (await callPatiently({ api: apis(), dir: cluster.dir }, call)).body;
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
  it("acts while nothing has changed, and is rejected once it was deposed", async () => {
    const jobId = await submit();
    const events = `/v1/jobs/${jobId}/events`;
    const read = (): Promise<JsonObject> => ask("GET", `/v1/jobs/${jobId}?level=strong`);
    const accept = (owned: JsonObject): Promise<JsonObject> =>
      ask("POST", events, { event: "accepted", ifSeq: 0, ifFence: Number(owned["view"]) });
    let before = await read();
    let first = await accept(before);
    // A busy machine may depose an owner between the two.
    while (first["reason"] === "FENCE_MOVED") {
      before = await read();
      first = await accept(before);
    }
    const fence = Number(before["view"]);
    expect(first).toMatchObject({ answer: "committed", outcome: "applied", seq: 1 });
    const late = await ask("POST", events, { event: "accepted", dc: "dc2", ifSeq: 0 });
    expect(late).toMatchObject({ answer: "conflict", reason: "SEQ_MOVED", seq: 1, fence });

    const owner = cluster.node(String(before["primary"]));
    owner.kill("SIGKILL");
    await owner.ended;
    const put = ["ledger", "put", jobId, "--api", apis(), "--event", "complete"];
    // The next leader has a higher fence, and reports it.
    const refused = await hyperscale(...put, "--if-fence", String(fence));
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.errors).toMatch(/FENCE_MOVED: the job has another owner; it is at place \d+/);
    const now = await read();
    expect(now).toMatchObject({ job: { status: "ACCEPTED" } });
    const done = await hyperscale(...put, "--if-fence", String(now["view"]), "--if-seq", "1");
    expect(done).toMatchObject({ code: 0 });
    expect(done.out).toContain("outcome  applied");
    cluster.start(String(before["primary"]));
    await cluster.ready(String(before["primary"]));
  });
});

describe("the jobs of a node", () => {
  it("are listed by status and owner", async () => {
    const jobId = await submit();
    await ask("POST", `/v1/jobs/${jobId}/events`, { event: "accepted" });
    const { primary } = await ask("GET", `/v1/jobs/${jobId}?level=strong`);
    const listed = ["ledger", "jobs", "--api", apis(), "--prefix", jobId, "--json"];
    const owner = ["--owner", String(primary), "--status", "accepted,completed"];
    const mine = JSON.parse((await hyperscale(...listed, ...owner)).out) as JsonObject;
    expect(mine).toMatchObject({ jobs: [{ jobId, status: "ACCEPTED", owner: primary }] });
    const other = await hyperscale(...listed, "--status", "created");
    expect(JSON.parse(other.out)).toEqual({ jobs: [], more: false });
    const wrong = await hyperscale(...listed, "--status", "sleeping");
    expect(wrong).toMatchObject({ code: 2 });
    expect(wrong.out).toContain('status \\"sleeping\\": one of absent, created');
  });
});

describe("a session", () => {
  it("reads its own writes through any node, and is kept in a file", async () => {
    const file = join(cluster.dir, "session.txt");
    const on = (name: string): string[] => ["--api", cluster.place(name).api, "--session", file];
    const put = await hyperscale("ledger", "put", "--spec", "x", "--json", ...on("n1"));
    const { jobId } = JSON.parse(put.out) as { jobId: string };
    for (const [at, name] of ["n2", "n3", "n1"].entries()) {
      const more = ["--event", "accepted", "--workers", String(at)];
      expect((await hyperscale("ledger", "put", jobId, ...more, ...on(name))).code).toBe(0);
      const read = await hyperscale(
        "ledger",
        "get",
        jobId,
        "--json",
        ...on(name === "n1" ? "n2" : "n1"),
      );
      expect(JSON.parse(read.out)).toMatchObject({ job: { accepted: [{ workerCount: at }] } });
    }
    expect(readFileSync(file, "utf8")).toMatch(new RegExp(`^1 - .*${jobId}=[3-9]`));
    writeFileSync(file, "nonsense");
    expect((await hyperscale("ledger", "get", jobId, ...on("n1"))).code).toBe(1);
  });
});

describe("a run", () => {
  it("is reported step by step, and an invalid transition is rejected", async () => {
    const jobId = await submit();
    const digest = "ab".repeat(32);
    const path = `/v1/jobs/${jobId}/events`;
    const outcomes: unknown[] = [];
    for (const body of [
      { event: "queued", reason: "no cores" },
      { event: "started", startAtMs: 1, digest, shares: { dc1: 4 } },
      { event: "dispatched", cores: 4, digest },
      { event: "accepted", workers: 4 },
      { event: "setup", workflow: "buy", value: "token" },
    ]) {
      const answer = await ask("POST", path, body);
      outcomes.push(answer["reason"] ?? answer["outcome"]);
    }
    expect(outcomes).toEqual(["applied", "NOT_ACCEPTED", "applied", "applied", "applied"]);
    const put = ["ledger", "put", jobId, "--api", apis(), "--json", "--event"];
    const start = [
      "started",
      "--start-at",
      "1704931200000",
      "--digest",
      digest,
      "--share",
      "dc1=4",
    ];
    expect((await hyperscale(...put, ...start)).code).toBe(0);
    for (const body of [
      { event: "paused", requestor: "alice" },
      { event: "resumed", requestor: "alice" },
      { event: "scaled", permille: 1_500, requestor: "alice" },
      { event: "result", digest, bytes: 99, completed: 10 },
      { event: "complete" },
    ]) {
      expect(await ask("POST", path, body)).toMatchObject({ outcome: "applied" });
    }
    const read = await ask("GET", `/v1/jobs/${jobId}?level=strong`);
    expect(read["job"]).toMatchObject({
      status: "COMPLETED",
      run: {
        dispatched: [{ dcId: "dc1", cores: 4, digest }],
        started: { startAtMs: 1_704_931_200_000, planDigest: digest },
        permille: 1_500,
        setUps: [{ workflow: "buy", value: Buffer.from("token").toString("base64") }],
        results: [{ dcId: "dc1", digest, bytes: 99, completed: 10 }],
      },
    });
    const again = JSON.parse((await hyperscale(...put, "abort", "--reason", "late")).out);
    expect(again).toMatchObject({ outcome: "alreadyTerminal", reason: "COMPLETED" });
    const wrong = await hyperscale(...put, "started", "--share", "dc1");
    expect(wrong).toMatchObject({ code: 2 });
  });
});

describe("a watcher", () => {
  it("receives every event once and in order, whichever node is killed", async () => {
    const jobId = await submit();
    const heard: { readonly seq: number; readonly eventId: string }[] = [];
    const moves: string[] = [];
    const follower = new LedgerFollower(
      { api: apis(), dir: cluster.dir },
      {
        ...{ job: jobId, prefix: "", after: [], since: "start" },
        onItem: (item) => {
          expect(item.kind).toBe("event");
          if (item.kind !== "event") return;
          heard.push({ seq: item.seq, eventId: item.event.eventId });
        },
        onMoved: (why) => moves.push(why),
      },
    );
    const running = follower.run();
    const sent = [`create/${jobId}`];
    for (const { name } of cluster.places) {
      const victim = cluster.node(name);
      for (let i = 0; i < 5; i++) {
        const eventId = randomUUID();
        sent.push(eventId);
        const posting = ask("POST", `/v1/jobs/${jobId}/events`, { event: "accepted", eventId });
        if (i === 2) victim.kill("SIGKILL");
        expect(await posting).toMatchObject({ answer: "committed" });
      }
      await victim.ended;
      cluster.start(name);
      await cluster.ready(name);
    }
    await until("all was heard", PATIENCE_MS, () => heard.length >= sent.length);
    follower.stop();
    await running;
    expect(heard.map(({ eventId }) => eventId)).toEqual(sent);
    const places = heard.map(({ seq }) => seq);
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(moves.length).toBeGreaterThan(0);
  });

  it("is also a command that continues at a given index", async () => {
    const jobId = await submit();
    await ask("POST", `/v1/jobs/${jobId}/events`, { event: "accepted", eventId: "a1" });
    await ask("POST", `/v1/jobs/${jobId}/events`, { event: "cancel", eventId: "c1" });
    const watch = ["ledger", "watch", "--api", apis(), "--json"];
    const all = await hyperscale(...watch, jobId, "--count", "3");
    expect(all.code).toBe(0);
    const lines = all.out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as JsonObject);
    expect(lines.map(({ seq, outcome }) => [seq, outcome])).toEqual([
      [0, "applied"],
      [1, "applied"],
      [2, "applied"],
    ]);
    const rest = await hyperscale(...watch, jobId, "--after", "1", "--count", "1");
    expect(JSON.parse(rest.out)).toMatchObject({ seq: 2, event: { eventId: "c1" } });
    const many = await hyperscale(
      ...watch,
      "--prefix",
      jobId,
      "--after",
      `${jobId}=0`,
      "--count",
      "2",
    );
    expect(many.out.trim().split("\n")).toHaveLength(2);
    const wrong = await hyperscale(...watch, jobId, "--after", "x");
    expect(wrong).toMatchObject({ code: 2 });
  });
});

describe("a cancel while most nodes are down", () => {
  it("is passed on at once, and committed when they are back (G-18)", async () => {
    const jobId = await submit();
    const [asked, ...others] = cluster.places;
    const { api = "", name = "" } = asked ?? {};
    for (const place of others) {
      cluster.node(place.name).kill("SIGKILL");
      await cluster.node(place.name).ended;
    }
    const put = ["ledger", "put", jobId, "--api", api, "--event", "cancel", "--event-id", "stop"];
    const { code, out } = await hyperscale(...put);
    expect([code, out]).toEqual([0, expect.stringContaining("passed on, not committed")]);
    for (const place of others) cluster.start(place.name);
    for (const place of others) await cluster.ready(place.name);
    await until(`what ${name} has passed on is committed`, PATIENCE_MS, async () => {
      const body = await ask("GET", `/v1/jobs/${jobId}?level=strong`);
      return (body["job"] as JsonObject | undefined)?.["status"] === "CANCELLING";
    });
  });
});
