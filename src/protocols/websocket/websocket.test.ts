import http from "node:http";
import https from "node:https";
import net from "node:net";
import type { TLSSocket } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { makeCertificate } from "../../demo/certificate.ts";
import { runner, TestSession } from "../testing/session.ts";
import { WebsocketClient, websocket } from "./client.ts";
import { QUEUE_MESSAGES_MAX, SOCKETS_PER_USER_MAX } from "./limits.ts";
import { WebsocketResponse } from "./response.ts";
import { WebsocketTarget } from "./target.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close();
});

interface Served {
  readonly url: string;
  readonly connections: () => number;
  readonly requests: http.IncomingMessage[];
}

type OnSocket = (socket: WebSocket, request: http.IncomingMessage) => void;

async function serve(onSocket: OnSocket, secure = false): Promise<Served> {
  const server = secure ? https.createServer(makeCertificate()) : http.createServer();
  const sockets = new WebSocketServer({
    server,
    handleProtocols: (offered) => (offered.has("chat") ? "chat" : false),
  });
  const requests: http.IncomingMessage[] = [];
  sockets.on("connection", (socket, request) => {
    requests.push(request);
    socket.on("error", () => undefined);
    onSocket(socket, request);
  });
  const port = await listening(server);
  closers.push(() => {
    for (const socket of sockets.clients) socket.terminate();
    sockets.close();
    server.close();
  });
  const url = `${secure ? "wss" : "ws"}://127.0.0.1:${port}/`;
  return { url, requests, connections: () => requests.length };
}

async function listening(server: net.Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as net.AddressInfo).port;
}

/** A bare TCP server that reads the handshake and then runs a script. */
async function serveRaw(answer: (socket: net.Socket, head: string) => void): Promise<string> {
  const server = net.createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (head) => answer(socket, head.toString()));
    closers.push(() => socket.destroy());
  });
  const port = await listening(server);
  closers.push(() => server.close());
  return `ws://127.0.0.1:${port}/`;
}

function session(settings: ConstructorParameters<typeof TestSession>[0] = {}): TestSession {
  const made = new TestSession(settings);
  closers.push(() => made.close());
  return made;
}

const client = (settings?: ConstructorParameters<typeof TestSession>[0]): WebsocketClient =>
  new WebsocketClient(session(settings));

const echo: OnSocket = (socket) => {
  socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
};

describe("connect", () => {
  it("is measured and returns the socket", async () => {
    const { url } = await serve(echo);
    const response = await client().connect(url, { protocols: ["other", "chat"] });
    expect(response).toBeInstanceOf(WebsocketResponse);
    expect(response).toMatchObject({ ok: true, status: 101, protocol: "websocket", tlsMs: -1 });
    expect(response.connectMs).toBeGreaterThanOrEqual(0);
    expect(response.bytesIn).toBeGreaterThan(100);
    expect(response.bytesOut).toBeGreaterThan(100);
    expect(response.socket?.protocol).toBe("chat");
    expect(() => response.text()).toThrow(/no message/);
  });

  it("works over TLS, and with an http URL", async () => {
    const { url } = await serve(echo, true);
    const ws = client({ insecure: true });
    const response = await ws.connect(url.replace("wss", "https"));
    expect(response.ok).toBe(true);
    expect(response.tlsMs).toBeGreaterThan(0);
    expect((await ws.request("x")).text()).toBe("x");
    expect((await client().connect(url)).errorKind).toBe("tls");
  });

  it("sends parameters and headers", async () => {
    const { url, requests } = await serve(echo);
    await client().connect(url, { params: { a: 1 }, headers: { "X-Key": "k" } });
    expect(requests[0]?.url).toBe("/?a=1");
    expect(requests[0]?.headers["x-key"]).toBe("k");
  });

  it("compresses on request", async () => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: true });
    await new Promise((resolve) => server.once("listening", resolve));
    server.on("connection", echo);
    closers.push(() => {
      for (const socket of server.clients) socket.terminate();
      server.close();
    });
    const ws = client();
    await ws.connect(`ws://127.0.0.1:${(server.address() as net.AddressInfo).port}/`, {
      compress: true,
    });
    const text = "again and ".repeat(10_000);
    const response = await ws.request(text);
    expect(response.text()).toBe(text);
    expect(response.bytesIn).toBeLessThan(10_000);
  });
});

