import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needs } from "../../../test/needs.ts";
import { REDIS_SERVER, redisProgram, startRedis } from "../../protocols/redis/testing/server.ts";
import type { CountingServer } from "../../protocols/testing/contract.ts";
import { absent, freePort } from "../../protocols/testing/real-server.ts";
import type { PingOutcome } from "./probe.ts";
import { knownSchemes, probeProtocol, protocolOf } from "./protocols.ts";

async function ping(address: string): Promise<PingOutcome> {
  const url = new URL(address);
  const protocol = await protocolOf(url.protocol.slice(0, -1));
  if (protocol === undefined) throw new Error("no such protocol");
  return probeProtocol({ protocol, url, timeoutMs: 60_000, insecure: false });
}

describe("addresses of other protocols", () => {
  it("are found by their scheme", async () => {
    expect((await protocolOf("rediss"))?.schemes).toContain("redis");
    expect(await protocolOf("gopher")).toBeUndefined();
    expect(knownSchemes()).toContain("redis");
  });

  it("are refused where nothing listens", async () => {
    expect(await ping(`redis://127.0.0.1:${await freePort()}`)).toMatchObject({
      ok: false,
      kind: "refused",
      phase: "connect",
    });
  });
});

describe("redis", needs(redisProgram !== null, absent(REDIS_SERVER)), () => {
  let server: CountingServer;
  beforeAll(async () => {
    server = await startRedis("--requirepass", "secret");
  });
  afterAll(() => server.stop());

  it("answers, and its phases add up to the total", async () => {
    const outcome = await ping(`redis://:secret@localhost:${server.port}`);
    expect(outcome).toMatchObject({
      ok: true,
      protocol: "redis",
      statusText: "PONG",
      bodyBytes: 7,
    });
    if (!outcome.ok) return;
    const { body, connect, dns, firstByte, login = 0 } = outcome.phases;
    expect(login).toBeGreaterThan(0);
    expect((dns ?? 0) + connect + login + firstByte + body).toBeCloseTo(outcome.totalMs, 6);
  });

  it("reports the duration of a rejected login", async () => {
    const outcome = await ping(`redis://:wrong@127.0.0.1:${server.port}`);
    expect(outcome).toMatchObject({
      ok: true,
      statusText: expect.stringMatching(/^WRONGPASS/) as string,
    });
    if (!outcome.ok) return;
    const { body, connect, firstByte, login = 0 } = outcome.phases;
    expect(connect).toBeGreaterThan(0);
    expect(login).toBeGreaterThan(0);
    expect(connect + login + firstByte + body).toBeCloseTo(outcome.totalMs, 6);
  });

  it("counts an error reply as an answer", async () => {
    expect(await ping(`redis://127.0.0.1:${server.port}`)).toMatchObject({
      ok: true,
      statusText: expect.stringMatching(/^NOAUTH/) as string,
    });
  });
});
