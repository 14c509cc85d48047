import { createHash } from "node:crypto";
import type net from "node:net";
import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";
import { type CountingServer, describeContract } from "../testing/contract.ts";
import { listenTcp, type Peer, type ScriptedServer } from "../testing/scripted-server.ts";
import { websocket } from "./client.ts";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

async function startEcho(): Promise<CountingServer> {
  let served = 0;
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0, backlog: 1_024 });
  server.on("connection", (socket) => {
    socket.on("message", (data, isBinary) => {
      served++;
      socket.send(data, { binary: isBinary });
    });
  });
  await new Promise((resolve) => server.once("listening", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    served: async () => served,
    stop: async () => {
      for (const socket of server.clients) socket.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Accepts the WebSocket handshake, then invokes the callback for everything that arrives. */
function listenFrames(onCall: (peer: Peer) => void): Promise<ScriptedServer> {
  return listenTcp((socket: net.Socket) => {
    let agreed = false;
    socket.on("data", (bytes) => {
      if (agreed) return onCall(socket);
      agreed = true;
      const key = /sec-websocket-key: (.*)\r\n/i.exec(bytes.toString("latin1"))?.[1] ?? "";
      const accept = createHash("sha1").update(`${key}${GUID}`).digest("base64");
      socket.write(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n" +
          `sec-websocket-accept: ${accept}\r\n\r\n`,
      );
    });
  });
}

describeContract({
  name: "websocket",
  calls: (port) => ({
    success: websocket.exchange(`ws://127.0.0.1:${port}/`, "hello"),
    // Refusals are up to the application.
    refused: null,
  }),
  real: { start: startEcho, absent: "", users: 1_000 },
  hostile: {
    listen: listenFrames,
    mute: () => listenTcp(() => undefined),
    resets: true,
    half: Buffer.of(0x81, 5, 0x68, 0x65),
    cutOff: "closed (code 1006)",
    rubbish: [
      // Reserved bits, an unknown opcode, a masked frame, a stray continuation, half a character, a long ping.
      Buffer.of(0xf1, 1, 0x78),
      Buffer.of(0x83, 1, 0x78),
      Buffer.of(0x81, 0x81, 1, 2, 3, 4, 0x78),
      Buffer.of(0x80, 1, 0x78),
      Buffer.of(0x81, 1, 0xc3),
      Buffer.of(0x89, 126, 0, 126),
    ],
    oversize: Buffer.concat([
      Buffer.of(0x81, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70),
      Buffer.alloc(70_000, "x"),
    ]),
  },
});
