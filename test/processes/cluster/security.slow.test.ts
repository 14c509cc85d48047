/**
 * Attacks on real agents over real sockets: recorded, forged, oversized and garbage packets. After each of them the
 * agent still runs and the members are unchanged.
 */

import { createSocket } from "node:dgram";
import { readFileSync } from "node:fs";
import { deflateRawSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  AgentCluster,
  type AgentProcess,
  freshNet,
  residentBytes,
  until,
} from "../../../bench/swim/agents.ts";
import { ByteWriter } from "../../../src/core/base/bytes.ts";
import { COUNTER_MAX, type Incarnation, nodeId } from "../../../src/core/base/ids.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { ringOf, Stranger, shout, smuggle } from "./stranger.ts";

const NET = freshNet();
const STRANGER = `127.${NET}.99`;
const SECOND = `127.${NET}.98`;
const WRONG = "quite-Another-secret-0815";
const MIB = 1_048_576;

describe("an agent under attack", () => {
  const cluster = new AgentCluster({ net: NET, size: 3, profile: "dc" });
  const host = cluster.host(1);
  let secret = "";
  const target = (): AgentProcess => cluster.agents[0] as AgentProcess;

  beforeAll(async () => {
    secret = readFileSync(cluster.secretFile, "utf8").trim();
    await cluster.startAll();
  });
  afterAll(() => cluster.stop());

  const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 400));
  const refused = (why: string): Promise<number> =>
    target().metric(`packets_refused_total{why="${why}"}`);
  const refusedTo = (why: string, count: number): Promise<void> =>
    until(async () => (await refused(why)) >= count, PATIENCE_MS, `${count} are refused: ${why}`);

  it("answers a packet once, and its recording neither now nor after a restart of either side", async () => {
    const stranger = await Stranger.open(STRANGER, ringOf(secret));
    try {
      stranger.ping(host, "n1");
      await until(() => stranger.acks === 1, PATIENCE_MS, "the ping is answered");
      const recording = stranger.sent.at(-1) as Uint8Array;

      stranger.replay(host, recording);
      await settle();
      expect(stranger.acks).toBe(1);
      expect(await refused("replayed")).toBe(1);

      // The sender restarts and is accepted under its new session; the old recording still is not.
      stranger.restart();
      stranger.ping(host, "n1");
      await until(() => stranger.acks === 2, PATIENCE_MS, "the restarted sender is answered");
      stranger.replay(host, recording);
      await settle();
      expect(stranger.acks).toBe(2);
      expect(await refused("replayed")).toBe(2);

      // The receiver restarts: both recordings were meant for a former session.
      const newer = stranger.sent.at(-1) as Uint8Array;
      target().kill("SIGKILL");
      await target().ended;
      cluster.start(1);
      await cluster.converged();
      const staleBefore = await refused("stale");
      for (const bytes of [recording, newer]) stranger.replay(host, bytes);
      await refusedTo("stale", staleBefore + 2);
      await settle();
      expect(stranger.acks).toBe(2);
      expect((await refused("stale")) - staleBefore).toBe(2);
    } finally {
      stranger.close();
    }
  });

  it("is deaf to a wrong key and to another environment's packets under the right one", async () => {
    const wrongKey = await Stranger.open(STRANGER, ringOf(WRONG));
    const wrongPlace = await Stranger.open(SECOND, ringOf(secret, "hyperscale/staging"));
    try {
      wrongKey.ping(host, "n1");
      wrongPlace.ping(host, "n1");
      await refusedTo("unknownKey", 1);
      await refusedTo("forged", 1);
      await settle();
      expect(wrongKey.acks + wrongPlace.acks).toBe(0);
    } finally {
      wrongKey.close();
      wrongPlace.close();
    }
  });

  it("survives, and restarts, when a key holder sends implausible numbers", async () => {
    const stranger = await Stranger.open(STRANGER, ringOf(secret));
    const alarms = (code: string): Promise<number> =>
      target().metric(`alarms_total{code="${code}"}`);
    const since = performance.now();
    try {
      stranger.ping(host, "n1");
      await until(() => stranger.acks > 0, PATIENCE_MS, "they have met");
      const from = nodeId("stranger");
      for (const number of [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER - 40, COUNTER_MAX]) {
        for (const id of ["n1", "n2", "n3"].map(nodeId)) {
          // Not made by `incarnation()`, which would refuse most of them.
          const claimed = number as Incarnation;
          stranger.ping(host, "n1", [{ kind: "suspect", id, incarnation: claimed, from }]);
        }
      }
      await until(async () => (await alarms("UNREADABLE")) >= 6, PATIENCE_MS, "six are unreadable");
      await until(async () => (await alarms("INCARNATION_JUMP")) >= 3, PATIENCE_MS, "three jump");
    } finally {
      stranger.close();
    }
    target().kill("SIGKILL");
    await target().ended;
    cluster.start(1);
    await cluster.converged();
    const [, ...others] = cluster.agents;
    for (const agent of others) {
      expect(agent.running).toBe(true);
      expect(agent.failuresSince(since).filter((name) => name !== "n1")).toEqual([]);
    }
    for (const { incarnation } of await target().members()) expect(incarnation).toBeLessThan(1_000);
  });

  // FRAME-5, FRAME-6
  it("closes on an oversized, an empty and a meaningless frame, and keeps no byte of them (B-47)", async () => {
    const before = residentBytes(target().pid);
    const giant = Buffer.concat([Buffer.from([0xff, 0xff, 0xff, 0xff]), Buffer.alloc(MIB)]);
    for (let i = 0; i < 20; i++) expect(await shout(host, giant)).toHaveLength(0);
    expect(await shout(host, Buffer.alloc(4))).toHaveLength(0);
    expect(
      await shout(host, Buffer.concat([Buffer.from([0, 0, 0, 60]), Buffer.alloc(60)])),
    ).toHaveLength(0);
    expect(residentBytes(target().pid) - before).toBeLessThan(64 * MIB);
  });

  it("rejects decompression bombs of a key holder without inflating them", async () => {
    const ring = ringOf(secret);
    const before = residentBytes(target().pid);
    const zeros = deflateRawSync(Buffer.alloc(200 * MIB));
    const chunk = (declared: number): Uint8Array => {
      const out = new ByteWriter(zeros.length + 16);
      out.uint8(1);
      out.varint(declared);
      out.raw(zeros);
      return out.take();
    };
    // One says what it is; one lies, and inflation stops where the lie ends.
    await smuggle(host, ring, chunk(200 * MIB));
    await smuggle(host, ring, chunk(MIB));
    expect(residentBytes(target().pid) - before).toBeLessThan(64 * MIB);
  });

  it("stays a member while rubbish pours in", async () => {
    const since = performance.now();
    const socket = createSocket("udp4");
    const rubbish = Buffer.alloc(60_000, 0x5a);
    const end = performance.now() + 2_000;
    while (performance.now() < end) {
      for (let i = 0; i < 50; i++) socket.send(rubbish, 7946, host);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await new Promise<void>((resolve) => socket.close(() => resolve()));
    await cluster.converged();
    for (const agent of cluster.agents) expect(agent.failuresSince(since)).toEqual([]);
    expect(residentBytes(target().pid)).toBeLessThan(300 * MIB);
  });

  it("rejects joins with a wrong secret", async () => {
    const members = await target().members();
    expect(members.map(({ name }) => name).sort()).toEqual(["n1", "n2", "n3"]);
  });
});
