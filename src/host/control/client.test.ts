/** The control client against real and hostile servers on the loopback. */

import { createServer, type Server as HttpServer, type RequestListener } from "node:http";
import { createServer as createTcp, type Server } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ControlClient, readLines, refusalOf, UnreachableError } from "./client.ts";

const servers: (Server | HttpServer)[] = [];
const clients: ControlClient[] = [];

afterEach(async () => {
  vi.unstubAllEnvs();
  for (const client of clients.splice(0)) client.close();
  for (const server of servers.splice(0)) {
    if ("closeAllConnections" in server) server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function listen(server: Server | HttpServer): Promise<string> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return `127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
}

const http = (handler: RequestListener): Promise<string> => listen(createServer(handler));

function open(address: string, token?: string): ControlClient {
  const client = new ControlClient({ address, token });
  clients.push(client);
  return client;
}

describe("a control client", () => {
  it("sends its token and its body, and reads the answer whatever its status", async () => {
    const address = await http((request, response) => {
      let body = "";
      request.on("data", (part) => {
        body += part;
      });
      request.on("end", () => {
        response.writeHead(409);
        response.end(JSON.stringify({ error: `${request.headers.authorization} ${body}` }));
      });
    });
    const reply = await open(address, "abc").call("POST", "/x", { body: "{}" });
    expect(reply.status).toBe(409);
    expect(refusalOf(reply)).toBe("Bearer abc {}");
    expect(refusalOf({ status: 502, text: "<html>" })).toBe("status 502");
  });

  it("reports its user, or the forwarding node", async () => {
    const address = await http(({ headers }, response) => {
      response.end(`${headers["x-hyperscale-operator"]} ${headers["x-by"]}`);
    });
    vi.stubEnv("HYPERSCALE_OPERATOR", "alice");
    const caller = { "x-by": "node-1" };
    const passing = new ControlClient({ address, caller });
    clients.push(passing);
    expect((await open(address).call("GET", "/")).text).toBe("alice undefined");
    expect((await passing.call("GET", "/")).text).toBe("undefined node-1");
  });

  it("keeps its connection for the next call", async () => {
    const ports = new Set<number | undefined>();
    const address = await http((request, response) => {
      ports.add(request.socket.remotePort);
      response.end("1");
    });
    const client = open(`http://${address}`);
    for (let i = 0; i < 3; i++) expect((await client.call("GET", "/")).text).toBe("1");
    expect(ports.size).toBe(1);
  });

  it("names the reason of a failure: connection refused, timeout, broken connection", async () => {
    const gone = await http(() => undefined);
    const closed = servers.pop();
    await new Promise((resolve) => closed?.close(resolve));
    const problem = async (address: string): Promise<string> => {
      const error = await open(address)
        .call("GET", "/", { timeoutMs: 200 })
        .catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(UnreachableError);
      return (error as UnreachableError).reason;
    };
    expect(await problem(gone)).toBe("ECONNREFUSED");
    expect(await problem(await http(() => undefined))).toBe("no answer within 200 ms");
    expect(await problem(await listen(createTcp((socket) => socket.destroy())))).toBe("ECONNRESET");
    const half = (_: unknown, response: Parameters<RequestListener>[1]): void => {
      response.writeHead(200, { "content-length": "10" });
      response.write("half");
      setImmediate(() => response.destroy());
    };
    expect(await problem(await http(half))).toBe("ECONNRESET");
  });

  it("yields the lines of a streamed answer, however they are chunked", async () => {
    const address = await http((_, response) => {
      response.write('{"a":');
      setImmediate(() => {
        response.write("1}\n\nse");
        response.end("cond\n");
      });
    });
    const lines: string[] = [];
    for await (const line of readLines(await open(address).open("/"))) lines.push(line);
    expect(lines).toEqual(['{"a":1}', "", "second"]);
  });

  it("ends a stream on abort", async () => {
    const address = await http((_, response) => {
      response.write("first\n");
    });
    const ended = new AbortController();
    const stream = await open(address).open("/", ended.signal);
    await expect(async () => {
      for await (const _ of readLines(stream)) ended.abort();
    }).rejects.toThrow();
  });
});
