/** The client against real sockets: requests, responses, redirects, cookies, TLS. */

import { gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { makeCertificate } from "../../demo/certificate.ts";
import { type DemoTarget, startDemoTarget } from "../../demo/server.ts";
import { auth, cookies, data, headers, params, url } from "../http/parts.ts";
import type { HttpResponse } from "../http/response.ts";
import type { CallSettings } from "../protocol.ts";
import { runner, TestSession } from "../testing/session.ts";
import { HttpClient, http } from "./client.ts";
import {
  type Script,
  type ScriptedServer,
  startScriptedServer,
} from "./testing/scripted-server.ts";

let demo: DemoTarget;
const closers: (() => unknown)[] = [];

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
});
afterAll(() => demo.close());
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

function sessionWith(settings: Partial<CallSettings> = {}): TestSession {
  const session = new TestSession(settings);
  closers.push(() => session.close());
  return session;
}

function clientWith(settings: Partial<CallSettings> = {}): HttpClient {
  return new HttpClient(sessionWith(settings));
}

async function scripted(script: Script): Promise<ScriptedServer> {
  const server = await startScriptedServer(script);
  closers.push(() => server.close());
  return server;
}

const OK = "HTTP/1.1 200 OK\r\n";

describe("a request", () => {
  it("has the same bytes every time, with all its parts", async () => {
    const server = await scripted((socket) => socket.write(`${OK}content-length: 0\r\n\r\n`));
    const call = http.post(url(`${server.url}/a?x=1`), {
      params: params({ page: 2, tag: ["a b", "c"], left: undefined }),
      headers: headers({ "x-run": "nightly" }),
      cookies: cookies({ theme: "dark" }),
      auth: auth.basic("ada", "geheim"),
      body: data({ hello: "world" }),
    });
    const send = await runner(call, sessionWith());
    for (let i = 0; i < 3; i++) await send();
    const [first, second, third] = server.requests;
    expect(first).toMatchObject({
      method: "POST",
      path: "/a?x=1&page=2&tag=a+b&tag=c",
      body: '{"hello":"world"}',
      connection: 0,
    });
    expect(Object.fromEntries(first?.headers ?? [])).toEqual({
      host: `127.0.0.1:${server.port}`,
      "x-run": "nightly",
      authorization: `Basic ${Buffer.from("ada:geheim").toString("base64")}`,
      "user-agent": "hyperscale",
      accept: "*/*",
      "content-type": "application/json",
      "content-length": "17",
      cookie: "theme=dark",
    });
    expect(second).toEqual(first);
    expect(third).toEqual(first);
  });

  it("names its method, and has a length of zero where a body is expected", async () => {
    const server = await scripted((socket) => socket.write(`${OK}content-length: 0\r\n\r\n`));
    const client = clientWith();
    await client.get(server.url);
    await client.post(server.url);
    await client.put(server.url, { body: "text" });
    await client.patch(server.url, { json: [1] });
    await client.delete(server.url);
    await client.options(server.url);
    expect(
      server.requests.map(({ body, headers, method }) => [
        method,
        headers.get("content-length") ?? null,
        body,
      ]),
    ).toEqual([
      ["GET", null, ""],
      ["POST", "0", ""],
      ["PUT", "4", "text"],
      ["PATCH", "3", "[1]"],
      ["DELETE", null, ""],
      ["OPTIONS", null, ""],
    ]);
  });

  it("carries a bearer token that the server accepts", async () => {
    const client = clientWith();
    const login = await client.post(`${demo.url}/login`, { json: { user: "ada" } });
    const { token } = login.json<{ token: string }>();
    const users = await client.get(`${demo.url}/users/7`, { auth: auth.bearer(token) });
    expect(users.json()).toMatchObject({ id: 7 });
    const refused = await client.get(`${demo.url}/users/7`, { auth: auth.bearer("x.y") });
    expect([refused.status, refused.errorKind]).toEqual([401, "status"]);
  });

  it("cannot be split by a user-provided header", () => {
    expect(() => http.get(demo.url, { headers: { "x-a": "1\r\nx-b: 2" } })).toThrow(/x-a/);
    expect(() => http.get(demo.url, { headers: { "x a": "1" } })).toThrow(/not a header name/);
    expect(() => auth.bearer("a\nb")).toThrow(/authorization/);
    expect(() => cookies({ a: "1\r\n\r\nGET /" })).toThrow(/cookie/);
  });

  it("needs an http address with its scheme", () => {
    expect(() => http.get("localhost:8080/x")).toThrow(/has no scheme: write http:/);
    expect(() => http.get("ftp://host/x")).toThrow(/not an http/);
    expect(() => http.get("http://")).toThrow(/not a URL/);
  });
});

