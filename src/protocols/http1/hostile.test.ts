/** Servers that violate the protocol, on real sockets: each costs one connection and fails with its kind. */

import net from "node:net";
import { afterEach, expect, it } from "vitest";
import { TestSession } from "../testing/session.ts";
import { HttpClient } from "./client.ts";

const ok = "HTTP/1.1 200 OK\r\n";
const closers: (() => void)[] = [];

afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function serve(answer: (socket: net.Socket) => void): Promise<string> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("data", () => answer(socket));
  });
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/`;
}

function client(timeoutMs = 10_000): HttpClient {
  const session = new TestSession({ timeoutMs });
  closers.push(() => session.close());
  return new HttpClient(session);
}

/** Writes endlessly, as fast as the other side reads. */
function flood(socket: net.Socket, text: string): void {
  const bytes = Buffer.from(text.repeat(Math.ceil(16_384 / text.length)));
  const more = (): void => {
    if (socket.destroyed) return;
    if (socket.write(bytes)) setImmediate(more);
    else socket.once("drain", more);
  };
  more();
}

it.each([
  ["a banner of another protocol", "SSH-2.0-OpenSSH_9.6\r\n", /not HTTP/],
  ["a head with bare line feeds", "HTTP/1.1 200 OK\ncontent-length: 0\n\n", /not HTTP/],
  ["an unsolicited upgrade", "HTTP/1.1 101 Hi\r\n\r\n", /switches protocols/],
  ["two lengths", `${ok}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`, /two Content-Length/],
  ["a malformed chunk", `${ok}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`, /chunk size/],
])("%s is a protocol error at once", async (_name, text, problem) => {
  const url = await serve((socket) => socket.write(text, "latin1"));
  const response = await client().get(url);
  expect(response.errorKind).toBe("protocol");
  expect(response.error).toMatch(problem);
});

it.each([
  ["headers", ok, "X: y\r\n"],
  ["one header", `${ok}X: `, "x"],
  ["interim answers", "", "HTTP/1.1 103 Hints\r\n\r\n"],
  ["chunk extensions", `${ok}Transfer-Encoding: chunked\r\n\r\n1;`, "e"],
  ["trailers", `${ok}Transfer-Encoding: chunked\r\n\r\n0\r\n`, "X: y\r\n"],
])("endless %s are a protocol error", async (_name, start, more) => {
  const url = await serve((socket) => {
    socket.write(start);
    flood(socket, more);
  });
  expect((await client().get(url)).errorKind).toBe("protocol");
});

it("an endless body times out and is not kept", async () => {
  const url = await serve((socket) => {
    socket.write(`${ok}Transfer-Encoding: chunked\r\n\r\n`);
    flood(socket, "1\r\nx\r\n");
  });
  const response = await client(400).get(url);
  expect(response.errorKind).toBe("timeout");
});

it("a slow drip hits the timeout of the whole call", async () => {
  const url = await serve((socket) => {
    const drip = setInterval(() => socket.write("x"), 10);
    socket.write(`${ok}X: `);
    socket.on("close", () => clearInterval(drip));
  });
  const response = await client(200).get(url);
  expect(response.errorKind).toBe("timeout");
});

it.each([
  ["in the head", `${ok}X: y`],
  ["in a body with a length", `${ok}Content-Length: 9\r\n\r\nabc`],
  ["in a chunk", `${ok}Transfer-Encoding: chunked\r\n\r\n5\r\nab`],
  ["before the last chunk", `${ok}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n`],
  ["before the first byte", ""],
])("a connection closed %s is a reset", async (_name, text) => {
  const url = await serve((socket) => socket.end(text));
  expect((await client().get(url)).errorKind).toBe("reset");
});

it("bytes after a response are never mistaken for the next one", async () => {
  let connections = 0;
  const url = await serve((socket) => {
    connections++;
    socket.write(`${ok}Content-Length: 1\r\n\r\n${connections}${ok}Content-Length: 4\r\n\r\nevil`);
  });
  const http = client();
  expect((await http.get(url)).text()).toBe("1");
  expect((await http.get(url)).text()).toBe("2");
  expect(connections).toBe(2);
});

it("a body of tiny chunks is complete", async () => {
  const url = await serve((socket) => {
    socket.write(`${ok}Transfer-Encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(20_000)}0\r\n\r\n`);
  });
  expect((await client().get(url)).text()).toBe("x".repeat(20_000));
});
