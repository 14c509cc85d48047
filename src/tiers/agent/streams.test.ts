/** Secured streams over real sockets on the loopback, plain and with mutual TLS. */

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { freshNet } from "../../../bench/swim/agents.ts";
import { Authority, hasOpenssl } from "../../../test/processes/cluster/certificates.ts";
import { address } from "../../core/base/ids.ts";
import { deflate } from "../../host/deflate.ts";
import { nodeAead } from "../../host/node-aead.ts";
import { TcpPort } from "../../host/tcp.ts";
import { readTlsMaterial, type TlsMaterial } from "../../host/tls.ts";
import { ADMISSION_LIMITS, Admission } from "../../wire/admission.ts";
import type { PeerRole } from "../../wire/claims.ts";
import type { Hello } from "../../wire/hello.ts";
import { KeyRing } from "../../wire/key-ring.ts";
import type { MessageValue, StreamEnvelope } from "../../wire/registry.ts";
import { CAPABILITIES, PROTOCOL } from "../../wire/version.ts";
import { type ExchangeResult, Streams, type StreamsOptions } from "./streams.ts";

const SECRET = "streams-under-Test-7c2f9e";
const closers: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface Side {
  readonly streams: Streams;
  readonly at: ReturnType<typeof address>;
  readonly problems: string[];
  readonly requests: StreamEnvelope[];
}

const NET = freshNet();
let places = 0;

async function open(
  role: PeerRole,
  over: {
    readonly hello?: Partial<Hello>;
    readonly secrets?: readonly string[];
    readonly tls?: TlsMaterial;
    readonly admission?: Admission;
    readonly answer?: StreamsOptions["onRequest"];
  } = {},
): Promise<Side> {
  const host = `127.${NET}.${++places}`;
  const port = await TcpPort.listen({
    host,
    port: 7946,
    tls: over.tls ?? null,
    connectionsMax: 64,
  });
  const made = KeyRing.create(nodeAead, over.secrets ?? [SECRET], "");
  if (!made.ok) throw new Error(made.problem);
  const problems: string[] = [];
  const requests: StreamEnvelope[] = [];
  const streams = new Streams({
    port,
    entropy: randomBytes,
    compressor: deflate,
    hello: {
      cluster: "c1",
      environment: "test",
      versionMajor: PROTOCOL.major,
      versionMinor: PROTOCOL.minor,
      capabilities: CAPABILITIES,
      nodeVersion: "",
      node: `node-${places}`,
      address: `${host}:7946`,
      role,
      datacenter: "dc1",
      ...over.hello,
    },
    ring: () => made.ring,
    admission: over.admission ?? new Admission(ADMISSION_LIMITS.default),
    onRequest: (message, peer, answer) => {
      requests.push(message);
      if (over.answer !== undefined) over.answer(message, peer, answer);
      else answer(null);
    },
    onProblem: (_host, problem) => problems.push(problem),
  });
  closers.push(async () => {
    streams.stop();
    await port.close();
  });
  return { streams, at: address(`${host}:7946`), problems, requests };
}

const dispatch = (workflow: Uint8Array): MessageValue<"workflowDispatch"> => ({
  jobId: "j1",
  workflowId: "w1",
  workflow,
  context: new Uint8Array(0),
  vus: 1,
  timeoutSeconds: 1,
  fenceToken: 1,
  cores: 1,
  contextVersion: 0,
});
const accepted: StreamEnvelope = {
  name: "workflowDispatchAck",
  correlation: 0,
  value: { workflowId: "w1", accepted: true, coresAssigned: 1, error: null },
};

function exchange(from: Side, to: Side, workflow = new Uint8Array(10)): Promise<ExchangeResult> {
  return new Promise((resolve) => {
    const request = { name: "workflowDispatch", value: dispatch(workflow) } as const;
    from.streams.exchange(to.at, request, 5_000, resolve);
  });
}

