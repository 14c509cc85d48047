import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { request as secureRequest } from "node:https";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { makeCertificate } from "./certificate.ts";
import { endpoints } from "./endpoints.ts";
import { type DemoTarget, startDemoTarget } from "./server.ts";

let target: DemoTarget;
beforeAll(async () => {
  target = await startDemoTarget({ port: 0 });
});
afterAll(() => target.close());

const get = (path: string, init?: RequestInit): Promise<Response> => fetch(target.url + path, init);

async function post(path: string, value: unknown): Promise<Response> {
  return get(path, { method: "POST", body: JSON.stringify(value) });
}

async function login(user: string): Promise<string> {
  const { token } = (await (await post("/login", { user })).json()) as { token: string };
  return token;
}

async function raw(path: string): Promise<IncomingMessage> {
  const sent: ClientRequest = request(target.url + path, { agent: false }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return response;
}

describe("plain answers", () => {
  it("answers / with a small text that HEAD leaves out", async () => {
    const answer = await get("/");
    expect([answer.status, await answer.text()]).toEqual([200, "Hyperscale!\n"]);
    const head = await get("/", { method: "HEAD" });
    expect([head.headers.get("content-length"), await head.text()]).toEqual(["12", ""]);
  });

  it("echoes method, query, headers and body", async () => {
    const answer = await get("/echo?a=1", { method: "PUT", body: "hi", headers: { "x-y": "z" } });
    const echo = (await answer.json()) as { headers: Record<string, string> };
    expect(echo).toMatchObject({ method: "PUT", path: "/echo", query: { a: "1" }, body: "hi" });
    expect(echo.headers["x-y"]).toBe("z");
  });

  it("rejects a body over its bound with 413", async () => {
    const answer = await get("/echo", { method: "POST", body: Buffer.alloc(1024 * 1024 + 1) });
    expect(answer.status).toBe(413);
  });

  it("makes exactly as many bytes as asked, with length or in chunks with a trailer", async () => {
    for (const size of [0, 1, 16_384, 100_001]) {
      const plain = await get(`/bytes/${size}`);
      expect(plain.headers.get("content-length")).toBe(String(size));
      expect((await plain.arrayBuffer()).byteLength).toBe(size);
      const chunked = await raw(`/chunked/${size}`);
      let seen = 0;
      for await (const part of chunked) seen += (part as Buffer).length;
      expect(chunked.headers["transfer-encoding"]).toBe("chunked");
      expect([seen, chunked.trailers["x-bytes"]]).toEqual([size, String(size)]);
    }
    expect((await get("/bytes/-1")).status).toBe(400);
    expect((await get("/bytes/99999999999")).status).toBe(400);
  });

  it("compresses /gzip, drips /drip, follows /redirect to its end", async () => {
    expect(await (await get("/gzip")).json()).toMatchObject({ gzipped: true });
    expect(await (await get("/drip?ms=30&bytes=7")).text()).toBe(".......");
    expect(await (await get("/drip?bytes=0")).text()).toBe("");
    expect(await (await get("/redirect/3")).json()).toEqual({ redirected: true });
    const first = await get("/redirect/3", { redirect: "manual" });
    expect([first.status, first.headers.get("location")]).toEqual([302, "/redirect/2"]);
  });

  it("sets the cookies of the query and shows those it is sent", async () => {
    const set = await get("/cookies/set?a=1&b=2");
    expect(set.headers.getSetCookie()).toEqual(["a=1; Path=/", "b=2; Path=/"]);
    const shown = await get("/cookies", { headers: { cookie: "a=1; b=x=y" } });
    expect(await shown.json()).toEqual({ cookies: { a: "1", b: "x=y" } });
  });

  it("names the methods of an endpoint on 405, and where the list is on 404", async () => {
    const wrong = await get("/login");
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "POST"]);
    const missing = await get("/nothing");
    expect([missing.status, await missing.text()]).toEqual([
      404,
      expect.stringContaining("lists the endpoints"),
    ]);
  });
});

describe("login and users", () => {
  it("lets a token of /login read users, and nothing else", async () => {
    const authorization = `Bearer ${await login("ada")}`;
    const all = (await (await get("/users", { headers: { authorization } })).json()) as {
      users: unknown[];
    };
    expect(all.users).toHaveLength(100);
    const one = await get("/users/1", { headers: { authorization } });
    expect(await one.json()).toMatchObject({ id: 1, name: "Ada 1" });
    expect((await get("/users/101", { headers: { authorization } })).status).toBe(404);
  });

  it("rejects a missing token, an invalid one and the token of another name", async () => {
    const [, sign] = (await login("ada")).split(".");
    const forged = `${Buffer.from("root").toString("base64url")}.${sign}`;
    expect((await get("/users")).status).toBe(401);
    for (const token of ["x", "a.b", forged]) {
      const answer = await get("/users/1", { headers: { authorization: `Bearer ${token}` } });
      expect(answer.status).toBe(401);
    }
  });

  it("rejects a wrong password, an empty user and a body that is not JSON", async () => {
    expect((await post("/login", { user: "ada", password: "wrong" })).status).toBe(401);
    expect((await post("/login", { user: "" })).status).toBe(400);
    expect((await get("/login", { method: "POST", body: "{" })).status).toBe(400);
    expect((await get("/login", { method: "POST", body: "null" })).status).toBe(400);
  });
});

