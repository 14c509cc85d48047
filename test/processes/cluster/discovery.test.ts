/** Discovery of members: through DNS as a small server answers it, and from the peers of a former process. */

import { createSocket, type Socket } from "node:dgram";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentCluster, AgentProcess, freshNet, until } from "../../../bench/swim/agents.ts";
import { resolveName } from "../../../src/host/dns.ts";
import { PATIENCE_MS } from "../../patience.ts";

const A = 1;
const AAAA = 28;
const SRV = 33;

type Zone = Readonly<Record<string, readonly { readonly type: number; readonly data: Buffer }[]>>;

const name = (text: string): Buffer =>
  Buffer.concat([
    ...text.split(".").map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
    Buffer.from([0]),
  ]);
const v4 = (text: string): Buffer => Buffer.from(text.split(".").map(Number));
const srv = (priority: number, port: number, target: string): Buffer => {
  const head = Buffer.alloc(6);
  head.writeUInt16BE(priority, 0);
  head.writeUInt16BE(port, 4);
  return Buffer.concat([head, name(target)]);
};

/** Just enough of a name server: one question, its answers, time to live 7 s. */
function serve(zone: Zone): Promise<Socket> {
  const server = createSocket("udp4");
  server.on("message", (query, peer) => {
    const end = query.indexOf(0, 12) + 5;
    const question = query.subarray(12, end);
    const type = question.readUInt16BE(question.length - 4);
    const asked = labels(question);
    const records = (zone[asked] ?? []).filter((record) => record.type === type);
    const head = Buffer.from(query.subarray(0, 12));
    head.writeUInt16BE(zone[asked] === undefined ? 0x8183 : 0x8180, 2);
    head.writeUInt16BE(records.length, 6);
    head.writeUInt32BE(0, 8);
    const answers = records.map(({ data }) => {
      const fixed = Buffer.alloc(12);
      fixed.writeUInt16BE(0xc00c, 0);
      fixed.writeUInt16BE(type, 2);
      fixed.writeUInt16BE(1, 4);
      fixed.writeUInt32BE(7, 6);
      fixed.writeUInt16BE(data.length, 10);
      return Buffer.concat([fixed, data]);
    });
    server.send(Buffer.concat([head, question, ...answers]), peer.port, peer.address);
  });
  return new Promise((resolve) => server.bind(0, "127.0.0.1", () => resolve(server)));
}

function labels(question: Buffer): string {
  const parts: string[] = [];
  for (let at = 0; question[at] !== 0; at += 1 + (question[at] ?? 0)) {
    parts.push(question.toString("ascii", at + 1, at + 1 + (question[at] ?? 0)));
  }
  return parts.join(".").toLowerCase();
}

describe("names", () => {
  let server: Socket;
  const v6 = Buffer.from("fd000000000000000000000000000005", "hex");
  beforeAll(async () => {
    server = await serve({
      "peers.test": [
        { type: A, data: v4("10.1.0.1") },
        { type: A, data: v4("10.1.0.2") },
        { type: AAAA, data: v6 },
      ],
      "_hs._udp.test": [
        { type: SRV, data: srv(20, 9_002, "b.test") },
        { type: SRV, data: srv(10, 9_001, "a.test") },
      ],
      "a.test": [{ type: A, data: v4("10.2.0.1") }],
      "b.test": [{ type: A, data: v4("10.2.0.2") }],
    });
  });
  afterAll(() => server.close());
  const resolve = (text: string) =>
    resolveName(text, 7_946, 2_000, [`127.0.0.1:${server.address().port}`]);

  // AD-28.4
  it("of a headless service give all addresses, both families, and their time to live", async () => {
    const { addresses, ttlMs } = await resolve("peers.test");
    expect([...addresses].sort()).toEqual(["10.1.0.1:7946", "10.1.0.2:7946", "[fd00::5]:7946"]);
    expect(ttlMs).toBe(7_000);
    expect((await resolve("a.test:9000")).addresses).toEqual(["10.2.0.1:9000"]);
  });

  it("of a service record give its targets with their ports, the preferred first", async () => {
    expect((await resolve("_hs._udp.test")).addresses).toEqual(["10.2.0.1:9001", "10.2.0.2:9002"]);
  });

  it("that are unknown are rejected", async () => {
    await expect(resolve("nobody.invalid")).rejects.toThrow();
    await expect(resolve("_none._udp.test")).rejects.toThrow();
  });
});

describe("an agent", () => {
  const cluster = new AgentCluster({ net: freshNet(), size: 2, profile: "dc" });
  beforeAll(() => cluster.startAll());
  afterAll(() => cluster.stop());

  it("finds its peers again after a restart without any seed", async () => {
    // The farewell writes down whom it knew.
    const former = cluster.agents[1] as AgentProcess;
    former.kill("SIGTERM");
    await former.ended;
    const again = new AgentProcess("n2", cluster.host(2), [
      ...["--profile", "dc", "--secret-file", cluster.secretFile, "--log-level", "warn"],
      ...["--data-dir", join(cluster.directory, "n2")],
    ]);
    cluster.agents[1] = again;
    await cluster.converged();
    await until(() => again.aliveByEvents().size === 2, PATIENCE_MS, "events follow the state");
    expect([...again.aliveByEvents()].sort()).toEqual(["n1", "n2"]);
  });

  it("joins through a name", async () => {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const common = ["--profile", "dc", "--secret-file", cluster.secretFile, "--log-level", "warn"];
    const named = new AgentProcess("named", "127.0.0.1", [
      ...common,
      ...["--bind", `127.0.0.1:${port}`, "--api", `127.0.0.1:${port + 1}`],
      ...["--data-dir", join(cluster.directory, "named")],
    ]);
    const seeker = new AgentProcess("seeker", cluster.host(9), [
      ...common,
      ...["--dns", `localhost:${port}`, "--data-dir", join(cluster.directory, "seeker")],
    ]);
    try {
      await until(
        () => named.aliveByEvents().has("seeker"),
        PATIENCE_MS,
        "the name leads to the member",
      );
    } finally {
      for (const agent of [named, seeker]) agent.kill("SIGKILL");
      await Promise.all([named.ended, seeker.ended]);
    }
  });
});
