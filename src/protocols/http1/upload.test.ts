/** Uploads to real servers, over HTTP/1.1 and HTTP/2: files, forms, streams, early responses. */

import { createHash, randomBytes } from "node:crypto";
import { createReadStream, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import nodeHttp, { type IncomingMessage, type ServerResponse } from "node:http";
import nodeHttp2 from "node:http2";
import type net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { file } from "../http/file-part.ts";
import type { RequestOptions } from "../http/request.ts";
import { Http2Client, http2 } from "../http2/client.ts";
import { type PreparedCall, prepareCalls } from "../protocol.ts";
import { runner, TestSession } from "../testing/session.ts";
import { HttpClient, http } from "./client.ts";

const LONG_BYTES = 6 * 1024 * 1024 + 17;
const long = randomBytes(LONG_BYTES);
const longHash = createHash("sha256").update(long).digest("hex");
const folder = mkdtempSync(join(tmpdir(), "hyperscale-upload-"));
const closers: (() => void)[] = [];

interface Received {
  readonly headers: nodeHttp.IncomingHttpHeaders;
  readonly hash: string;
  readonly length: number;
  readonly body: Buffer;
}

let received: Received[] = [];

function collect(request: IncomingMessage | nodeHttp2.Http2ServerRequest, done: () => void): void {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  request.on("end", () => {
    const body = Buffer.concat(pieces);
    const hash = createHash("sha256").update(body).digest("hex");
    received.push({ headers: request.headers, hash, length: body.length, body });
    done();
  });
  request.on("error", () => undefined);
}

type Answer = ServerResponse | nodeHttp2.Http2ServerResponse;

/**
 * /early answers before it has read, /unread never reads, /hang-up closes the connection, /again redirects with 307,
 * everything else answers ok.
 */
function onRequest(
  request: IncomingMessage | nodeHttp2.Http2ServerRequest,
  response: Answer,
): void {
  if (request.url === "/unread") return;
  if (request.url === "/hang-up") {
    const { stream } = request as nodeHttp2.Http2ServerRequest;
    (stream?.session ?? request.socket).destroy();
    return;
  }
  if (request.url === "/early") {
    response.statusCode = 413;
    response.end("too large");
    return;
  }
  collect(request, () => {
    if (request.url === "/again") {
      response.statusCode = 307;
      response.setHeader("location", "/there");
    }
    response.end("ok");
  });
}

async function listen(server: net.Server | nodeHttp2.Http2Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => server.close());
  return `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`;
}

interface Version {
  readonly name: string;
  readonly verbs: { post(url: string, options: RequestOptions): PreparedCall };
  client(session: TestSession): HttpClient | Http2Client;
  server(): net.Server | nodeHttp2.Http2Server;
}

const versions: readonly Version[] = [
  {
    name: "HTTP/1.1",
    verbs: http,
    client: (session) => new HttpClient(session),
    server: () => nodeHttp.createServer(onRequest),
  },
  {
    name: "HTTP/2",
    verbs: http2,
    client: (session) => new Http2Client(session),
    server: () => nodeHttp2.createServer(onRequest),
  },
];

function session(settings: ConstructorParameters<typeof TestSession>[0] = {}): TestSession {
  const made = new TestSession(settings);
  closers.push(() => made.close());
  return made;
}

beforeAll(async () => {
  writeFileSync(join(folder, "long.bin"), long);
  writeFileSync(join(folder, "cart.json"), '{"tea":1}');
  await prepareCalls([], { settings: session().settings, folder });
});
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close();
  received = [];
});

