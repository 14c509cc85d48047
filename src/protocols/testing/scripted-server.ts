/** Servers that say whatever a test tells them to. */

import net from "node:net";

/** The other end of a client. */
export interface Peer {
  write(bytes: Uint8Array): void;
  /** The last words. */
  end(bytes: Uint8Array): void;
  /** Hangs up. */
  destroy(): void;
}

export interface ScriptedServer {
  readonly port: number;
  /** Connections ever. */
  accepted(): number;
  /** Connections now. */
  open(): number;
  close(): Promise<void>;
}

/** `onPeer` gets each client that connects; what it sends is heard by `socket.on("data")`. */
export async function listenTcp(onPeer: (socket: net.Socket) => void): Promise<ScriptedServer> {
  const sockets = new Set<net.Socket>();
  let accepted = 0;
  const server = net.createServer((socket) => {
    accepted++;
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    // What nobody reads would never be known to have ended.
    socket.resume();
    onPeer(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    accepted: () => accepted,
    open: () => sockets.size,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
