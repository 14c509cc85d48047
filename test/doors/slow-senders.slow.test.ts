/** Senders that stop in the middle lose their connection after 10 s: here of a real ledger node, all at once. */

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { LedgerCluster } from "../../bench/ledger/processes.ts";
import { STREAM_PROTOCOL } from "../../src/ledger/api-stream.ts";

let ledger: LedgerCluster;
const sockets: Socket[] = [];

beforeAll(async () => {
  ledger = await LedgerCluster.prepare({ nodes: 1, leaseMs: 1_000 });
  ledger.start("n1");
  await ledger.ready("n1");
});

afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await ledger.stop();
});

async function sends(bytes: string): Promise<Socket> {
  const { api } = ledger.place("n1");
  const [host = "", port] = api.split(":");
  const socket = connect(Number(port), host);
  socket.on("error", () => undefined);
  sockets.push(socket);
  await once(socket, "connect");
  socket.write(bytes);
  return socket;
}

async function streams(frame: Uint8Array): Promise<Socket> {
  const { api } = ledger.place("n1");
  const socket = await sends(
    `GET /v1/stream HTTP/1.1\r\nhost: ${api}\r\nauthorization: Bearer ${ledger.tokenAt(api).token}\r\n` +
      `connection: upgrade\r\nupgrade: ${STREAM_PROTOCOL}\r\n\r\n`,
  );
  const [answer] = (await once(socket, "data")) as [Buffer];
  expect(String(answer)).toMatch(/^HTTP\/1\.1 101 /);
  socket.write(frame);
  return socket;
}

const closed = (socket: Socket) => once(socket.resume(), "close");
/** The length of 100 bytes and one of them. */
const HALF_FRAME = Uint8Array.from([0, 0, 0, 100, 1]);

it("closes connections in half a head and in half a frame, and keeps an idle stream", async () => {
  const idle = await streams(new Uint8Array());
  const head = await sends("GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-a: ");
  const halfLength = HALF_FRAME.subarray(0, 2);
  await Promise.all([closed(await streams(HALF_FRAME)), closed(await streams(halfLength))]);
  // Twice the time of a frame outlasts the time of a head, and ends before that of a whole request.
  const first = await Promise.race([
    closed(head).then(() => "head"),
    closed(await streams(HALF_FRAME)).then(() => "frame"),
  ]);
  expect(first).toBe("head");
  expect(idle.readyState).toBe("open");
});