describe("messages", () => {
  it("request waits for the response that follows it", async () => {
    const { url } = await serve(echo);
    const ws = client();
    await ws.connect(url);
    const text = await ws.request("hello");
    expect(text).toMatchObject({ ok: true, status: 0, connectMs: -1, bytesIn: 7, bytesOut: 11 });
    expect(text.text()).toBe("hello");
    expect((await ws.request({ a: [1] })).json()).toEqual({ a: [1] });
    const binary = await ws.request(Buffer.from([0, 255]));
    expect(binary.message?.isBinary).toBe(true);
    expect(binary.bytes()).toEqual(Buffer.from([0, 255]));
  });

  it("match finds the response among other messages, which can still be received", async () => {
    const { url } = await serve((socket) => {
      socket.on("message", (data) => {
        socket.send("news 1");
        socket.send(`{"id":${data.toString()}}`);
        socket.send("news 2");
      });
    });
    const ws = client();
    await ws.connect(url);
    const answer = await ws.request("7", { match: /"id":7/g });
    expect(answer.json()).toEqual({ id: 7 });
    expect((await ws.receive()).text()).toBe("news 1");
    expect((await ws.receive({ match: "news" })).text()).toBe("news 2");
    expect((await ws.receive({ timeout: 40 })).errorKind).toBe("timeout");
    // A receive that times out does not affect others.
    expect((await ws.request("8", { match: '{"id":8}' })).ok).toBe(true);
  });

  it("concurrent requests get their own responses", async () => {
    const { url } = await serve((socket) => {
      const pending: string[] = [];
      socket.on("message", (data) => {
        pending.push(data.toString());
        if (pending.length === 5) for (const text of pending.reverse()) socket.send(text);
      });
    });
    const ws = client();
    await ws.connect(url);
    const ids = [1, 2, 3, 4, 5];
    const answers = await Promise.all(
      ids.map((id) =>
        ws.request({ id }, { match: (message) => message.json<{ id: number }>().id === id }),
      ),
    );
    expect(answers.map((answer) => answer.json<{ id: number }>().id)).toEqual(ids);
  });

  it("send finishes when the bytes are written; close when the server confirms", async () => {
    const received: string[] = [];
    const { url } = await serve((socket) => {
      socket.on("message", (data) => received.push(data.toString()));
      socket.on("close", (code, reason) => received.push(`${code} ${reason.toString()}`));
    });
    const ws = client();
    await ws.connect(url);
    expect(await ws.send("one way")).toMatchObject({ ok: true, bytesOut: 13 });
    expect((await ws.close(4000, "done")).ok).toBe(true);
    expect(received).toEqual(["one way", "4000 done"]);
    expect((await ws.send("late")).errorKind).toBe("reset");
  });

  it("messages that arrived before the close can still be received", async () => {
    const { url } = await serve((socket) => {
      socket.send("last words");
      socket.close();
    });
    const ws = client();
    await ws.connect(url);
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect((await ws.receive()).text()).toBe("last words");
    expect((await ws.receive()).errorKind).toBe("reset");
  });

  it("unread messages are bounded, and dropped ones are counted", async () => {
    const extra = 10;
    const { url } = await serve((socket) => {
      for (let i = 0; i < QUEUE_MESSAGES_MAX + extra; i++) socket.send(String(i));
      socket.on("message", () => socket.send("end"));
    });
    const ws = client();
    const { socket } = await ws.connect(url);
    await ws.request("?", { match: "end" });
    expect(socket?.dropped).toBe(extra);
    expect((await ws.receive()).text()).toBe(String(extra));
  });

  it("a match that throws fails its own call only", async () => {
    const { url } = await serve(echo);
    const ws = client();
    await ws.connect(url);
    const response = await ws.request("no json", { match: (message) => message.json() === 1 });
    expect(response.errorKind).toBe("exception");
    expect(response.error).toMatch(/match threw/);
    expect((await ws.receive({ match: (message) => message.json() === 1 })).errorKind).toBe(
      "exception",
    );
    expect((await ws.receive()).text()).toBe("no json");
  });
});