describe("streams", () => {
  it("carry a request and its reply, small, large and compressible", async () => {
    const worker = await open("worker", { answer: (_m, _p, answer) => answer(accepted) });
    const manager = await open("manager");
    for (const payload of [
      randomBytes(10),
      randomBytes(3_000_000),
      Buffer.alloc(2_000_000, "ab"),
    ]) {
      const result = await exchange(manager, worker, payload);
      expect(result.ok && result.reply.name).toBe("workflowDispatchAck");
      const got = worker.requests.at(-1)?.value as MessageValue<"workflowDispatch">;
      expect(Buffer.compare(got.workflow, payload)).toBe(0);
    }
    expect(worker.problems).toEqual([]);
  });

  it("tell the caller why it was refused: another cluster, another key, nobody there", async () => {
    const worker = await open("worker");
    const stranger = await open("manager", { hello: { cluster: "c2" } });
    expect(await exchange(stranger, worker)).toMatchObject({
      ok: false,
      problem: 'cluster "c2" met cluster "c1"',
    });
    const thief = await open("manager", { secrets: ["quite-Another-secret-0815"] });
    expect(await exchange(thief, worker)).toMatchObject({ ok: false, refused: false });
    expect(worker.problems).toContain("a greeting under another key");
    const nobody = { ...worker, at: address(`127.${NET}.250:7946`) };
    expect(await exchange(thief, nobody)).toMatchObject({ ok: false, refused: true });
    expect(worker.requests).toEqual([]);
  });

  it("refuse a message that the peer's role may not send", async () => {
    const worker = await open("worker");
    const other = await open("worker");
    const result = await exchange(other, worker);
    expect(result.ok && result.reply.value).toMatchObject({
      code: "ROLE",
      text: "Connection denied: role 'worker' cannot connect to 'worker'",
    });
    expect(worker.requests).toEqual([]);
  });

  it("refuse work beyond the limit with a time to come again, and take it after an end", async () => {
    const admission = new Admission({ global: 0, high: 1, normal: 1, low: 1 });
    let finish: () => void = () => {};
    const worker = await open("worker", {
      admission,
      answer: (_m, _p, answer) => {
        finish = () => answer(accepted);
      },
    });
    const manager = await open("manager");
    const first = exchange(manager, worker);
    while (worker.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const second = await exchange(manager, worker);
    expect(second.ok && second.reply.value).toMatchObject({ code: "BUSY", retryAfterMs: 1_000 });
    finish();
    expect((await first).ok).toBe(true);
    expect(admission.stats("high").inFlight).toBe(0);
  });

  it("deliver posted messages over one connection, and say when they cannot", async () => {
    const manager = await open("manager");
    const worker = await open("worker");
    const status = (i: number): StreamEnvelope => ({
      name: "drainComplete",
      correlation: 0,
      value: { nodeId: `n${i}`, version: i },
    });
    const outcomes = await Promise.all(
      Array.from(
        { length: 300 },
        (_, i) =>
          new Promise<string | null>((resolve) =>
            worker.streams.post(manager.at, status(i), resolve),
          ),
      ),
    );
    expect(outcomes.every((problem) => problem === null)).toBe(true);
    while (manager.requests.length < 300) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(manager.streams.counts.accepted).toBe(1);
    expect(manager.requests.map(({ value }) => (value as { version: number }).version)).toEqual(
      Array.from({ length: 300 }, (_, i) => i),
    );
    const lost = await new Promise((resolve) =>
      worker.streams.post(address(`127.${NET}.251:7946`), status(1), resolve),
    );
    expect(lost).toBe("dial refused");
  });
});

/** Certificates of an authority of their own. */
function authority(): (role: string, cluster?: string) => TlsMaterial {
  const directory = mkdtempSync(join(tmpdir(), "hyperscale-tls-"));
  closers.push(() => rmSync(directory, { recursive: true, force: true }));
  const signer = new Authority(directory);
  return (role, cluster = "c1") =>
    readTlsMaterial({ ...signer.sign(role, cluster, "test"), verifyHostname: false });
}

describe.skipIf(!hasOpenssl)("streams with mutual TLS", () => {
  it("take roles from certificates, and refuse who claims another one or was signed by a stranger", async () => {
    const sign = authority();
    const answer: StreamsOptions["onRequest"] = (_m, _p, reply) => reply(accepted);
    const worker = await open("worker", { tls: sign("worker"), answer });
    const manager = await open("manager", { tls: sign("manager") });
    expect((await exchange(manager, worker)).ok).toBe(true);

    const liar = await open("manager", { tls: sign("worker") });
    expect(await exchange(liar, worker)).toMatchObject({
      ok: false,
      problem: 'role "manager" but the certificate says "worker"',
    });
    const elsewhere = await open("manager", { tls: sign("manager", "c2") });
    expect(await exchange(elsewhere, worker)).toMatchObject({ ok: false });
    const stranger = await open("manager", { tls: authority()("manager") });
    expect((await exchange(stranger, worker)).ok).toBe(false);
    const plain = await open("manager");
    expect((await exchange(plain, worker)).ok).toBe(false);
    expect(worker.requests).toHaveLength(1);
  }, 30_000);
});
