import http2Server from "node:http2";
import type { AddressInfo } from "node:net";
import { type CountingServer, describeContract } from "../testing/contract.ts";
import { listenTcp, type Peer, type ScriptedServer } from "../testing/scripted-server.ts";
import { http2 } from "./client.ts";

/** Node's own server, without TLS. */
async function startNode(): Promise<CountingServer> {
  let served = 0;
  const sessions = new Set<http2Server.ServerHttp2Session>();
  const server = http2Server.createServer((_, response) => {
    served++;
    response.end("hello");
  });
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", 1_024, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    served: async () => served,
    stop: async () => {
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const HEADERS = 1;
const SETTINGS = 4;
const CONTINUATION = 9;
const PREFACE_BYTES = 24;

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Sends its settings, then invokes the callback for each request. */
function listenFrames(onCall: (peer: Peer) => void): Promise<ScriptedServer> {
  return listenTcp((socket) => {
    let pending = Buffer.alloc(0);
    let skipped = PREFACE_BYTES;
    socket.write(frame(SETTINGS, 0, 0, Buffer.alloc(0)));
    socket.on("data", (bytes) => {
      pending = Buffer.concat([pending, bytes]);
      if (pending.length < skipped) return;
      pending = pending.subarray(skipped);
      skipped = 0;
      while (pending.length >= 9 && pending.length >= 9 + pending.readUIntBE(0, 3)) {
        const type = pending.readUInt8(3);
        pending = pending.subarray(9 + pending.readUIntBE(0, 3));
        if (type === HEADERS) onCall(socket);
      }
    });
  });
}

const OK = Buffer.from([0x88]);
/** A header of 4,000 bytes that is not added to the table. */
const LONG_HEADER = Buffer.concat([
  Buffer.from([0x00, 0x01, 0x78, 0x7f, 0xa1, 0x1e]),
  Buffer.alloc(4_000, "x"),
]);
const NOTHING = Buffer.alloc(0);

describeContract({
  name: "http2",
  calls: (port) => ({
    success: http2.get(`http://127.0.0.1:${port}/`),
    // Error statuses of HTTP have their own kind; see http2.test.ts.
    refused: null,
  }),
  real: { start: startNode, absent: "", users: 1_000 },
  hostile: {
    listen: listenFrames,
    mute: null,
    resets: true,
    half: Buffer.concat([frame(HEADERS, 4, 1, OK), frame(0, 0, 1, Buffer.from("half"))]),
    rubbish: [
      Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"),
      // DATA before HEADERS, on stream 0, too long; settings on a stream, of an odd length; a malformed header block.
      frame(0, 0, 1, Buffer.from("early")),
      frame(0, 0, 0, NOTHING),
      frame(0, 0, 1, Buffer.alloc(20_000)),
      frame(SETTINGS, 0, 1, NOTHING),
      frame(SETTINGS, 0, 0, Buffer.alloc(5)),
      frame(HEADERS, 4, 1, Buffer.of(0xff, 0xff, 0xff, 0xff, 0xff)),
      frame(CONTINUATION, 4, 1, OK),
    ],
    // A head: bodies that are not kept may have any length.
    oversize: Buffer.concat([
      frame(HEADERS, 0, 1, OK),
      ...Array.from({ length: 100 }, () => frame(CONTINUATION, 0, 1, LONG_HEADER)),
    ]),
  },
});
