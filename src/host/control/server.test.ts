/** The control server over real sockets on the loopback. */

import { once } from "node:events";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { Background } from "../background.ts";
import type { AuditRequester } from "../ports/audit.ts";
import { EventStream } from "./event-stream.ts";
import { HttpError } from "./http-error.ts";
import {
  type ControlListen,
  ControlServer,
  type ControlService,
  type Handler,
  json,
  type Upgrade,
} from "./server.ts";

const TOKEN = "correct horse battery staple";
const background = new Background(() => undefined);
const servers: ControlServer[] = [];
const failures: string[] = [];

afterEach(async () => {
  failures.length = 0;
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

async function serve(
  service: Partial<ControlService> = {},
  token: string | null = null,
  listen: Partial<ControlListen> = {},
): Promise<number> {
  const server = await ControlServer.listen(
    { host: "127.0.0.1", port: 0, token, ...listen },
    {
      routes: {
        "GET /v1/name/:name": ({ params, query }) => json({ ...params, q: query.get("q") }),
        "POST /v1/echo": async (request) => json(await request.json()),
        "GET /v1/refused": () => {
          throw new HttpError(409, "not now");
        },
        "GET /v1/broken": () => {
          throw new Error("a secret of ours");
        },
      },
      limits: {
        bodyBytesMax: 100,
        connectionsMax: 64,
        connectionsPerAddressMax: 32,
        streamsMax: 2,
        requestMsMax: 5_000,
        keepAliveMs: 1_000,
      },
      alive: () => ({ ok: true }),
      ready: () => ({ ready: true }),
      metrics: () => [{ name: "x_total", help: "x", type: "counter", samples: [{ value: 7 }] }],
      work: () => background.list(),
      onFailure: (route) => failures.push(route),
      ...service,
    },
  );
  servers.push(server);
  return server.port;
}

interface Reply {
  readonly status: number;
  readonly text: string;
  readonly headers: IncomingHttpHeaders;
}

function ask(
  port: number,
  path: string,
  {
    method = "GET",
    body,
    headers,
  }: { method?: string; body?: string; headers?: Record<string, string> } = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const call = httpRequest(
      { host: "127.0.0.1", port, path, method, agent: false, headers: headers ?? {} },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, text, headers: response.headers }),
        );
      },
    );
    call.on("error", reject);
    call.end(body);
  });
}

/** Bytes on a raw connection, for what no HTTP client would send. */
function raw(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.end(bytes));
    let text = "";
    socket.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    socket.on("close", () => resolve(text));
  });
}

/** A connection from one of the loopback's addresses that has sent this. */
async function opened(port: number, localAddress: string, bytes: string): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port, localAddress });
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(bytes);
  return socket;
}

