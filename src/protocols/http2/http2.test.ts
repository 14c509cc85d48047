import nodeHttp2 from "node:http2";
import net from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { makeCertificate } from "../../demo/certificate.ts";
import { HttpResponse } from "../http/response.ts";
import { runner, TestSession } from "../testing/session.ts";
import { Http2Client, http2 } from "./client.ts";
import { UNSEEN_RETRIES_MAX } from "./limits.ts";
import { Http2Response } from "./response.ts";
import * as raw from "./testing/raw-server.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close();
});

interface Served {
  readonly url: string;
  readonly connections: () => number;
  readonly streams: () => number;
}

type OnStream = (
  stream: nodeHttp2.ServerHttp2Stream,
  headers: nodeHttp2.IncomingHttpHeaders,
) => void;

async function serve(onStream: OnStream, secure = false): Promise<Served> {
  const server = secure
    ? nodeHttp2.createSecureServer(makeCertificate())
    : nodeHttp2.createServer({ settings: { maxConcurrentStreams: 4 } });
  let connections = 0;
  let streams = 0;
  const sessions = new Set<nodeHttp2.ServerHttp2Session>();
  server.on("session", (session) => {
    connections++;
    sessions.add(session);
  });
  server.on("sessionError", () => undefined);
  server.on("stream", (stream, headers) => {
    streams++;
    stream.on("error", () => undefined);
    onStream(stream, headers);
  });
  closers.push(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  const url = `${secure ? "https" : "http"}://127.0.0.1:${port}/`;
  return { url, connections: () => connections, streams: () => streams };
}

function session(settings: ConstructorParameters<typeof TestSession>[0] = {}): TestSession {
  const made = new TestSession(settings);
  closers.push(() => made.close());
  return made;
}

const client = (settings?: ConstructorParameters<typeof TestSession>[0]): Http2Client =>
  new Http2Client(session(settings));

/** Answers with the received request as JSON. */
const echo: OnStream = (stream, headers) => {
  const pieces: Buffer[] = [];
  stream.on("data", (piece: Buffer) => pieces.push(piece));
  stream.on("end", () => {
    const body = Buffer.concat(pieces).toString();
    stream.respond({ ":status": 200, "content-type": "application/json", "x-a": "1" });
    stream.end(JSON.stringify({ headers, body }));
  });
};

describe("a request", () => {
  it("is answered over cleartext with prior knowledge", async () => {
    const { url } = await serve(echo);
    const response = await client().get(url);
    expect(response).toBeInstanceOf(Http2Response);
    expect(response).toBeInstanceOf(HttpResponse);
    expect(response).toMatchObject({ ok: true, status: 200, protocol: "http2", tlsMs: -1 });
    expect(response.header("X-A")).toBe("1");
    expect(response.connectMs).toBeGreaterThanOrEqual(0);
    expect(response.firstByteAt).toBeGreaterThanOrEqual(response.startedAt);
    expect(response.endedAt).toBeGreaterThanOrEqual(response.firstByteAt);
  });

  it("is answered over TLS, negotiated by ALPN", async () => {
    const { url } = await serve(echo, true);
    const response = await client({ insecure: true }).get(url);
    expect(response).toMatchObject({ ok: true, status: 200 });
    expect(response.tlsMs).toBeGreaterThanOrEqual(0);
  });

  it("sends method, path, parameters, lower-case headers, cookies and body (OPT-8)", async () => {
    const { url } = await serve(echo);
    const response = await client().request("PATCH", `${url}a?b=1`, {
      params: { c: 2 },
      headers: { "X-Upper": "Yes", Host: "other.example" },
      json: { n: 1 },
    });
    const { headers, body } = response.json<{ headers: Record<string, string>; body: string }>();
    expect(headers).toMatchObject({
      ":method": "PATCH",
      ":path": "/a?b=1&c=2",
      ":authority": "other.example",
      "x-upper": "Yes",
      "content-type": "application/json",
      "content-length": "7",
    });
    expect(body).toBe('{"n":1}');
  });

  it("counts all bytes on the wire", async () => {
    const { url } = await serve((stream) => {
      stream.respond({ ":status": 200 });
      stream.end("x".repeat(50_000));
    });
    const http = client();
    await http.get(url);
    const second = await http.post(url, { body: "y".repeat(20_000) });
    expect(second.bytesIn).toBeGreaterThan(50_000);
    expect(second.bytesIn).toBeLessThan(51_000);
    expect(second.bytesOut).toBeGreaterThan(20_000);
    expect(second.bytesOut).toBeLessThan(21_000);
  });

  it("handles HEAD, empty and compressed responses", async () => {
    const { url } = await serve((stream, headers) => {
      const path = headers[":path"];
      if (path === "/empty") stream.respond({ ":status": 204 }, { endStream: true });
      else if (headers[":method"] === "HEAD") {
        stream.respond({ ":status": 200, "content-length": "10" }, { endStream: true });
      } else {
        stream.respond({ ":status": 200, "content-encoding": "gzip" });
        stream.end(gzipSync("squeezed"));
      }
    });
    const http = client();
    expect((await http.get(`${url}empty`)).text()).toBe("");
    expect(await http.head(url)).toMatchObject({ ok: true, status: 200 });
    expect((await http.get(url)).text()).toBe("squeezed");
  });

  it("fails by status, unless the status is expected (C30-12)", async () => {
    const { url } = await serve((stream) => {
      stream.respond({ ":status": 404 });
      stream.end("no");
    });
    const response = await client().get(url);
    expect(response).toMatchObject({ ok: false, errorKind: "status", status: 404 });
    expect(response.text()).toBe("no");
    expect((await client().get(url, { expect: 404 })).ok).toBe(true);
  });

  it("follows redirects when configured", async () => {
    const { url } = await serve((stream, headers) => {
      if (headers[":path"] === "/") {
        stream.respond({ ":status": 302, location: "/there" }, { endStream: true });
      } else {
        stream.respond({ ":status": 200 });
        stream.end(`${headers[":method"]} ${headers[":path"]}`);
      }
    });
    const http = client();
    expect((await http.post(url)).status).toBe(302);
    expect((await http.post(url, { redirects: 1 })).text()).toBe("GET /there");
  });

  it("keeps the virtual user's cookies", async () => {
    const { url } = await serve((stream, headers) => {
      stream.respond({ ":status": 200, "set-cookie": ["a=1; Path=/", "b=2; Path=/"] });
      stream.end(headers["cookie"] ?? "none");
    });
    const http = client();
    expect((await http.get(url)).text()).toBe("none");
    expect((await http.get(url)).text()).toBe("a=1; b=2");
    const off = client({ cookies: "off" });
    await off.get(url);
    expect((await off.get(url)).text()).toBe("none");
  });

  it.each([{ Connection: "close" }, { "transfer-encoding": "chunked" }, { te: "gzip" }])(
    "with %j is rejected at once",
    async (headers) => {
      const request = http2.get("http://127.0.0.1:1/", { headers });
      await expect(runner(request, session())).rejects.toThrow(/HTTP\/2/);
    },
  );
});

describe("a prepared request", () => {
  it("reuses one connection and keeps nothing that no function can read", async () => {
    const { url, connections, streams } = await serve(echo);
    const run = await runner(http2.get(url), session(), false);
    const first = await run();
    expect(first.record.connectMs).toBeGreaterThanOrEqual(0);
    for (let i = 0; i < 20; i++) {
      const { record, result } = await run();
      expect(record).toMatchObject({ errorKind: null, status: 200, connectMs: -1, tlsMs: -1 });
      expect(result).toBeUndefined();
    }
    expect([connections(), streams()]).toEqual([1, 21]);
  });

  it("opens a connection for each call when keep-alive is off", async () => {
    const { url, connections } = await serve(echo);
    const run = await runner(http2.get(url), session({ keepAlive: false }));
    for (let i = 0; i < 3; i++) expect((await run()).record.errorKind).toBeNull();
    expect(connections()).toBe(3);
  });

  it("discards the body when configured", async () => {
    const { url } = await serve(echo);
    const run = await runner(http2.get(url, { readBody: false }), session());
    const { result } = await run();
    expect(result).toBeInstanceOf(Http2Response);
    expect(() => (result as Http2Response).text()).toThrow(/discarded/);
  });

  it("drops a body longer than the limit", async () => {
    const { url } = await serve((stream) => {
      stream.respond({ ":status": 200 });
      stream.end("x".repeat(2000));
    });
    const response = await client({ bodyBytesMax: 1000 }).get(url);
    expect(response.ok).toBe(true);
    expect(() => response.text()).toThrow(/pass a larger { bodyBytesMax }/);
  });
});

describe("connections", () => {
  it("carry concurrent calls, up to the server's limit", async () => {
    const { url, connections } = await serve((stream) => {
      setTimeout(() => {
        if (stream.destroyed) return;
        stream.respond({ ":status": 200 });
        stream.end("late");
      }, 20);
    });
    const http = client();
    await http.get(url);
    const four = await Promise.all([1, 2, 3, 4].map(() => http.get(url)));
    expect(four.every((response) => response.ok)).toBe(true);
    expect(connections()).toBe(1);
    const ten = await Promise.all(Array.from({ length: 10 }, () => http.get(url)));
    expect(ten.every((response) => response.ok)).toBe(true);
    expect(connections()).toBeGreaterThan(1);
  });

  it("are shared by virtual users when configured, and closed with the last", async () => {
    const { url, connections } = await serve(echo);
    const first = session({ connections: "shared" });
    const second = new TestSession(first.settings);
    // Sharing depends on the settings object of the workflow.
    Object.assign(second, { settings: first.settings });
    await new Http2Client(first).get(url);
    const other = new Http2Client(second);
    expect((await other.get(url)).connectMs).toBe(-1);
    first.close();
    expect((await other.get(url)).connectMs).toBe(-1);
    expect(connections()).toBe(1);
    second.close();
  });

  it("are opened again after the server closed them", async () => {
    let close: () => void = () => undefined;
    const { url, connections } = await serve((stream, headers) => {
      const { session } = stream;
      close = () => session?.destroy();
      echo(stream, headers);
    });
    const http = client();
    expect((await http.get(url)).ok).toBe(true);
    close();
    // The close arrives with the next turns of the loop.
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect((await http.get(url)).ok).toBe(true);
    expect(connections()).toBe(2);
  });
});

describe("failures", () => {
  it("nothing listens: refused", async () => {
    const response = await client().get("http://127.0.0.1:1/");
    expect(response).toMatchObject({ errorKind: "refused", status: 0 });
    expect(response.text()).toBe("");
  });

  it("an unknown host: dns", async () => {
    const response = await client().get("http://no-such-host.invalid/");
    expect(response.errorKind).toBe("dns");
  });

  it("an untrusted certificate: tls", async () => {
    const { url } = await serve(echo, true);
    expect((await client().get(url)).errorKind).toBe("tls");
  });

  it.each([
    ["HTTP/1.1", "HTTP/1.1 400 Bad Request\r\n\r\n"],
    ["noise", "\x00\xffgarbage that is no frame at all, and long enough to be one"],
  ])("a server that speaks %s: protocol", async (_name, text) => {
    const server = net.createServer((socket) => {
      socket.on("error", () => undefined);
      socket.end(text, "latin1");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closers.push(() => server.close());
    const { port } = server.address() as net.AddressInfo;
    const response = await client().get(`http://127.0.0.1:${port}/`);
    expect(response.errorKind).toBe("protocol");
  });

  it("a TLS server without HTTP/2: protocol, with a hint about ALPN", async () => {
    const https = await import("node:https");
    const server = https.createServer(makeCertificate(), (_request, answer) => answer.end());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closers.push(() => server.close());
    const { port } = server.address() as net.AddressInfo;
    const response = await client({ insecure: true }).get(`https://127.0.0.1:${port}/`);
    expect(response.errorKind).toBe("protocol");
    expect(response.error).toMatch(/does not offer HTTP\/2/);
  });

  it.each([
    ["no connection", "connect"],
    ["no answer", "head"],
    ["no complete answer", "body"],
  ])("%s in time: timeout", async (text, phase) => {
    const { url } = await serve((stream) => {
      if (phase === "head") return;
      stream.respond({ ":status": 200 });
      stream.write("begun");
    });
    let target = url;
    if (phase === "connect") {
      // Accepts, and never starts TLS.
      const mute = net.createServer((socket) => void closers.push(() => socket.destroy()));
      await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
      closers.push(() => mute.close());
      target = `https://127.0.0.1:${(mute.address() as net.AddressInfo).port}/`;
    }
    // On a busy machine earlier phases may be late, too; then the timeout grows.
    const missing = ["no connection", "no answer", "no complete answer"];
    const earlier = missing.slice(0, missing.indexOf(text));
    let response = await client({ timeoutMs: 500 }).get(target);
    for (
      let timeoutMs = 1_000;
      earlier.some((one) => response.error?.startsWith(one));
      timeoutMs *= 2
    )
      response = await client({ timeoutMs }).get(target);
    expect(response.errorKind).toBe("timeout");
    expect(response.error).toMatch(new RegExp(`^${text} after`));
  });

  it("a connection that fell silent is not reused", async () => {
    let mute = false;
    const { url, connections } = await serve((stream, headers) => {
      if (!mute) echo(stream, headers);
    });
    const run = await runner(http2.get(url, { timeout: 1_000 }), session());
    expect((await run()).record.errorKind).toBeNull();
    mute = true;
    expect((await run()).record.errorKind).toBe("timeout");
    mute = false;
    expect((await run()).record.errorKind).toBeNull();
    expect(connections()).toBe(2);
  });
});

describe("resets", () => {
  const served = async (answer: Parameters<typeof raw.rawServer>[0]): Promise<string> => {
    const server = await raw.rawServer(answer);
    closers.push(server.close);
    return server.url;
  };

  it.each([
    [2, "reset", "INTERNAL_ERROR"],
    [8, "reset", "CANCEL"],
    [7, "refused", "REFUSED_STREAM"],
    [11, "refused", "ENHANCE_YOUR_CALM"],
    [1, "protocol", "PROTOCOL_ERROR"],
    [13, "protocol", "HTTP_1_1_REQUIRED"],
    [12, "tls", "INADEQUATE_SECURITY"],
  ])("a stream reset with %i is %s", async (code, kind, name) => {
    const url = await served((connection, stream) => {
      connection.frame(raw.RST_STREAM, 0, stream, raw.codePayload(code));
    });
    const response = await client().get(url);
    expect(response).toMatchObject({ errorKind: kind, status: 0 });
    expect(response.error).toContain(name);
  });

  it("a reset during the response keeps the status and is a failure", async () => {
    const url = await served((connection, stream) => {
      connection.frame(raw.HEADERS, raw.END_HEADERS, stream, raw.STATUS_200);
      connection.frame(raw.DATA, 0, stream, Buffer.from("half"));
      connection.frame(raw.RST_STREAM, 0, stream, raw.codePayload(2));
    });
    expect(await client().get(url)).toMatchObject({ errorKind: "reset", status: 200 });
  });

  it("a connection closed during the response is a reset", async () => {
    const url = await served((connection, stream) => {
      connection.frame(raw.HEADERS, raw.END_HEADERS, stream, raw.STATUS_200);
      connection.frame(raw.DATA, 0, stream, Buffer.from("half"));
      setTimeout(() => connection.socket.end(), 20);
    });
    expect(await client().get(url)).toMatchObject({ errorKind: "reset", status: 200 });
  });

  it("a GOAWAY with an error is counted by its code", async () => {
    const url = await served((connection) => {
      connection.frame(raw.GOAWAY, 0, 0, raw.codePayload(11, 0x7fffffff));
    });
    const response = await client().get(url);
    expect(response.errorKind).toBe("refused");
    expect(response.error).toContain("ENHANCE_YOUR_CALM");
  });

  it("a call that a GOAWAY left unprocessed is sent again on a new connection", async () => {
    let connections = 0;
    const url = await served((connection, stream) => {
      connections = connection.number;
      if (connection.number === 1) connection.frame(raw.GOAWAY, 0, 0, raw.codePayload(0, 0));
      else connection.frame(raw.HEADERS, raw.END_HEADERS | raw.END_STREAM, stream, raw.STATUS_200);
    });
    expect(await client().get(url)).toMatchObject({ ok: true, status: 200 });
    expect(connections).toBe(2);
  });

  it("gives up after a limited number of retries", async () => {
    let connections = 0;
    const url = await served((connection) => {
      connections = connection.number;
      connection.frame(raw.GOAWAY, 0, 0, raw.codePayload(0, 0));
    });
    expect((await client().get(url)).errorKind).toBe("refused");
    expect(connections).toBe(1 + UNSEEN_RETRIES_MAX);
  });

  it("after a graceful GOAWAY the call in flight succeeds, and the next uses a new connection", async () => {
    let last = 0;
    const url = await served((connection, stream) => {
      last = connection.number;
      connection.frame(raw.GOAWAY, 0, 0, raw.codePayload(0, stream));
      connection.frame(raw.HEADERS, raw.END_HEADERS | raw.END_STREAM, stream, raw.STATUS_200);
    });
    const http = client();
    expect((await http.get(url)).ok).toBe(true);
    expect((await http.get(url)).ok).toBe(true);
    expect(last).toBe(2);
  });
});

describe("a virtual user that stops", () => {
  it("closes its connections, and calls in flight are not reported", async () => {
    let closed: () => void = () => undefined;
    const gone = new Promise<void>((resolve) => {
      closed = resolve;
    });
    let arrived: () => void = () => undefined;
    const there = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const { url } = await serve((stream) => {
      stream.session?.on("close", closed);
      arrived();
    });
    const user = session();
    const run = await runner(http2.get(url, { timeout: 1_000 }), user);
    let reported = false;
    void run().then(() => {
      reported = true;
    });
    await there;
    user.close();
    await gone;
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect(reported).toBe(false);
  });
});