describe("a prepared exchange", () => {
  it("keeps one connection of the virtual user, shared by equal exchanges", async () => {
    const { url, connections } = await serve(echo);
    const user = session();
    const one = await runner(websocket.exchange(url, "one"), user);
    const two = await runner(websocket.exchange(url, { n: 2 }, { match: "n" }), user, false);
    expect((await one()).record.connectMs).toBeGreaterThanOrEqual(0);
    for (let i = 0; i < 10; i++) {
      const first = await one();
      expect(first.record).toMatchObject({
        errorKind: null,
        connectMs: -1,
        bytesIn: 5,
        bytesOut: 9,
      });
      expect((first.result as WebsocketResponse).text()).toBe("one");
      const second = await two();
      expect(second.record.errorKind).toBeNull();
      expect(second.result).toBeUndefined();
    }
    expect(connections()).toBe(1);
  });

  it("connects again after the server closed, and each time without keep-alive", async () => {
    let live: WebSocket | undefined;
    const { url, connections } = await serve((socket, request) => {
      live = socket;
      echo(socket, request);
    });
    const kept = await runner(websocket.exchange(url, "x"), session());
    expect((await kept()).record.errorKind).toBeNull();
    live?.terminate();
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect((await kept()).record.errorKind).toBeNull();
    expect(connections()).toBe(2);
    const fresh = await runner(websocket.exchange(url, "x"), session({ keepAlive: false }));
    for (let i = 0; i < 3; i++) expect((await fresh()).record.errorKind).toBeNull();
    expect(connections()).toBe(5);
  });

  it("never mistakes a late response for the next one", async () => {
    let delay = 2_000;
    const { url, connections } = await serve((socket) => {
      let count = 0;
      socket.on("message", () => {
        const answer = `answer ${++count}`;
        setTimeout(() => socket.send(answer), delay);
        delay = 0;
      });
    });
    const run = await runner(websocket.exchange(url, "?", { timeout: 1_000 }), session());
    expect((await run()).record.errorKind).toBe("timeout");
    const { result } = await run();
    expect((result as WebsocketResponse).text()).toBe("answer 1");
    expect(connections()).toBe(2);
  });
});

describe("failures", () => {
  it("nothing listens: refused; an unknown host: dns", async () => {
    expect((await client().connect("ws://127.0.0.1:1/")).errorKind).toBe("refused");
    expect((await client().connect("ws://no-such-host.invalid/")).errorKind).toBe("dns");
    const run = await runner(websocket.exchange("ws://127.0.0.1:1/", "x"), session());
    for (let i = 0; i < 2; i++) expect((await run()).record.errorKind).toBe("refused");
  });

  it.each([
    ["a refusal", "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "status", 403],
    ["no WebSocket", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "protocol", 200],
    [
      "a wrong key",
      "HTTP/1.1 101 Hi\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
      "protocol",
      0,
    ],
    ["no HTTP", "220 mail.example ESMTP\r\n", "protocol", 0],
    ["an end", "", "reset", 0],
  ])("the handshake is answered with %s", async (_name, text, kind, status) => {
    const url = await serveRaw((socket) => socket.end(text));
    expect(await client().connect(url)).toMatchObject({ errorKind: kind, status, socket: null });
  });

  it.each([
    ["handshake", "no connection"],
    ["answer", "no answer"],
  ])("no %s in time: timeout", async (phase, text) => {
    const url =
      phase === "handshake" ? await serveRaw(() => undefined) : (await serve(() => undefined)).url;
    const run = await runner(websocket.exchange(url, "?", { timeout: 1_000 }), session());
    const { record, result } = await run();
    expect(record.errorKind).toBe("timeout");
    expect(result?.error).toMatch(new RegExp(`^${text} after`));
  });

  it("malformed frames: protocol", async () => {
    const { url } = await serve((socket, request) => {
      socket.on("message", () => request.socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff])));
    });
    const ws = client();
    await ws.connect(url);
    expect((await ws.request("?")).errorKind).toBe("protocol");
  });

  it("a message longer than the limit: protocol", async () => {
    const { url } = await serve((socket) => {
      socket.on("message", () => socket.send("x".repeat(2000)));
    });
    const ws = client({ bodyBytesMax: 1000 });
    await ws.connect(url);
    expect((await ws.request("?")).errorKind).toBe("protocol");
  });

  it.each([
    [1000, "reset"],
    [1002, "protocol"],
    [1008, "refused"],
    [1011, "reset"],
    [1013, "refused"],
  ])("closed with %i while a call waits: %s", async (code, kind) => {
    const { url } = await serve((socket) => {
      socket.on("message", () => socket.close(code, "because"));
    });
    const ws = client();
    await ws.connect(url);
    const response = await ws.request("?");
    expect(response.errorKind).toBe(kind);
    expect(response.error).toContain(`(code ${code}: because)`);
  });

  it("a closed connection fails every waiting call", async () => {
    const { url } = await serve((socket, request) => {
      socket.on("message", () => request.socket.destroy());
    });
    const ws = client();
    await ws.connect(url);
    const never = { match: "never" };
    const calls = [ws.receive(never), ws.request("?", never), ws.receive()];
    expect((await Promise.all(calls)).map(({ errorKind }) => errorKind)).toEqual([
      "reset",
      "reset",
      "reset",
    ]);
  });

  it("mistakes are reported with a readable message", async () => {
    expect(() => websocket.exchange("host/path", "x")).toThrow(/write ws:\/\/host\/path/);
    expect(() => websocket.exchange("ftp://host", "x")).toThrow(/not an http, https, ws or wss/);
    await expect(
      runner(websocket.exchange("ws://x", "x", { timeout: "soon" }), session()),
    ).rejects.toThrow(/timeout/);
    expect(() => client().request("x")).toThrow("call ws.connect(url) first");
  });

  it("caps connections that are never closed", async () => {
    const { url } = await serve(echo);
    const ws = client();
    for (let i = 0; i < SOCKETS_PER_USER_MAX; i++) await ws.connect(url);
    await expect(ws.connect(url)).rejects.toThrow(/close them with ws.close/);
  });

  it("a prepared exchange without a free connection fails with kind resources", async () => {
    const { url } = await serve(echo);
    const user = session();
    const ws = new WebsocketClient(user);
    for (let i = 0; i < SOCKETS_PER_USER_MAX; i++) await ws.connect(url);
    const run = await runner(websocket.exchange(url, "hello"), user);
    const { record, result } = await run();
    expect(record.errorKind).toBe("resources");
    expect(result?.error).toMatch(/close them with ws.close/);
    await ws.close();
    expect((await run()).record.errorKind).toBe(null);
  });
});

