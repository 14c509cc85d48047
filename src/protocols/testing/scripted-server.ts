/** Servers scripted by a test: over TCP, and by datagrams. */

import dgram from "node:dgram";
import net from "node:net";

/** The other end of a client. */
export interface Peer {
  write(bytes: Uint8Array): void;
  /** Sends the last bytes and closes; datagrams are never closed. */
  end(bytes: Uint8Array): void;
  /** Closes the connection at once. */
  destroy(): void;
}

export interface ScriptedServer {
  readonly port: number;
  /** Connections in total; for datagrams, all that arrived. */
  accepted(): number;
  /** Open connections. */
  open(): number;
  close(): Promise<void>;
}

/** `onPeer` receives each client that connects; its bytes arrive by `socket.on("data")`. */
export async function listenTcp(onPeer: (socket: net.Socket) => void): Promise<ScriptedServer> {
  const sockets = new Set<net.Socket>();
  let accepted = 0;
  const server = net.createServer((socket) => {
    accepted++;
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    // The end of a socket is only noticed while it is read.
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

/** `onDatagram` receives each datagram with its sender. */
export async function listenUdp(
  onDatagram: (peer: Peer, bytes: Buffer) => void,
): Promise<ScriptedServer> {
  const socket = dgram.createSocket("udp4");
  let accepted = 0;
  socket.on("message", (bytes, { address, port }) => {
    accepted++;
    const write = (answer: Uint8Array): void => socket.send(answer, port, address);
    onDatagram({ write, end: write, destroy: () => undefined }, bytes);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return {
    port: socket.address().port,
    accepted: () => accepted,
    open: () => 0,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}