describe("a response", () => {
  it.each([
    ["with a length", `${OK}content-length: 5\r\n\r\nhello`, "hello"],
    ["with a length of zero", `${OK}content-length: 0\r\n\r\n`, ""],
    [
      "in chunks",
      `${OK}transfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n`,
      "hello",
    ],
    [
      "in chunks with trailers",
      `${OK}transfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 5\r\n\r\n`,
      "hello",
    ],
    [
      "after interim ones",
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${OK}content-length: 2\r\n\r\nok`,
      "ok",
    ],
    ["without content", "HTTP/1.1 204 No Content\r\n\r\n", ""],
    [
      "not modified, with the length it would have",
      "HTTP/1.1 304 Not Modified\r\ncontent-length: 500\r\n\r\n",
      "",
    ],
  ])("%s keeps the connection for the next request", async (_name, answer, body) => {
    const server = await scripted((socket) => socket.write(answer));
    const send = await runner(http.get(`${server.url}/`), sessionWith());
    for (let i = 0; i < 3; i++) {
      const { record, result } = await send();
      expect(record.errorKind).toBeNull();
      expect((result as HttpResponse).text()).toBe(body);
      expect(record.bytesIn).toBe(answer.length);
    }
    expect(server.connections()).toBe(1);
  });

  it("may arrive in pieces of one byte", async () => {
    const text =
      "HTTP/1.1 100 Continue\r\n\r\n" +
      `${OK}x-a: 1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n`;
    const server = await scripted((socket) => {
      socket.setNoDelay(true);
      let at = 0;
      const next = (): void => {
        if (at >= text.length) return;
        socket.write(text.charAt(at++), () => setImmediate(next));
      };
      next();
    });
    const response = await clientWith().get(server.url);
    expect([response.text(), response.header("X-A"), response.error]).toEqual(["hello", "1", null]);
  });

  it("to HEAD has no body, whatever its length says", async () => {
    const client = clientWith();
    const before = demo.stats().connections;
    for (let i = 0; i < 2; i++) {
      const head = await client.head(`${demo.url}/bytes/5000`);
      expect([head.status, head.header("content-length"), head.text()]).toEqual([200, "5000", ""]);
    }
    expect((await client.get(`${demo.url}/`)).text()).toBe("Hyperscale!\n");
    expect(demo.stats().connections - before).toBe(1);
  });

  it("without a length ends with the connection", async () => {
    const server = await scripted((socket) => socket.end(`${OK}\r\nall there is`));
    const client = clientWith();
    for (let i = 0; i < 2; i++) {
      const response = await client.get(server.url);
      expect([response.errorKind, response.text()]).toEqual([null, "all there is"]);
    }
    expect(server.connections()).toBe(2);
  });

  it("of HTTP/1.0 or with connection: close is the last on its connection", async () => {
    const answers = [
      "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na",
      `${OK}connection: close\r\ncontent-length: 1\r\n\r\nb`,
      `${OK}content-length: 1\r\n\r\nc`,
    ];
    const server = await scripted((socket) => socket.write(answers.shift() ?? ""));
    const client = clientWith();
    const bodies = [];
    for (let i = 0; i < 3; i++) bodies.push((await client.get(server.url)).text());
    expect(bodies).toEqual(["a", "b", "c"]);
    expect(server.requests.map((request) => request.connection)).toEqual([0, 1, 2]);
  });

  it("larger than the read buffer is complete, with a length and in chunks", async () => {
    const client = clientWith();
    for (const kind of ["bytes", "chunked"]) {
      const response = await client.get(`${demo.url}/${kind}/1000000`);
      expect(response.errorKind).toBeNull();
      expect(response.bytes().length).toBe(1_000_000);
      expect(response.text().startsWith("hyperscale hyperscale ")).toBe(true);
    }
  });

  it("is decompressed only on access", async () => {
    const response = await clientWith().get(`${demo.url}/gzip`);
    expect(response.json()).toMatchObject({ gzipped: true });
    const packed = gzipSync("x".repeat(1000));
    const server = await scripted((socket) => {
      socket.write(`${OK}content-encoding: gzip\r\ncontent-length: ${packed.length}\r\n\r\n`);
      socket.write(packed);
    });
    const raw = await clientWith().get(server.url);
    expect(raw.bytesIn).toBeLessThan(200);
    expect(raw.text()).toBe("x".repeat(1000));
    const broken = await scripted((socket) =>
      socket.write(`${OK}content-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc`),
    );
    // The call succeeded; a malformed body shows only when it is read.
    const rubbish = await clientWith().get(broken.url);
    expect(rubbish.ok).toBe(true);
    expect(() => rubbish.bytes()).toThrow();
  });

  it("can be searched for elements and patterns", async () => {
    const html = '<form><input type="hidden" name="csrf" value="a&amp;b"></form>order 17, order 18';
    const server = await scripted((socket) =>
      socket.write(`${OK}content-length: ${html.length}\r\n\r\n${html}`),
    );
    const answer = await clientWith().get(server.url);
    expect(answer.find("input[name=csrf]")?.value).toBe("a&b");
    expect(answer.find("input[name=other]")).toBeUndefined();
    const pattern = /order (\d+)/g;
    expect([answer.match(pattern)?.[1], answer.match(pattern)?.[1]]).toEqual(["17", "17"]);
    expect(answer.match(/invoice/)).toBeNull();
  });

  it("keeps its body only on request", async () => {
    const session = sessionWith();
    const unread = await runner(http.get(demo.url), session, false);
    expect((await unread()).result).toBeUndefined();
    const discarded = await new HttpClient(session).get(demo.url, { readBody: false });
    expect(discarded.status).toBe(200);
    expect(() => discarded.text()).toThrow(/readBody: true/);
    const tooLong = await clientWith({ bodyBytesMax: 10 }).get(demo.url);
    expect(tooLong.ok).toBe(true);
    expect(() => tooLong.text()).toThrow(/pass a larger { bodyBytesMax }/);
  });

  it("explains why it is not the expected JSON", async () => {
    const response = await clientWith().get(demo.url);
    expect(() => response.json()).toThrow(/status 200.*not JSON.*Hyperscale!/);
  });

  it("of 400 and above fails, unless the request expects it", async () => {
    const client = clientWith();
    const missing = await client.get(`${demo.url}/nothing-here`);
    expect([missing.status, missing.errorKind, missing.ok]).toEqual([404, "status", false]);
    const expected = await client.get(`${demo.url}/nothing-here`, { expect: [200, 404] });
    expect(expected.errorKind).toBeNull();
    const strict = await client.get(demo.url, { expect: 201 });
    expect(strict.errorKind).toBe("status");
    const judged = await client.get(demo.url, { expect: (status) => status < 300 });
    expect(judged.errorKind).toBeNull();
  });

  it("measures its phases in order", async () => {
    const client = clientWith();
    const first = await client.get(`${demo.url}/slow?ms=30`);
    expect(first.connectMs).toBeGreaterThanOrEqual(0);
    expect(first.tlsMs).toBe(-1);
    expect(first.firstByteAt).toBeGreaterThanOrEqual(first.startedAt + 25);
    expect(first.endedAt).toBeGreaterThanOrEqual(first.firstByteAt);
    const second = await client.get(demo.url);
    expect(second.connectMs).toBe(-1);
    expect([second.bytesIn > 12, second.bytesOut > 40]).toEqual([true, true]);
  });
});

describe("redirects", () => {
  it("are not followed by default", async () => {
    const response = await clientWith().get(`${demo.url}/redirect/1`);
    expect([response.status, response.header("location")]).toEqual([302, "/redirect/0"]);
  });

  it("are followed up to the limit, as one call", async () => {
    const client = clientWith({ redirectsMax: 3 });
    expect((await client.get(`${demo.url}/redirect/3`)).json()).toEqual({ redirected: true });
    const tooMany = await client.get(`${demo.url}/redirect/4`);
    expect([tooMany.status, tooMany.ok, tooMany.errorKind, tooMany.sent]).toEqual([
      302,
      false,
      "status",
      4,
    ]);
    expect(tooMany.error).toContain("redirected more than 3 times");
    expect((await client.get(`${demo.url}/redirect/4`, { expect: [302] })).ok).toBe(true);
    expect((await client.get(`${demo.url}/redirect/1`, { redirects: 0 })).status).toBe(302);
    const single = await client.get(`${demo.url}/redirect/0`);
    const chain = await client.get(`${demo.url}/redirect/3`);
    expect(chain.bytesIn).toBeGreaterThan(single.bytesIn * 2);
  });

  it.each([
    ["303 turns a POST into a GET without its body", "POST", 303, "GET", ""],
    ["302 turns a POST into a GET without its body", "POST", 302, "GET", ""],
    ["301 leaves a PUT as it is", "PUT", 301, "PUT", "body"],
    ["307 repeats a POST with its body", "POST", 307, "POST", "body"],
    ["308 repeats a PUT with its body", "PUT", 308, "PUT", "body"],
  ] as const)("%s", async (_name, method, status, then, body) => {
    const server = await scripted((socket, request) =>
      socket.write(
        request.path === "/from"
          ? `HTTP/1.1 ${status} Moved\r\nlocation: /to\r\ncontent-length: 0\r\n\r\n`
          : `${OK}content-length: 0\r\n\r\n`,
      ),
    );
    await clientWith({ redirectsMax: 1 }).request(method, `${server.url}/from`, { body: "body" });
    const [, second] = server.requests;
    expect(second).toMatchObject({ method: then, path: "/to", body });
    expect(second?.headers.has("content-type")).toBe(body !== "");
  });

  it("keep credentials on the same host only", async () => {
    const other = await scripted((socket) => socket.write(`${OK}content-length: 0\r\n\r\n`));
    const server = await scripted((socket, request) => {
      const target = request.path === "/there" ? `${other.url}/x` : "/here2";
      socket.write(
        request.path === "/here2"
          ? `${OK}content-length: 0\r\n\r\n`
          : `HTTP/1.1 307 Go\r\nlocation: ${target}\r\nset-cookie: own=1\r\ncontent-length: 0\r\n\r\n`,
      );
    });
    const client = clientWith({ redirectsMax: 2 });
    const options = {
      auth: auth.bearer("secret"),
      cookies: cookies({ id: "7" }),
      headers: { "x-plain": "kept" },
    };
    await client.get(`${server.url}/here`, options);
    await client.get(`${server.url}/there`, options);
    const same = server.requests.find((request) => request.path === "/here2")?.headers;
    expect([same?.get("authorization"), same?.get("cookie")]).toEqual([
      "Bearer secret",
      "id=7; own=1",
    ]);
    const foreign = other.requests[0]?.headers;
    expect(foreign?.get("authorization")).toBeUndefined();
    // Cookies are scoped to hosts, not ports: the jar's own cookie of 127.0.0.1 is sent, the request's is not.
    expect(foreign?.get("cookie")).toBe("own=1");
    expect(foreign?.get("x-plain")).toBe("kept");
    expect(foreign?.get("host")).toBe(`127.0.0.1:${other.port}`);
  });

  it("with an invalid location end the call with the redirect itself", async () => {
    const server = await scripted((socket) =>
      socket.write("HTTP/1.1 302 Go\r\nlocation: http://[bad\r\ncontent-length: 0\r\n\r\n"),
    );
    const response = await clientWith({ redirectsMax: 5 }).get(server.url);
    expect([response.status, response.errorKind]).toEqual([302, null]);
  });

  it("to an unknown host fail as dns", async () => {
    const server = await scripted((socket) =>
      socket.write(
        "HTTP/1.1 302 Go\r\nlocation: http://nowhere.invalid/\r\ncontent-length: 0\r\n\r\n",
      ),
    );
    const response = await clientWith({ redirectsMax: 5 }).get(server.url);
    expect(response.errorKind).toBe("dns");
  });
});

describe("cookies", () => {
  const seen = async (client: HttpClient): Promise<unknown> =>
    (await client.get(`${demo.url}/cookies`)).json<{ cookies: unknown }>().cookies;

  it("belong to one virtual user and outlive its iterations", async () => {
    const session = sessionWith();
    const [ada, bob] = [new HttpClient(session), clientWith()];
    await ada.get(`${demo.url}/cookies/set?user=ada`);
    await bob.get(`${demo.url}/cookies/set?user=bob`);
    session.reset();
    expect(await seen(ada)).toEqual({ user: "ada" });
    expect(await seen(bob)).toEqual({ user: "bob" });
  });

  it("are cleared before each iteration when configured", async () => {
    const session = sessionWith({ cookies: "iteration" });
    const client = new HttpClient(session);
    await client.get(`${demo.url}/cookies/set?a=1`);
    expect(await seen(client)).toEqual({ a: "1" });
    session.reset();
    expect(await seen(client)).toEqual({});
  });

  it("are ignored when disabled", async () => {
    const client = clientWith({ cookies: "off" });
    await client.get(`${demo.url}/cookies/set?a=1`);
    expect(await seen(client)).toEqual({});
  });

  it("of the jar are added to those of a prepared request", async () => {
    const session = sessionWith();
    await new HttpClient(session).get(`${demo.url}/cookies/set?a=1`);
    const send = await runner(
      http.get(`${demo.url}/cookies`, { cookies: cookies({ b: "2" }) }),
      session,
    );
    const { result } = await send();
    expect((result as HttpResponse).json()).toEqual({
      cookies: { a: "1", b: "2" },
    });
  });
});

describe("TLS", () => {
  it("fails as tls when the certificate is not trusted", async () => {
    const secure = await startDemoTarget({ port: 0, tls: makeCertificate() });
    closers.push(() => secure.close());
    const response = await clientWith().get(secure.url);
    expect([response.errorKind, response.status]).toEqual(["tls", 0]);
    expect(response.error).toMatch(/certificate/i);
    expect(secure.stats().requests).toBe(0);
  });

  it("accepts any certificate when insecure, keeps connections, and measures the handshake", async () => {
    const secure = await startDemoTarget({ port: 0, tls: makeCertificate() });
    closers.push(() => secure.close());
    const client = clientWith({ insecure: true });
    const first = await client.get(`${secure.url}/bytes/300000`);
    expect([first.errorKind, first.bytes().length]).toEqual([null, 300_000]);
    expect(first.tlsMs).toBeGreaterThan(0);
    const second = await client.get(secure.url);
    expect([second.text(), second.tlsMs]).toEqual(["Hyperscale!\n", -1]);
    expect(secure.stats()).toMatchObject({ requests: 2, connections: 1 });
  });

  it("to a server that speaks plain HTTP, or closes, fails as tls", async () => {
    const plain = await clientWith({ insecure: true }).get(demo.url.replace("http:", "https:"));
    expect(plain.errorKind).toBe("tls");
    const server = await scripted(() => undefined);
    const closing = await startScriptedServer(() => undefined);
    await closing.close();
    const refused = await clientWith({ insecure: true }).get(`https://127.0.0.1:${closing.port}/`);
    expect(refused.errorKind).toBe("refused");
    const hanging = await clientWith({ insecure: true, connectTimeoutMs: 100 }).get(
      server.url.replace("http:", "https:"),
    );
    expect(hanging.errorKind).toBe("timeout");
    expect(hanging.error).toMatch(/no connection/);
  });
});
