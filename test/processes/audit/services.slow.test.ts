/**
 * Real agents, a ledger node and a queue node, and their audit logs afterwards, read by the built command. Real time:
 * nothing asserts how long anything took.
 */

import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { LedgerCluster } from "../../../bench/ledger/processes.ts";
import { AgentCluster, freshNet, until } from "../../../bench/swim/agents.ts";
import { readAudit } from "../../../src/audit/read.ts";
import { ControlClient } from "../../../src/host/control/client.ts";
import { callLedger, type JsonObject } from "../../../src/ledger/client.ts";
import { LedgerStream } from "../../../src/ledger/stream-client.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { NodeProcess } from "../queue/fixtures.ts";
import { TestPostgres } from "../queue/server.ts";

const bin = fileURLToPath(new URL("../../../bin/hyperscale.js", import.meta.url));
const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

interface Line {
  readonly node: string;
  readonly kind: string;
  readonly subject: string;
  readonly requester: {
    readonly kind: string;
    readonly name: string;
    readonly credential: string;
    readonly address: string;
  };
  readonly detail: Readonly<Record<string, string>>;
}

function hyperscale(...args: readonly string[]): string {
  const env = { ...process.env, HYPERSCALE_OPERATOR: "alice" };
  const { stdout, stderr, status } = spawnSync(process.execPath, [bin, ...args], {
    encoding: "utf8",
    env,
  });
  if (status !== 0) throw new Error(`${args.join(" ")}: ${stderr}`);
  return stdout;
}

function audit(directory: string, ...args: readonly string[]): readonly Line[] {
  const text = hyperscale("audit", directory, "--json", ...args);
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}

/** Whether entries of all these kinds are written; read in this process, as polling starts none. */
async function isRecorded(directory: string, subject: string | null, ...kinds: readonly string[]) {
  const filter = subject === null ? {} : { subject };
  const seen = new Set<string>();
  for await (const { kind } of readAudit(join(directory, "audit"), filter)) seen.add(kind);
  return kinds.every((kind) => seen.has(kind));
}

