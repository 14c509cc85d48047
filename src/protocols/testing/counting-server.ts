/** Node's own HTTP server: answers every request with a few bytes, and counts. */

import http from "node:http";
import type { AddressInfo } from "node:net";
import type { CountingServer } from "./contract.ts";

type Answer = (request: http.IncomingMessage, response: http.ServerResponse) => void;

const hello: Answer = (_, response) => {
  response.end("hello");
};

export async function startCounting(answer: Answer = hello): Promise<CountingServer> {
  let served = 0;
  const server = http.createServer((request, response) => {
    served++;
    answer(request, response);
  });
  // A user that waits long for its turn on a busy machine keeps its connection.
  server.keepAliveTimeout = 0;
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
