/** A real Socket.IO server for the tests, and a scripted one. */

import http from "node:http";
import type net from "node:net";
import { Server } from "socket.io";
import { WebSocketServer } from "ws";
import type { CountingServer } from "../../testing/contract.ts";
import type { Peer, ScriptedServer } from "../../testing/scripted-server.ts";

export interface ChatServer extends CountingServer {
  /** Open connections to all namespaces. */
  open(): number;
  /** Sends to every client in the namespace /rooms. */
  say(event: string, ...args: unknown[]): void;
  kick(): void;
}

/** A thousand other users on a busy machine may delay messages for long. */
const PATIENT = { connectTimeout: 240_000, pingInterval: 240_000, pingTimeout: 240_000 };

/** "/" accepts every client; "/rooms" only those with the token. */
export async function startChat(): Promise<ChatServer> {
  const web = http.createServer();
  const chat = new Server(web, { serveClient: false, transports: ["websocket"], ...PATIENT });
  let served = 0;
  const rooms = chat.of("/rooms");
  rooms.use((socket, next) => {
    const { token } = socket.handshake.auth as { readonly token?: string };
    next(token === "secret" ? undefined : new Error("who are you?"));
  });
  for (const space of [chat.of("/"), rooms])
    space.on("connection", (socket) => {
      socket.on("echo", (...all: unknown[]) => {
        served++;
        const answer = all.pop();
        if (typeof answer === "function") answer(...all);
      });
      socket.on("tell", (...all: unknown[]) => {
        served++;
        socket.emit("told", ...all);
      });
      // "silence" is never answered.
    });
  const port = await listening(web);
  return {
    port,
    served: async () => served,
    open: () => chat.of("/").sockets.size + rooms.sockets.size,
    say: (event, ...args) => rooms.emit(event, ...args),
    kick: () => rooms.disconnectSockets(),
    stop: () => chat.close(),
  };
}

async function listening(web: http.Server): Promise<number> {
  await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", 1_024, resolve));
  const address = web.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Accepts clients in "/" and invokes the callback for each later packet, with the bare socket. */
export async function listenChat(onCall: (peer: Peer) => void): Promise<ScriptedServer> {
  const web = http.createServer();
  const sockets = new Set<net.Socket>();
  let accepted = 0;
  web.on("connection", (socket) => {
    accepted++;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  const server = new WebSocketServer({ server: web });
  server.on("connection", (client, { socket }) => {
    client.on("error", () => undefined);
    client.send('0{"sid":"a","upgrades":[],"pingInterval":25000,"pingTimeout":20000}');
    client.on("message", (data) => {
      if (String(data).startsWith("40")) client.send('40{"sid":"b"}');
      else onCall(socket);
    });
  });
  const port = await listening(web);
  return {
    port,
    accepted: () => accepted,
    open: () => sockets.size,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await new Promise((resolve) => web.close(resolve));
    },
  };
}

/** A text message as a server sends it; RFC 6455 §5.2. */
export function textFrame(text: string): Buffer {
  const payload = Buffer.from(text);
  const head =
    payload.length < 126
      ? Buffer.of(0x81, payload.length)
      : Buffer.of(0x81, 127, 0, 0, 0, 0, 0, 0, 0, 0);
  if (payload.length >= 126) head.writeUInt32BE(payload.length, 6);
  return Buffer.concat([head, payload]);
}