/** Reads over a new connection: `hyperscale` above blocks long enough for a kept one to be closed by the other side. */
async function metric(address: string, name: string, token?: string): Promise<number> {
  const client = new ControlClient({ address, token });
  const { text } = await client.call("GET", "/metrics").finally(() => client.close());
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${name} `));
  if (line === undefined) throw new Error(`there is no metric ${name}`);
  return Number(line.slice(name.length));
}

const BOUNDS = ["--audit-max-bytes", "4194304", "--audit-keep-age", "2d"];
const BOUNDED = { bytesMax: "4194304", ageMsMax: "172800000" };
const credential: unknown = expect.stringMatching(/^token:[0-9a-f]{8}$/);
const BY_ALICE = { kind: "operator", name: "alice", credential };

describe("the audit log of an agent (SWIM-12)", () => {
  it("records joins, failures, leaves and removals, with source and requester", async () => {
    const cluster = new AgentCluster({ net: freshNet(), size: 3, profile: "dc" });
    endings.push(() => cluster.stop());
    cluster.start(1, ["--voters", "n1", "--role", "manager", ...BOUNDS]);
    cluster.start(2);
    cluster.start(3);
    await cluster.converged();
    expect(cluster.agents.map(({ running }) => running)).toEqual([true, true, true]);
    const [first, second, third] = cluster.agents;
    const directory = join(cluster.directory, "n1");
    const api = first?.api ?? "";
    const dir = ["--dir", cluster.directory];
    const seen = (subject: string, ...kinds: readonly string[]) =>
      until(
        () => isRecorded(directory, subject, ...kinds),
        PATIENCE_MS,
        `n1 records ${kinds} of ${subject}`,
      );

    second?.kill("SIGKILL");
    await seen("n2", "member.joined", "member.failed");
    hyperscale("leave", "--failed", "n2", "--api", api, ...dir);
    hyperscale("leave", "--api", third?.api ?? "", ...dir);
    await seen("n3", "member.joined", "member.left");
    hyperscale("keys", "reload", "--api", api, ...dir);
    expect(await metric(api, "hyperscale_agent_audit_recorded_total")).toBeGreaterThan(3);
    expect(await metric(api, "hyperscale_agent_audit_dropped_total")).toBe(0);
    first?.kill("SIGTERM");
    await first?.ended;

    const lines = audit(directory);
    const of = (kind: string, subject: string) =>
      lines.filter((line) => line.kind === kind && line.subject === subject);
    expect(of("audit.opened", "n1")).toHaveLength(1);
    expect(of("audit.opened", "n1")[0]?.detail).toMatchObject(BOUNDED);
    const [joined] = of("member.joined", "n2");
    expect(joined?.requester).toMatchObject({ kind: "peer", name: "n2", address: second?.address });
    expect(["n1", "n3"]).toContain(of("member.failed", "n2")[0]?.requester.name);
    expect(of("member.removed", "n2")[0]?.requester).toMatchObject(BY_ALICE);
    expect(of("member.left", "n3")[0]?.requester).toMatchObject({ kind: "peer", name: "n3" });
    expect(of("keys.reloaded", "n1")[0]).toMatchObject({ requester: BY_ALICE });
    expect(of("leader.changed", "manager@dc1")[0]).toMatchObject({
      requester: { kind: "self", name: "n1" },
      detail: { leader: "n1" },
    });
    expect(of("node.leaving", "n1")[0]?.requester).toMatchObject({
      kind: "system",
      name: "SIGTERM",
    });
    const left = audit(join(cluster.directory, "n3"), "--kind", "node.leaving");
    expect(left[0]?.requester).toMatchObject(BY_ALICE);
    expect(left[0]?.requester.address).toMatch(/^127\.[\d.]+:\d+$/);
  });
});

describe("the audit log of a ledger node (AD-20.6)", () => {
  it("records its start, its leadership, and requesters of cancels, replacements and keys", async () => {
    const ledger = await LedgerCluster.prepare({ nodes: 1, leaseMs: 1_000 });
    endings.push(() => ledger.stop());
    ledger.start("n1", BOUNDS);
    await ledger.ready("n1");
    const { api } = ledger.place("n1");
    const directory = join(ledger.dir, "n1");
    const ask = async (path: string, body: unknown): Promise<JsonObject> => {
      const call = { method: "POST", path, body, id: randomBytes(8).toString("hex") } as const;
      return (await callLedger({ api, dir: ledger.dir }, call)).body;
    };
    process.env["HYPERSCALE_OPERATOR"] = "alice";
    endings.push(() => Reflect.deleteProperty(process.env, "HYPERSCALE_OPERATOR"));
    const key = `audit:1:${randomBytes(8).toString("hex")}`;
    const jobId = String((await ask("/v1/jobs", { key, spec: "work" }))["jobId"]);
    const cancel = { event: "cancel", reason: "too slow", requestor: "bob" };
    await ask(`/v1/jobs/${jobId}/events`, cancel);
    await ask("/v1/replace", { leaving: "n8", joining: "n9" });
    const stream = await LedgerStream.connect(api, ledger.tokenAt(api));
    const spec = new Uint8Array(1);
    await stream.ask({ kind: "submit", key: `${key}2`, spec, assignedDcs: [] });
    stream.close();
    ledger.node("n1").kill("SIGHUP");
    await until(
      () => isRecorded(directory, null, "keys.reloaded"),
      PATIENCE_MS,
      "the keys are reloaded",
    );
    await until(() => isRecorded(directory, null, "ledger.leads"), PATIENCE_MS, "leads are told");
    expect(await metric(api, "hyperscale_ledger_audit_dropped_total")).toBe(0);
    ledger.node("n1").kill("SIGTERM");
    await ledger.node("n1").ended;

    const lines = audit(directory);
    const of = (kind: string) => lines.find((line) => line.kind === kind);
    expect(of("audit.opened")?.detail).toMatchObject(BOUNDED);
    expect(of("ledger.founded")?.detail).toMatchObject({ way: "found" });
    expect(of("job.cancelled")).toMatchObject({
      subject: jobId,
      requester: BY_ALICE,
      detail: { requestor: "bob", reason: "too slow", outcome: "applied" },
    });
    expect(of("job.submitted")).toMatchObject({ subject: jobId, requester: BY_ALICE });
    expect(of("ledger.written")).toMatchObject({
      ...{ subject: "n1", requester: { kind: "operator", credential } },
      detail: { submits: "1", events: "0" },
    });
    expect(of("ledger.replaced")).toMatchObject({
      subject: "n8",
      requester: BY_ALICE,
      detail: { joining: "n9", failed: "0" },
    });
    expect(of("keys.reloaded")?.requester).toMatchObject({ kind: "system", name: "SIGHUP" });
    expect(Number(of("ledger.leads")?.detail["gained"])).toBeGreaterThan(0);
    expect(of("node.leaving")?.requester.name).toBe("SIGTERM");
  });
});

describe("the audit log of a queue node (AD-20.6)", () => {
  it("records cancels, retries, changes of role and schedules, including failed ones", async () => {
    const directory = mkdtempSync(join(tmpdir(), "hyperscale-audit-queue-"));
    endings.push(() => rmSync(directory, { recursive: true, force: true }));
    const token = randomBytes(16).toString("hex");
    writeFileSync(join(directory, "token"), token);
    const clients = randomBytes(16).toString("hex");
    writeFileSync(join(directory, "clients"), clients, { mode: 0o600 });
    const node = new NodeProcess([
      ...["--data-dir", directory, "--node-id", "q1", "--log-level", "warn"],
      ...["--token-file", join(directory, "token"), ...BOUNDS],
      ...["--client-token-file", join(directory, "clients")],
    ]);
    const { url } = await node.ready;
    const call = async (method: string, params: object, given = token): Promise<JsonObject> => {
      // Only the token of nodes is believed to pass calls on.
      const forwarded = given === token ? {} : { "x-hyperscale-forwarded": "n7" };
      const response = await fetch(url, {
        method: "POST",
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
        headers: {
          "content-type": "application/json",
          authorization: `Bearer ${given}`,
          "x-hyperscale-operator": "alice",
          ...forwarded,
        },
      });
      return (await response.json()) as JsonObject;
    };
    const slow = { executor: "sleep", input: { ms: 60_000 } };
    const { id } = (await call("submit_task", slow))["result"] as { readonly id: string };
    await call("cancel_task", { task_id: id, reason: "not needed" });
    await call("requeue_task", { task_id: "999" });
    await call("put_schedule", { schedule_id: "nightly", cron: "0 3 * * *", task: slow });
    await call("remove_schedule", { schedule_id: "nightly" });
    const code = { executor: "loadtest", input: { bundle: "0".repeat(64) }, key: "evil" };
    await call("submit_task", code, clients);
    await call("set_role", { role: "observer" });
    // Opened, leads, and the six above; an entry counts once it is durable.
    const recorded = () => metric(url, "hyperscale_queue_audit_recorded_total", token);
    await until(async () => (await recorded()) >= 8, PATIENCE_MS, "all of it is recorded");
    expect(await node.end("SIGTERM")).toBe(0);

    const lines = audit(directory).map(({ kind, subject, requester, detail }) => ({
      ...{ kind, subject, detail },
      by: `${requester.kind} ${requester.name} ${requester.credential.replace(/:.*/, "")}`.trim(),
    }));
    const steered = lines.filter(({ kind }) => /^(queue|schedule)\./.test(kind));
    const by = "operator alice token";
    expect(steered).toEqual([
      {
        kind: "queue.cancelled",
        subject: id,
        by,
        detail: { reason: "not needed", outcome: "done" },
      },
      { kind: "queue.retried", subject: "999", by, detail: { outcome: "NOT_FOUND" } },
      {
        kind: "schedule.put",
        subject: "nightly",
        by,
        detail: { cron: "0 3 * * *", outcome: "done" },
      },
      { kind: "schedule.removed", subject: "nightly", by, detail: { outcome: "done" } },
      {
        ...{ kind: "queue.submitted", subject: "loadtest", by: "client alice token" },
        detail: { key: "evil", outcome: "FORBIDDEN" },
      },
      { kind: "queue.role", subject: "q1", by, detail: { role: "observer", outcome: "done" } },
    ]);
    const leaders = lines.filter(({ kind }) => kind === "leader.changed");
    expect(leaders.map(({ detail }) => detail["leader"])).toEqual(["q1", "null"]);
    expect(lines[0]).toMatchObject({ kind: "audit.opened", detail: BOUNDED });
    const [leaving] = lines.filter(({ kind }) => kind === "node.leaving");
    expect(leaving).toMatchObject({ subject: "q1", by: "system SIGTERM" });
    expect(JSON.stringify(lines)).not.toContain(token);
  });

  it.skipIf(!TestPostgres.available())(
    "of a node that passes a cancel on names the client, that of the leader names the node",
    async () => {
      const directory = mkdtempSync(join(tmpdir(), "hyperscale-audit-queue-"));
      endings.push(() => rmSync(directory, { recursive: true, force: true }));
      const server = await TestPostgres.start();
      endings.push(() => server.stop());
      const database = await server.createDatabase();
      const start = async (name: string, role: string) => {
        const node = new NodeProcess([
          ...["--database", database, "--data-dir", directory, "--node-id", name],
          ...["--role", role, "--log-level", "warn", "--max-parallel", "0"],
        ]);
        endings.push(() => node.end());
        return { node, ...(await node.ready) };
      };
      const leader = await start("q1", "leader");
      const other = await start("q2", "worker");
      hyperscale("queue", "submit", "sleep", '{"ms":1}', "--url", other.url);
      hyperscale("queue", "cancel", "1", "--url", other.url);
      await other.node.end("SIGTERM");
      await leader.node.end("SIGTERM");
      // Both share a data directory: the second has its log beside the first.
      const [atLeader] = audit(join(directory, "audit"), "--kind", "queue");
      const [atOther] = audit(join(directory, "audit-2"), "--kind", "queue");
      const cancelled = { kind: "queue.cancelled", subject: "1" };
      expect(atOther).toMatchObject({
        ...{ ...cancelled, node: "q2" },
        requester: { kind: "operator", name: "alice", credential: "loopback" },
      });
      expect(atLeader).toMatchObject({
        ...cancelled,
        node: "q1",
        requester: { kind: "peer", name: "q2" },
      });
    },
  );
});