describe("a control server", () => {
  it("finds routes with variable parts, decoded, and the query", async () => {
    const port = await serve();
    const reply = await ask(port, "/v1/name/a%2Fb?q=1");
    expect(JSON.parse(reply.text)).toEqual({ name: "a/b", q: "1" });
    expect((await ask(port, "/v1/name/")).status).toBe(404);
    expect((await ask(port, "/v1/name/%zz")).status).toBe(400);
    expect((await ask(port, "/v1/name/a", { method: "PUT" })).status).toBe(404);
    expect((await ask(port, "/v1/none")).text).toContain("there is no GET /v1/none");
  });

  it("answers a malformed target with 400 and logs nothing", async () => {
    const port = await serve({}, TOKEN);
    for (const target of ["//", "//x/v1/name/a", "http://[", "*", "http://127.0.0.1/healthz"]) {
      const text = await raw(port, `GET ${target} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`);
      expect(text).toMatch(/^HTTP\/1\.1 400 /);
    }
    expect(failures).toEqual([]);
  });

  it("returns rejections and hides errors (CODEC-7)", async () => {
    const port = await serve();
    const refused = await ask(port, "/v1/refused");
    expect([refused.status, JSON.parse(refused.text)]).toEqual([409, { error: "not now" }]);
    const broken = await ask(port, `/v1/broken?${"x".repeat(2_000)}`);
    expect([broken.status, JSON.parse(broken.text)]).toEqual([
      500,
      { error: "the request failed" },
    ]);
    expect(failures).toHaveLength(1);
    expect(failures[0]).toMatch(/^GET \/v1\/broken\?x+$/);
    expect(failures[0]?.length).toBe(200);
  });

  it("bounds bodies, and answers senders of too much", async () => {
    const port = await serve();
    const post = (body: string) => ask(port, "/v1/echo", { method: "POST", body });
    expect(JSON.parse((await post('{"a":1}')).text)).toEqual({ a: 1 });
    expect(JSON.parse((await post("")).text)).toBeNull();
    expect((await post("{")).status).toBe(400);
    expect((await post(`"${"x".repeat(98)}"`)).status).toBe(200);
    const over = await post(`"${"x".repeat(99)}"`);
    expect(over.status).toBe(413);
    expect(over.text).toContain("the limit is 100");
  });

  it("requires its token, except on health", async () => {
    const port = await serve({}, TOKEN);
    const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
    expect((await ask(port, "/v1/name/a")).status).toBe(401);
    expect((await ask(port, "/metrics")).status).toBe(401);
    expect((await ask(port, "/v1/name/a", bearer("correct horse battery stable"))).status).toBe(
      401,
    );
    expect((await ask(port, "/v1/name/a", bearer(TOKEN))).status).toBe(200);
    expect((await ask(port, "/metrics", bearer(TOKEN))).text).toContain("\nx_total 7\n");
    expect((await ask(port, "/healthz")).status).toBe(200);
    expect((await ask(port, "/readyz")).status).toBe(200);
  });

  it("serves metrics of a node openly on the loopback, but to no page or rebound name", async () => {
    const port = await serve({}, TOKEN, { metricsToken: null });
    expect((await ask(port, "/metrics")).text).toContain("\nx_total 7\n");
    expect((await ask(port, "/v1/name/a")).status).toBe(401);
    const page = { headers: { host: "evil.example" } };
    expect((await ask(port, "/metrics", page)).status).toBe(403);
    expect((await ask(port, "/metrics", { headers: { origin: "http://x" } })).status).toBe(403);
  });

  it("requires a token for metrics off the loopback, and warns that tokens are sent in plain text", async () => {
    const reader = "reads nothing but metrics";
    const warned: string[] = [];
    const log = { event: (_level: string, event: string) => void warned.push(event) };
    const port = await serve({ log: log as never }, TOKEN, {
      host: "0.0.0.0",
      metricsToken: reader,
    });
    const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
    expect((await ask(port, "/metrics")).status).toBe(401);
    expect((await ask(port, "/metrics", bearer(reader))).status).toBe(200);
    expect((await ask(port, "/metrics", bearer(TOKEN))).status).toBe(200);
    expect((await ask(port, "/v1/name/a", bearer(reader))).status).toBe(403);
    expect((await ask(port, "/v1/name/a", bearer(TOKEN))).status).toBe(200);
    expect(warned).toEqual(["api.plaintext"]);
  });

  it("leaves slots for others when one address takes all it may have", async () => {
    const port = await serve();
    const held = await Promise.all(
      Array.from({ length: 40 }, () => opened(port, "127.0.0.1", "GET /healthz HTTP/1.1\r\n")),
    );
    await expect.poll(() => held.filter(({ readyState }) => readyState !== "open").length).toBe(8);
    const other = await opened(
      port,
      "127.0.0.2",
      "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    );
    const [answer] = (await once(other, "data")) as [Buffer];
    expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /);
    for (const socket of [...held, other]) socket.destroy();
  });

  it("rejects pages of other sites and names that can be rebound", async () => {
    const port = await serve();
    const with_ = async (headers: Record<string, string>) =>
      (await ask(port, "/v1/name/a", { headers })).status;
    expect(await with_({ origin: "http://evil.example" })).toBe(403);
    expect(await with_({ origin: `http://127.0.0.1:${port}` })).toBe(403);
    expect(await with_({ "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" })).toBe(403);
    expect(await with_({ host: "evil.example" })).toBe(403);
    expect(await with_({ host: "127.evil.example" })).toBe(403);
    expect(await with_({ host: "localhost:1" })).toBe(200);
    expect(await with_({ host: "[::1]:1" })).toBe(200);
  });

  it("serves its own page without a token, and only its own pages may call", async () => {
    const page = () => ({ status: 200, text: "<p>hi", headers: { "content-type": "text/html" } });
    const port = await serve({ page }, TOKEN);
    const own = { host: `127.0.0.1:${port}`, origin: `http://127.0.0.1:${port}` };
    expect((await ask(port, "/")).text).toBe("<p>hi");
    const linked = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
    expect((await ask(port, "/", { headers: linked })).status).toBe(200);
    const authorization = `Bearer ${TOKEN}`;
    const call = (headers: Record<string, string>) =>
      ask(port, "/v1/name/a", { headers: { authorization, ...headers } });
    expect((await call(own)).status).toBe(200);
    expect((await call({ ...own, origin: "http://evil.example" })).status).toBe(403);
  });

  it("refuses to listen on a reachable address without a token", async () => {
    const listen = { host: "0.0.0.0", port: 0, token: null };
    const service = {} as ControlService;
    await expect(ControlServer.listen(listen, service)).rejects.toThrow(
      "refusing to listen on 0.0.0.0 without authentication",
    );
  });

  it("reports that it is not ready, and serves no route then", async () => {
    const port = await serve({
      ready: () => ({ ready: false }),
      unavailable: () => "still starting",
    });
    expect((await ask(port, "/readyz")).status).toBe(503);
    expect((await ask(port, "/healthz")).status).toBe(200);
    const reply = await ask(port, "/v1/name/a");
    expect([reply.status, JSON.parse(reply.text)]).toEqual([503, { error: "still starting" }]);
  });

  it("lists the background work of its process (AD-2)", async () => {
    const beat = background.every("beat", 60_000, () => undefined);
    const reply = await ask(await serve(), "/v1/debug/work");
    beat.cancel();
    expect(JSON.parse(reply.text)).toMatchObject([
      { name: "beat", kind: "every", state: "waiting", error: null },
    ]);
  });

  it("streams events, bounds the readers, and ends them when it closes", async () => {
    const streams: EventStream[] = [];
    const port = await serve({
      routes: {
        "GET /v1/events": (request) => {
          const options = { format: "lines", backlogBytesMax: 1_000 } as const;
          streams.push(new EventStream(request.takeResponse(), options));
          return "taken";
        },
      },
    });
    const readers = [ask(port, "/v1/events"), ask(port, "/v1/events")];
    while (streams.length < 2) await new Promise((resolve) => setImmediate(resolve));
    expect((await ask(port, "/v1/events")).status).toBe(503);
    for (const stream of streams) stream.send("x", '{"n":1}');
    await servers.pop()?.close();
    for (const reader of readers) expect((await reader).text).toBe('{"n":1}\n');
  });

  it("passes an upgraded connection on with what the client sent ahead", async () => {
    const upgrade = {
      path: "/v1/stream",
      protocol: "echo-1",
      serve: (socket: import("node:stream").Duplex) => socket.pipe(socket),
    };
    const port = await serve({ upgrade });
    const ask = (path: string, protocol: string) =>
      raw(
        port,
        `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: ${protocol}\r\n\r\nahead`,
      );
    expect(await ask("/v1/stream", "echo-1")).toMatch(/^HTTP\/1\.1 101 [\s\S]*\r\n\r\nahead$/);
    expect(await ask("/v1/stream", "other-1")).toMatch(/^HTTP\/1\.1 404 /);
    expect(await ask("//", "echo-1")).toMatch(/^HTTP\/1\.1 404 /);
  });

  it("survives clients that reset the connection they want upgraded", async () => {
    const port = await serve({});
    const asks = "GET /x HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
    for (let i = 0; i < 50; i++) {
      const client = await opened(port, "127.0.0.1", asks);
      client.resetAndDestroy();
    }
    expect((await ask(port, "/healthz")).status).toBe(200);
  });

  it("closes an upgraded connection whose client has closed", async () => {
    const upgrade: Upgrade = {
      path: "/v1/stream",
      protocol: "sink-1",
      serve: (socket) => void socket.resume(),
    };
    const port = await serve({ upgrade });
    const asks =
      "GET /v1/stream HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: sink-1\r\n\r\n";
    const client = await opened(port, "127.0.0.1", asks);
    const [answer] = (await once(client, "data")) as [Buffer];
    expect(String(answer)).toMatch(/^HTTP\/1\.1 101 /);
    client.end();
    await once(client.resume(), "close");
  });

  it("passes the requester to handlers and upgrades: the credential, never the token", async () => {
    const tell: Handler = ({ requester }) => json(requester);
    const upgrade: Upgrade = {
      path: "/v1/stream",
      protocol: "tell-1",
      serve: (socket, requester) => socket.end(JSON.stringify(requester)),
    };
    const service = { routes: { "GET /v1/who": tell }, page: tell, upgrade };
    const port = await serve(service, TOKEN);
    const headers = { authorization: `Bearer ${TOKEN}`, "x-hyperscale-operator": "alice" };
    const who = JSON.parse((await ask(port, "/v1/who", { headers })).text) as AuditRequester;
    expect(who).toMatchObject({ kind: "operator", name: "alice" });
    expect(who.credential).toMatch(/^token:[0-9a-f]{8}$/);
    expect(who.address).toMatch(/^127\.0\.0\.1:\d+$/);
    // The page requires no token: its reader has no credential.
    expect(JSON.parse((await ask(port, "/")).text)).toMatchObject({ name: "", credential: "" });
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const upgraded = await raw(
      port,
      `GET /v1/stream HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: tell-1\r\n${lines.join("")}\r\n`,
    );
    expect(upgraded).toContain(`"name":"alice","credential":"${who.credential}"`);
    const open = await serve({ routes: { "GET /v1/who": tell } });
    const local = await ask(open, "/v1/who");
    expect(JSON.parse(local.text)).toMatchObject({ name: "", credential: "loopback" });
  });
});
