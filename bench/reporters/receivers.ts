/** Receivers of `npm run bench:reporters`: accept everything, and store nothing. */

import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcp, type Server } from "node:net";

const http = createServer((request, response) => {
  request.resume();
  request.on("end", () => response.writeHead(204).end());
});
const tcp = createTcp((socket) => {
  socket.on("error", () => {});
  socket.resume();
});

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

process.send?.({ http: await portOf(http), tcp: await portOf(tcp) });
process.on("disconnect", () => process.exit());
