/** Node's own HTTP server with event streams, and a scripted one. */

import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import type { CountingServer } from "../../testing/contract.ts";
import { listenTcp, type Peer, type ScriptedServer } from "../../testing/scripted-server.ts";

export const EVENTS = 5;

/** Counts streams as served: `/few` ends, `/many` does not. */
export async function startEvents(tls?: https.ServerOptions): Promise<CountingServer> {
  let served = 0;
  const serve: http.RequestListener = (request, response) => {
    if (request.url === "/nowhere") {
      response.writeHead(404).end("no such stream");
      return;
    }
    served++;
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
      response.write(`: ${Buffer.concat(chunks).toString("utf8")}\n\n`);
      for (let at = 1; at <= EVENTS; at++)
        response.write(`id: ${at}\nevent: price\ndata: {"cents":${at}}\ndata: é\n\n`);
      if (request.url === "/few") response.end();
    });
  };
  const server = tls === undefined ? http.createServer(serve) : https.createServer(tls, serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", 1_024, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    served: async () => served,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Invokes the callback for each request. */
export function listenStreams(onCall: (peer: Peer) => void): Promise<ScriptedServer> {
  return listenTcp((socket) => socket.on("data", () => onCall(socket)));
}