describe.each(versions)("$name", ({ client, server, verbs }) => {
  it("streams a long file repeatedly with its length", async () => {
    const url = await listen(server());
    const send = await runner(verbs.post(url, { body: file(join(folder, "long.bin")) }), session());
    for (let i = 0; i < 3; i++) {
      const { record } = await send();
      expect([record.errorKind, record.status]).toEqual([null, 200]);
      expect(record.bytesOut).toBeGreaterThan(LONG_BYTES);
      expect(record.bytesOut).toBeLessThan(LONG_BYTES + 40_000);
    }
    expect(received.map(({ hash }) => hash)).toEqual([longHash, longHash, longHash]);
    expect(received[0]?.headers).toMatchObject({
      "content-length": String(LONG_BYTES),
      "content-type": "application/octet-stream",
    });
  });

  it("sends a form with files and values, from a function and prepared", async () => {
    const url = await listen(server());
    const form = {
      cart: file("cart.json"),
      movie: file("long.bin"),
      note: "hi",
      blob: new Blob(["b"]),
    };
    await client(session()).post(url, { form });
    const { record } = await (await runner(verbs.post(url, { form }), session()))();
    expect(record.errorKind).toBeNull();
    expect(received.length).toBe(2);
    for (const { body, headers, length } of received) {
      expect(headers["content-length"]).toBe(String(length));
      const type = headers["content-type"] ?? "";
      const read = await new Response(new Uint8Array(body), {
        headers: { "content-type": type },
      }).formData();
      expect([...read.keys()]).toEqual(["cart", "movie", "note", "blob"]);
      const cart = read.get("cart") as File;
      expect([cart.name, cart.type, await cart.text()]).toEqual([
        "cart.json",
        "application/json",
        '{"tea":1}',
      ]);
      const movie = Buffer.from(await (read.get("movie") as File).arrayBuffer());
      expect(movie.equals(long)).toBe(true);
      expect(read.get("note")).toBe("hi");
    }
  });

  it("sends a stream of unknown length, and the next request on the same connection", async () => {
    const url = await listen(server());
    const user = client(session());
    const stream = new Blob([long]).stream();
    const first = await user.post(url, { body: stream });
    const second = await user.post(url, { json: { a: 1 } });
    expect([first.status, second.status, second.connectMs]).toEqual([200, 200, -1]);
    expect(received.map(({ length }) => length)).toEqual([LONG_BYTES, 7]);
    expect(received[0]?.hash).toBe(longHash);
    expect(received[0]?.headers["content-length"]).toBeUndefined();
  });

  it("takes the length of a stream from its header", async () => {
    const url = await listen(server());
    const options = { headers: { "content-length": 5 }, body: new Blob(["12345"]).stream() };
    await client(session()).post(url, options);
    expect(received[0]?.headers).toMatchObject({ "content-length": "5" });
    expect(received[0]?.headers["transfer-encoding"]).toBeUndefined();
    expect(received[0]?.body.toString()).toBe("12345");
  });

  it("reports a stream that would have to be read twice: redirect, second iteration", async () => {
    const url = await listen(server());
    const user = client(session({ redirectsMax: 3 }));
    const redirected = await user.post(`${url}/again`, { body: new Blob(["x"]).stream() });
    expect(redirected.errorKind).toBe("exception");
    expect(redirected.error).toContain("cannot be sent again");
    const call = verbs.post(url, { body: new Blob(["x"]).stream() });
    const { result } = await (async () => {
      const send = await runner(call, session());
      await send();
      return send();
    })();
    expect(result).toMatchObject({ errorKind: "exception" });
    expect(result?.error).toContain("cannot be sent again");
  });

  it("follows a redirect with a replayable body", async () => {
    const url = await listen(server());
    const user = client(session({ redirectsMax: 3 }));
    const answer = await user.post(`${url}/again`, { body: new Blob([long]) });
    expect([answer.errorKind, answer.status]).toEqual([null, 200]);
    // Ignores parts of a stream that an earlier test cut off.
    const whole = received.filter(({ length }) => length > 0);
    expect(whole.map(({ hash }) => hash)).toEqual([longHash, longHash]);
  });

  it("stops sending when the response arrives first, and does not reuse that connection", async () => {
    const url = await listen(server());
    const user = client(session());
    let asked = 0;
    const endless = async function* () {
      for (;;) {
        asked++;
        yield long.subarray(0, 64 * 1024);
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const early = await user.post(`${url}/early`, { body: endless() });
    expect([early.errorKind, early.status, early.text()]).toEqual(["status", 413, "too large"]);
    const after = await user.post(url, { body: "next" });
    expect(after.status).toBe(200);
    const before = asked;
    await user.post(url, { body: "next" });
    expect(asked - before).toBeLessThan(3);
  });

  it("fails the call, not the run, when the source fails or has another length", async () => {
    const url = await listen(server());
    const user = client(session());
    const broken = await user.post(url, {
      body: (async function* () {
        yield "begun";
        throw new Error("disk on fire");
      })(),
    });
    expect([broken.errorKind, broken.error]).toEqual(["exception", "disk on fire"]);
    const odd = await user.post(url, {
      body: (async function* () {
        yield 7 as unknown as string;
      })(),
    });
    expect(odd.error).toContain("neither bytes nor text, but number");
    const path = join(folder, "shrinks.bin");
    writeFileSync(path, long);
    const part = file("shrinks.bin");
    await part.prepare({ folder });
    truncateSync(path, 100);
    const short = await user.post(url, { body: part });
    expect(short.error).toContain("turned out shorter than");
    expect((await user.post(url, { body: "well" })).status).toBe(200);
  });

  it("releases the source when the call times out or the server hangs up", async () => {
    const url = await listen(server());
    const user = client(session());
    let [begun, ended] = [false, false];
    const endless = async function* () {
      begun = true;
      try {
        for (;;) yield long;
      } finally {
        ended = true;
      }
    };
    // On a busy machine a call may time out before its connection is open and the source is started.
    for (let timeout = 100; !begun; timeout *= 2) {
      const late = await user.post(`${url}/unread`, { timeout, body: endless() });
      expect(late.errorKind).toBe("timeout");
    }
    await expect.poll(() => ended).toBe(true);
    ended = false;
    expect((await user.post(`${url}/hang-up`, { body: endless() })).errorKind).toBe("reset");
    await expect.poll(() => ended).toBe(true);
    expect((await user.post(url, { body: "well" })).status).toBe(200);
  });

  it("releases streams that it never started to read, because the server was unreachable", async () => {
    const unused = server();
    const url = await listen(unused);
    await new Promise<void>((resolve) => unused.close(() => resolve()));
    const path = join(folder, "long.bin");
    const ofNode = createReadStream(path);
    let cancelled = false;
    const ofTheWeb = new ReadableStream({
      cancel: () => {
        cancelled = true;
      },
    });
    for (const body of [ofNode, ofTheWeb])
      expect((await client(session()).post(url, { body })).errorKind).toBe("refused");
    await expect.poll(() => ofNode.closed).toBe(true);
    expect(cancelled).toBe(true);
  });

  it("ends silently when the user stops during an upload", async () => {
    const url = await listen(server());
    const own = session();
    let pieces = 0;
    let ended = false;
    const body = (async function* () {
      try {
        for (;;) {
          pieces++;
          yield "piece";
          await new Promise((resolve) => setImmediate(resolve));
        }
      } finally {
        ended = true;
      }
    })();
    let reported = false;
    void client(own)
      .post(url, { body })
      .then(() => {
        reported = true;
      });
    await expect.poll(() => pieces).toBeGreaterThan(3);
    own.close();
    await expect.poll(() => ended).toBe(true);
    expect(reported).toBe(false);
  });
});

describe("a body larger than memory allows", () => {
  it("is sent in bounded memory however slowly the server reads", async () => {
    const TOTAL = 256 * 1024 * 1024;
    let got = 0;
    const server = nodeHttp.createServer((request, response) => {
      request.on("data", (piece: Buffer) => {
        got += piece.length;
      });
      request.on("end", () => response.end("ok"));
    });
    const url = await listen(server);
    let waiting = 0;
    let most = 0;
    const piece = Buffer.alloc(1024 * 1024);
    const body = (async function* () {
      for (let sent = 0; sent < TOTAL; sent += piece.length) {
        waiting = sent - got;
        most = Math.max(most, waiting);
        yield piece;
      }
    })();
    const answer = await new HttpClient(session()).post(url, { body });
    expect([answer.status, got]).toEqual([200, TOTAL]);
    // In transit: one piece here, and the buffers of the two sockets.
    expect(most).toBeLessThan(32 * 1024 * 1024);
  });
});
