/** Shared by the protocol stubs: a server, and messages cut out of a byte stream. */

import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Answer } from "../contract.ts";

/** Asks the test for the answer to every write. */
export type OnWrite = (written: string) => Answer;

export interface Served {
  readonly port: number;
  readonly stop: () => Promise<void>;
}

/** Destroys its connections when it stops, whatever they wait for. */
export async function serveSockets(onSocket: (socket: Socket) => void): Promise<Served> {
  const open = new Set<Socket>();
  const server: Server = createServer((socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.on("error", () => {});
    onSocket(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Calls back for every whole message; `lengthOf` returns its length, or 0 while unknown. */
export function onMessages(
  socket: Socket,
  lengthOf: (unread: Buffer) => number,
  onMessage: (message: Buffer) => void,
): void {
  let unread: Buffer = Buffer.alloc(0);
  socket.on("data", (data: Buffer) => {
    unread = Buffer.concat([unread, data]);
    for (;;) {
      const length = unread.length === 0 ? 0 : lengthOf(unread);
      if (length === 0 || unread.length < length) return;
      const message = unread.subarray(0, length);
      unread = unread.subarray(length);
      onMessage(message);
    }
  });
}
