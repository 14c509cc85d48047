/** A server whose responses a test writes byte by byte; it records the requests. */

import net from "node:net";

interface ScriptedRequest {
  readonly method: string;
  readonly path: string;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
  /** Number of its connection, from 0. */
  readonly connection: number;
}

export interface ScriptedServer {
  readonly url: string;
  readonly port: number;
  readonly requests: readonly ScriptedRequest[];
  connections(): number;
  /** Number of open connections. */
  open(): number;
  close(): Promise<void>;
}

export type Script = (socket: net.Socket, request: ScriptedRequest) => void;

export async function startScriptedServer(script: Script): Promise<ScriptedServer> {
  const requests: ScriptedRequest[] = [];
  const sockets = new Set<net.Socket>();
  let connections = 0;
  const server = net.createServer((socket) => {
    const connection = connections++;
    let pending = Buffer.alloc(0);
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    socket.on("data", (bytes) => {
      pending = Buffer.concat([pending, bytes]);
      for (let taken = takeRequest(pending); taken !== null; taken = takeRequest(pending)) {
        pending = pending.subarray(taken.length);
        const request = { ...taken.request, connection };
        requests.push(request);
        script(socket, request);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    connections: () => connections,
    open: () => sockets.size,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function takeRequest(
  bytes: Buffer,
): { readonly request: Omit<ScriptedRequest, "connection">; readonly length: number } | null {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd < 0) return null;
  const [first = "", ...lines] = bytes.toString("latin1", 0, headEnd).split("\r\n");
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    }),
  );
  const length = headEnd + 4 + Number(headers.get("content-length") ?? 0);
  if (bytes.length < length) return null;
  const [method = "", path = ""] = first.split(" ");
  const body = bytes.toString("latin1", headEnd + 4, length);
  return { request: { method, path, headers, body }, length };
}