it("a virtual user that stops closes its connections and reports nothing more", async () => {
  let closed = 0;
  const { url, connections } = await serve((socket) => {
    socket.on("close", () => closed++);
  });
  const user = session();
  const ws = new WebsocketClient(user);
  await ws.connect(url);
  let reported = false;
  const report = (): void => {
    reported = true;
  };
  void ws.receive({ timeout: 1_000 }).then(report);
  const run = await runner(websocket.exchange(url, "?", { timeout: 1_000 }), user);
  void run().then(report);
  while (connections() < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  user.close();
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  expect({ reported, closed }).toEqual({ reported: false, closed: 2 });
});

describe("a target", () => {
  const shop = makeCertificate({ hosts: ["chat.test"] });
  const ada = makeCertificate({ hosts: ["ada"] });
  const bob = makeCertificate({ hosts: ["bob"] });

  /** Accepts certificates of ada and bob only, and records which one. */
  async function demanding(): Promise<{ hosts: Record<string, string>; seen: string[] }> {
    const server = https.createServer({ ...shop, requestCert: true, ca: [ada.cert, bob.cert] });
    const sockets = new WebSocketServer({ server });
    const seen: string[] = [];
    sockets.on("connection", (socket, request) => {
      seen.push(String((request.socket as TLSSocket).getPeerCertificate().subject.CN));
      socket.on("error", () => undefined);
    });
    server.on("tlsClientError", () => undefined);
    const port = await listening(server);
    closers.push(() => {
      for (const socket of sockets.clients) socket.terminate();
      server.close();
    });
    return { hosts: { "chat.test": `127.0.0.1:${port}` }, seen };
  }

  const connect = async (target: WebsocketTarget, user = 0): Promise<string | null> => {
    const session = new TestSession({}, user);
    closers.push(() => session.close());
    return (await (await runner(target.connect(), session))()).record.errorKind;
  };

  it("has its own authority, hosts, and a certificate for each user", async () => {
    const { hosts, seen } = await demanding();
    expect(await connect(new WebsocketTarget("wss://chat.test", { hosts }))).toBe("tls");
    const room = new WebsocketTarget("wss://chat.test", {
      ...{ hosts, ca: shop.cert },
      certificate: (user) => (user === 1 ? ada : bob),
    });
    for (const user of [1, 2]) expect(await connect(room, user)).toBeNull();
    expect(seen).toEqual(["ada", "bob"]);
  });

  it("rejects an unknown option", () => {
    const options = { header: {} } as object;
    expect(() => new WebsocketTarget("wss://chat.test", options)).toThrow(
      'a target has no option "header"; did you mean "headers"?',
    );
  });
});