describe("failures", () => {
  it("fails exactly the requested share of requests", async () => {
    let failed = 0;
    for (let i = 0; i < 40; i++) {
      const answer = await get("/fail?rate=0.1&status=503");
      await answer.arrayBuffer();
      if (answer.status === 503) failed += 1;
    }
    expect(failed).toBe(4);
    expect((await get("/fail")).status).toBe(500);
    const empty = await get("/fail?status=204");
    expect([empty.status, empty.headers.get("content-length")]).toEqual([204, null]);
  });

  it("resets, and closes in mid-body", async () => {
    await expect(raw("/reset")).rejects.toMatchObject({ code: "ECONNRESET" });
    const cut = await raw("/close-mid-body");
    await expect(cut.toArray()).rejects.toMatchObject({ code: "ECONNRESET" });
  });

  it("continues after a client leaves in mid-body", async () => {
    const socket = connect(target.port, target.host);
    socket.write("POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf");
    await once(socket, "connect");
    socket.destroy();
    expect((await get("/")).status).toBe(200);
  });
});

describe("stall", () => {
  it("delays every answer until the stall ends, then sends all", async () => {
    const own = await startDemoTarget({ port: 0 });
    own.stallOnce(60_000);
    const answers: number[] = [];
    const waiting = [1, 2, 3].map(async (id) => {
      await fetch(`${own.url}/`);
      answers.push(id);
    });
    while (own.stats().requests < 3) await new Promise((resolve) => setImmediate(resolve));
    expect(answers).toEqual([]);
    // /stall itself is never delayed, so that a stall can be ended.
    expect((await fetch(`${own.url}/stall?ms=0`)).status).toBe(200);
    await Promise.all(waiting);
    expect(answers).toHaveLength(3);
    await own.close();
  });

  it("stalls now, later or repeatedly, as the query says", async () => {
    const own = await startDemoTarget({ port: 0 });
    for (const query of ["ms=20", "ms=20&after=1", "ms=20&every=5"]) {
      await (await fetch(`${own.url}/stall?${query}`)).json();
      for (let i = 0; i < 5; i++) expect((await fetch(own.url)).status).toBe(200);
    }
    await own.close();
  });
});

describe("other protocols", () => {
  it("echoes WebSocket messages, text and binary", async () => {
    const client = new WebSocket(`${target.url.replace("http", "ws")}/ws`);
    await once(client, "open");
    for (const message of ["hello", Buffer.from([0, 255])]) {
      client.send(message);
      const [data, binary] = (await once(client, "message")) as [Buffer, boolean];
      expect([data.toString("latin1"), binary]).toEqual([
        message.toString("latin1"),
        typeof message !== "string",
      ]);
    }
    client.close();
    expect((await get("/ws")).status).toBe(426);
  });

  it("rejects an upgrade elsewhere", async () => {
    const client = new WebSocket(`${target.url.replace("http", "ws")}/json`);
    const [error] = (await once(client, "error")) as [Error];
    expect(error.message).toContain("404");
  });

  it("answers its GraphQL schema by POST and GET", async () => {
    const byPost = await post("/graphql", {
      query: "query One($id: ID!) { user(id: $id) { id name } }",
      variables: { id: 2 },
    });
    expect(await byPost.json()).toEqual({ data: { user: { id: "2", name: "Grace 2" } } });
    const query = encodeURIComponent("{ user(id: 1) { name } }");
    expect(await (await get(`/graphql?query=${query}`)).json()).toEqual({
      data: { user: { name: "Ada 1" } },
    });
    expect(await (await get("/graphql", { method: "POST", body: "x" })).json()).toHaveProperty(
      "errors",
    );
  });
});

describe("stats", () => {
  it("counts requests by endpoint and resets on request", async () => {
    await get("/stats?reset=1");
    await get("/users/1");
    await get("/users/2");
    await get("/nowhere");
    expect(target.stats().paths).toEqual({ "/users/:id": 2, other: 1 });
    expect(target.stats().requests).toBe(3);
  });

  it("lists every endpoint once", () => {
    const paths = endpoints.map(({ path }) => path);
    expect(new Set(paths).size).toBe(paths.length);
  });
});

it("speaks TLS with a certificate it is given", async () => {
  const tls = makeCertificate();
  const own = await startDemoTarget({ port: 0, tls });
  expect(own.url).toMatch(/^https:/);
  const sent = secureRequest(own.url, { agent: false, ca: tls.cert }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  await own.close();
});

it("names the error when the port is in use", async () => {
  await expect(startDemoTarget({ port: target.port })).rejects.toMatchObject({
    code: "EADDRINUSE",
  });
});

it("frees the port and its connections on close, also in the middle of a stall", async () => {
  const own = await startDemoTarget({ port: 0 });
  own.stallOnce(60_000);
  const waiting = fetch(own.url).catch((error: unknown) => error);
  while (own.stats().requests < 1) await new Promise((resolve) => setImmediate(resolve));
  await own.close();
  await waiting;
  const again = await startDemoTarget({ port: own.port });
  await again.close();
});
