/**
 * A server that writes HTTP/2 frames by hand, for responses that no proper library would send. It acknowledges settings
 * and invokes a callback with each request's stream id.
 */

import net from "node:net";

export const HEADERS = 1;
export const RST_STREAM = 3;
const SETTINGS = 4;
export const GOAWAY = 7;
export const DATA = 0;
export const END_STREAM = 1;
export const END_HEADERS = 4;

const PREFACE_BYTES = 24;
/** ":status: 200" in the static table of HPACK. */
export const STATUS_200 = Buffer.from([0x88]);

export interface RawConnection {
  readonly socket: net.Socket;
  /** Counted from 1 since the server started. */
  readonly number: number;
  frame(type: number, flags: number, stream: number, payload: Buffer): void;
}

export interface RawServer {
  readonly url: string;
  close(): void;
}

export async function rawServer(
  onRequest: (connection: RawConnection, stream: number) => void,
): Promise<RawServer> {
  let connections = 0;
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    serve(socket, ++connections, onRequest);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

function serve(
  socket: net.Socket,
  number: number,
  onRequest: (connection: RawConnection, stream: number) => void,
): void {
  const connection: RawConnection = {
    socket,
    number,
    frame: (type, flags, stream, payload) => socket.write(encode(type, flags, stream, payload)),
  };
  let pending = Buffer.alloc(0);
  let preface = PREFACE_BYTES;
  connection.frame(SETTINGS, 0, 0, Buffer.alloc(0));
  socket.on("data", (piece) => {
    pending = Buffer.concat([pending, piece]);
    if (pending.length < preface) return;
    pending = pending.subarray(preface);
    preface = 0;
    while (pending.length >= 9) {
      const length = pending.readUIntBE(0, 3);
      if (pending.length < 9 + length) return;
      const type = pending[3] ?? 0;
      const flags = pending[4] ?? 0;
      const stream = pending.readUInt32BE(5);
      pending = pending.subarray(9 + length);
      if (type === SETTINGS && flags === 0) connection.frame(SETTINGS, 1, 0, Buffer.alloc(0));
      if (type === HEADERS) onRequest(connection, stream);
    }
  });
}

function encode(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Payload of RST_STREAM or, with a last stream, of GOAWAY. */
export function codePayload(code: number, lastStream?: number): Buffer {
  const payload = Buffer.alloc(lastStream === undefined ? 4 : 8);
  if (lastStream !== undefined) payload.writeUInt32BE(lastStream, 0);
  payload.writeUInt32BE(code, payload.length - 4);
  return payload;
}
