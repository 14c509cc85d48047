/** The echo over WebSocket: a server of the package `ws`, and its client as the peer. */

import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { WebSocket, WebSocketServer } from "ws";
import { ignored, type Operation } from "./comparison.ts";

export async function startEcho(): Promise<{ readonly port: number }> {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  server.on("connection", (socket) => {
    socket.on("error", ignored);
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port };
}

export async function wsEcho(port: number, message: string): Promise<Operation> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`);
  socket.on("error", ignored);
  await once(socket, "open");
  return () =>
    new Promise((resolve) => {
      socket.once("message", resolve);
      socket.send(message);
    });
}
