/** Strangers that open silent connections: counted per host from the start, and closed in time. */

import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { freshNet, until } from "../../../bench/swim/agents.ts";
import { address } from "../../../src/core/base/ids.ts";
import type { ByteStream } from "../../../src/host/ports/byte-stream.ts";
import { TcpPort } from "../../../src/host/tcp.ts";
import { readTlsMaterial, type TlsMaterial } from "../../../src/host/tls.ts";
import { needs } from "../../needs.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { Authority, hasOpenssl, NO_OPENSSL } from "./certificates.ts";

const NET = freshNet();
const HOST = `127.${NET}.1`;
const MEMBER = `127.${NET}.2`;
const PLACES = { total: 60, perHost: 20, forMembers: 30 };

const ports: TcpPort[] = [];
const sockets = new Set<Socket>();
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  for (const port of ports.splice(0)) await port.close();
});

async function listen(host: string, tls: TlsMaterial | null): Promise<TcpPort> {
  const isMember = (peer: string): boolean => peer === MEMBER;
  const port = await TcpPort.listen({ host, port: 7946, tls, places: PLACES, isMember });
  ports.push(port);
  return port;
}

/** Silent connections from one host; those that were closed leave the set. */
function hold(from: string, count: number): void {
  for (let i = 0; i < count; i++) {
    const socket = connect({ host: HOST, port: 7946, localAddress: from });
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  }
}

const dial = (from: TcpPort): Promise<ByteStream | null> =>
  new Promise((resolve) => from.dial(address(`${HOST}:7946`), PATIENCE_MS, resolve));

function material(): TlsMaterial {
  const directory = mkdtempSync(join(tmpdir(), "hyperscale-places-"));
  const files = new Authority(directory).sign("worker", "hyperscale", "default");
  const read = readTlsMaterial({ ...files, verifyHostname: false });
  rmSync(directory, { recursive: true });
  return read;
}

describe("silent strangers", () => {
  it("without TLS: hold at most their places, and a member gets one", async () => {
    const port = await listen(HOST, null);
    port.onAccept(() => {});
    for (let host = 10; host < 20; host++) hold(`127.${NET}.${host}`, 30);
    await until(() => port.counts.refused >= 270, PATIENCE_MS, "the rest are closed");
    expect(port.counts.open).toBe(PLACES.total - PLACES.forMembers);
    expect(await dial(await listen(MEMBER, null))).not.toBeNull();
    await until(() => port.counts.open === 31, PATIENCE_MS, "the member is in");
  });

  it(
    "with TLS: the same before any handshake, and silence ends",
    needs(hasOpenssl, NO_OPENSSL),
    async () => {
      const tls = material();
      const port = await listen(HOST, tls);
      let accepted = 0;
      port.onAccept(() => accepted++);
      hold(`127.${NET}.99`, 100);
      await until(() => port.counts.refused >= 80, PATIENCE_MS, "one host has its places");
      expect(port.counts.open).toBe(PLACES.perHost);
      expect(await dial(await listen(MEMBER, tls))).not.toBeNull();
      await until(() => accepted === 1, PATIENCE_MS, "the member is in");
      await until(
        () => port.counts.open === 1,
        PATIENCE_MS,
        "handshakes that never end are cut off",
      );
      await until(() => sockets.size === 0, PATIENCE_MS, "the strangers' ends are closed");
    },
  );
});
