/** Unauthenticated connections at a stream port, over real sockets on the loopback. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { freshNet } from "../../bench/swim/agents.ts";
import { needs } from "../../test/needs.ts";
import { Authority, hasOpenssl, NO_OPENSSL } from "../../test/processes/cluster/certificates.ts";
import { formatAddress } from "../wire/address.ts";
import { TcpPort } from "./tcp.ts";
import { readTlsMaterial, type TlsMaterial } from "./tls.ts";

const HOST = `127.${freshNet()}.1`;
const PORT = 7_946;
const WAIT = { timeout: 20_000 };
const directory = mkdtempSync(join(tmpdir(), "hyperscale-tcp-"));
const sockets: Socket[] = [];
const ports: TcpPort[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(ports.splice(0).map((port) => port.close()));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function listen(
  tls: TlsMaterial | null,
  perHost: number,
  handshakeMsMax = 200,
): Promise<TcpPort> {
  const places = { total: 64, perHost, forMembers: 16 };
  const isMember = () => false;
  const port = await TcpPort.listen({
    host: HOST,
    port: PORT,
    tls,
    places,
    isMember,
    handshakeMsMax,
  });
  return port;
}

/** Connects and sends nothing; resolves when the other side has closed. */
function silent(): { readonly closed: Promise<void> } {
  const socket = connect({ host: HOST, port: PORT });
  sockets.push(socket);
  socket.on("error", () => undefined);
  socket.resume();
  return { closed: new Promise((resolve) => socket.once("close", () => resolve())) };
}

describe("a stream port", () => {
  it("distinguishes a process that has exited from a broken connection", async () => {
    const port = await listen(null, 9);
    ports.push(port);
    const closed: boolean[] = [];
    port.onAccept((stream) => {
      stream.onData(() => undefined);
      stream.onClose((isReset) => closed.push(isReset));
      stream.write(new Uint8Array(10));
    });
    const script = `require("node:net").connect(${PORT}, "${HOST}").on("data", () => process.send("up"))`;
    const child = spawn(process.execPath, ["-e", script], {
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    await once(child, "message");
    child.kill("SIGKILL");
    await expect.poll(() => closed, WAIT).toEqual([false]);
    const socket = connect({ host: HOST, port: PORT });
    sockets.push(socket);
    await once(socket, "data");
    socket.resetAndDestroy();
    await expect.poll(() => closed, WAIT).toEqual([false, true]);
  });

  it("closes connections of one host beyond its share, and accepts them again when slots are free", async () => {
    const port = await listen(null, 2);
    ports.push(port);
    let accepted = 0;
    port.onAccept(() => accepted++);
    const strangers = [silent(), silent(), silent()];
    await Promise.race(strangers.map(({ closed }) => closed));
    expect(port.counts.open).toBe(2);
    for (const socket of sockets.splice(0)) socket.destroy();
    while (accepted < 3) {
      silent();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  });
});

/** Everything the other side sends until it has closed. */
function receivedUntilClosed(): Promise<string> {
  const socket = connect({ host: HOST, port: PORT });
  sockets.push(socket);
  let received = "";
  socket.on("data", (bytes) => {
    received += String(bytes);
  });
  return new Promise((resolve) => socket.once("close", () => resolve(received)));
}

describe("what is written in one turn", () => {
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

  it.each(["end", "destroy"] as const)(
    "arrives in order before %s in the same turn",
    async (how) => {
      const port = await listen(null, 4);
      ports.push(port);
      let backlogBytes = 0;
      port.onAccept((stream) => {
        stream.write(bytes("one "));
        stream.write(bytes("two "));
        backlogBytes = stream.backlogBytes;
        stream[how]();
      });
      expect(await receivedUntilClosed()).toBe("one two ");
      expect(backlogBytes).toBe(8);
    },
  );

  it("arrives when the port is closed in the same turn", async () => {
    const port = await listen(null, 4);
    port.onAccept((stream) => {
      stream.write(bytes("a last word"));
      void port.close();
    });
    expect(await receivedUntilClosed()).toBe("a last word");
  });

  it("is reported as accepted, piece by piece", async () => {
    const port = await listen(null, 4);
    ports.push(port);
    const taken: string[] = [];
    port.onAccept((stream) => {
      stream.write(bytes("one "), () => taken.push("one"));
      stream.write(bytes("two "), () => {
        taken.push("two");
        stream.end();
      });
      expect(taken).toEqual([]);
    });
    expect(await receivedUntilClosed()).toBe("one two ");
    expect(taken).toEqual(["one", "two"]);
  });
});

describe("a stream port with TLS", needs(hasOpenssl, NO_OPENSSL), () => {
  it("closes connections without a handshake, so that others find a slot", async () => {
    const signed = new Authority(directory).sign("worker", "hyperscale", "default");
    const tls = readTlsMaterial({ ...signed, verifyHostname: false });
    const port = await listen(tls, 4);
    ports.push(port);
    port.onAccept(() => undefined);
    // All slots of this host, used by connections without a certificate.
    await Promise.all([silent(), silent(), silent(), silent()].map(({ closed }) => closed));
    const dialled = await new Promise((resolve) =>
      port.dial(formatAddress(HOST, PORT), 10_000, (stream, problem) =>
        resolve(stream === null ? problem : "open"),
      ),
    );
    expect(dialled).toBe("open");
  });

  it("closes at once although a handshake is under way", async () => {
    const signed = new Authority(directory).sign("worker", "hyperscale", "default");
    const tls = readTlsMaterial({ ...signed, verifyHostname: false });
    const port = await listen(tls, 4, 3_600_000);
    const { closed } = silent();
    await new Promise((resolve) => setTimeout(resolve, 50));
    await port.close();
    await closed;
  });
});
