/** Targets against real servers: TLS with a private authority, client certificates, proxies, hosts, DNS. */

import nodeHttp from "node:http";
import nodeHttp2 from "node:http2";
import https from "node:https";
import type net from "node:net";
import type { TLSSocket } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { makeCertificate } from "../../demo/certificate.ts";
import type { TargetOptions } from "../http/target.ts";
import { Http2Client, http2 } from "../http2/client.ts";
import { connectionNotes, type PreparedCall } from "../protocol.ts";
import { startDnsServer } from "../testing/dns-server.ts";
import { startProxy } from "../testing/proxy.ts";
import { type Finished, runner, TestSession } from "../testing/session.ts";
import { websocket } from "../websocket/index.ts";
import { HttpClient, http } from "./client.ts";

const closers: (() => void)[] = [];
const environment = { ...process.env };
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close();
  process.env = { ...environment };
});

function session(
  settings: ConstructorParameters<typeof TestSession>[0] = {},
  user = 0,
): TestSession {
  const made = new TestSession(settings, user);
  closers.push(() => made.close());
  return made;
}

type Listener = net.Server | nodeHttp2.Http2Server;

async function listen<Server extends Listener>(
  server: Server,
  host = "127.0.0.1",
): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  closers.push(() => {
    server.close();
    if (server instanceof nodeHttp.Server || server instanceof https.Server)
      server.closeAllConnections();
  });
  return (server.address() as net.AddressInfo).port;
}

async function once(call: PreparedCall, own = session()): Promise<Finished> {
  return (await runner(call, own))();
}

const shopCertificate = makeCertificate({ hosts: ["shop.test"] });
const ada = makeCertificate({ hosts: ["ada"] });
const bob = makeCertificate({ hosts: ["bob"] });

interface Seen {
  readonly host: string | undefined;
  readonly servername: string | false | null;
  readonly client: string | undefined;
  readonly from: string | undefined;
}

interface TlsServer {
  readonly port: number;
  readonly seen: readonly Seen[];
}

/** Speaks HTTP/1.1 and HTTP/2, and reads client certificates. */
async function tlsServer(demands = false): Promise<TlsServer> {
  const seen: Seen[] = [];
  const server = nodeHttp2.createSecureServer(
    {
      ...shopCertificate,
      allowHTTP1: true,
      requestCert: true,
      rejectUnauthorized: demands,
      ca: [ada.cert, bob.cert],
    },
    (request, response) => {
      const socket = (request.stream?.session?.socket ?? request.socket) as TLSSocket & {
        readonly servername: string | false | null;
      };
      const subject = socket.getPeerCertificate().subject as { CN?: string } | undefined;
      const host = request.headers[":authority"] ?? request.headers.host;
      seen.push({
        host: typeof host === "string" ? host : undefined,
        servername: socket.servername,
        client: subject?.CN,
        from: socket.remoteAddress,
      });
      response.end("ok");
    },
  );
  server.on("sessionError", () => undefined);
  server.on("tlsClientError", () => undefined);
  return { port: await listen(server), seen };
}

interface Version {
  readonly name: string;
  readonly verbs: typeof http | typeof http2;
  client(own: TestSession): HttpClient | Http2Client;
}
const versions: readonly Version[] = [
  { name: "HTTP/1.1", verbs: http, client: (own) => new HttpClient(own) },
  { name: "HTTP/2", verbs: http2, client: (own) => new Http2Client(own) },
];

describe.each(versions)("TLS over $name", ({ verbs }) => {
  const get = (options: TargetOptions, own?: TestSession): Promise<Finished> =>
    once(verbs.target("https://shop.test", options).get("/"), own);

  it("trusts only the given authority, by the requested name", async () => {
    const { port, seen } = await tlsServer();
    const hosts = { "shop.test": `127.0.0.1:${port}` };
    const stranger = await get({ hosts });
    expect(stranger.record.errorKind).toBe("tls");
    const trusted = await get({ hosts, ca: shopCertificate.cert });
    expect([trusted.record.errorKind, trusted.record.status]).toEqual([null, 200]);
    expect(seen).toEqual([
      { host: "shop.test", servername: "shop.test", client: undefined, from: "127.0.0.1" },
    ]);
    const other = await get({ hosts, ca: [ada.cert] });
    expect(other.record.errorKind).toBe("tls");
    const misnamed = await get({ hosts, ca: shopCertificate.cert, serverName: "other.test" });
    expect(misnamed.record.errorKind).toBe("tls");
  });

  it("requests the configured server name, whatever the address", async () => {
    const { port, seen } = await tlsServer();
    const options = { ca: shopCertificate.cert, serverName: "shop.test" };
    const target = verbs.target(`https://127.0.0.1:${port}`, options);
    const { record } = await once(target.get("/"));
    expect(record.errorKind).toBeNull();
    expect(seen[0]?.servername).toBe("shop.test");
  });

  it("verifies the requested address, not the machine it connects to", async () => {
    const right = makeCertificate({ hosts: ["10.1.2.3"] });
    const server = https.createServer(
      { ...right, ALPNProtocols: ["h2", "http/1.1"] },
      (_, answer) => answer.end(),
    );
    server.on("tlsClientError", () => undefined);
    const port = await listen(server);
    const proxy = await startProxy({ to: port });
    closers.push(proxy.close);
    const failureOf = async (address: string, options: TargetOptions) => {
      const target = http.target(`https://${address}`, { ca: right.cert, ...options });
      return (await once(target.get("/"))).record.errorKind;
    };
    const hosts = { "10.1.2.3": `127.0.0.1:${port}`, "10.1.2.4": `127.0.0.1:${port}` };
    expect(await failureOf("10.1.2.3", { hosts })).toBeNull();
    expect(await failureOf("10.1.2.3", { proxy: proxy.url })).toBeNull();
    expect(await failureOf("10.1.2.4", { hosts })).toBe("tls");
    expect(await failureOf("10.1.2.4", { proxy: proxy.url })).toBe("tls");
  });

  it("sends a client certificate where one is required", async () => {
    const { port, seen } = await tlsServer(true);
    const common = { hosts: { "shop.test": `127.0.0.1:${port}` }, ca: shopCertificate.cert };
    const without = await get(common);
    expect(without.record.errorKind).not.toBeNull();
    // The server's refusal arrives when the request is sent, which it never reads.
    expect([without.record.errorKind, without.result?.sent]).toEqual(["tls", 0]);
    const shown = await get({ ...common, cert: ada.cert, key: Buffer.from(ada.key) });
    expect(shown.record.errorKind).toBeNull();
    expect(seen.map(({ client }) => client)).toEqual(["ada"]);
  });

  it("sends each user's own certificate", async () => {
    const { port, seen } = await tlsServer(true);
    const target = verbs.target("https://shop.test", {
      hosts: { "shop.test": `127.0.0.1:${port}` },
      ca: shopCertificate.cert,
      certificate: (user) => (user === 1 ? ada : user === 2 ? bob : { cert: "", key: "" }),
    });
    const call = target.get("/");
    for (const user of [1, 2, 1]) await once(call, session({}, user));
    expect(seen.map(({ client }) => client)).toEqual(["ada", "bob", "ada"]);
    const { record, result } = await once(call, session({}, 3));
    expect([record.errorKind, result?.error]).toEqual([
      "tls",
      expect.stringContaining("the client certificate cannot be used"),
    ]);
    await expect(once(call, session({ connections: "shared" }))).rejects.toThrow(
      'needs connections: "user"',
    );
  });

  it("can skip verification, and the result says so", async () => {
    const { port } = await tlsServer();
    const { record } = await get({ hosts: { "shop.test": `127.0.0.1:${port}` }, insecure: true });
    expect(record.errorKind).toBeNull();
    expect(connectionNotes().join("\n")).toContain("shop.test:443 were NOT verified (insecure)");
  });
});

describe("a target", () => {
  it("has a base, headers and credentials, which requests override", async () => {
    const seen: nodeHttp.IncomingMessage[] = [];
    const server = nodeHttp.createServer((request, response) => {
      seen.push(request);
      response.end("ok");
    });
    const port = await listen(server);
    const shop = http.target(`http://ada:secret@127.0.0.1:${port}/api/`, {
      headers: { Accept: "application/json", "x-a": "1", "x-b": "1" },
    });
    const client = new HttpClient(session());
    await client.send(shop.get("/items?x=1", { headers: { "X-A": "2", "x-b": undefined } }));
    const me = shop.with({ headers: { authorization: "Bearer t" } });
    const second = await client.send(me.post("", { json: {} }));
    expect(second.connectMs).toBe(-1);
    expect(seen.map(({ method, url }) => `${method} ${url}`)).toEqual([
      "GET /api/items?x=1",
      "POST /api",
    ]);
    expect(seen[0]?.headers).toMatchObject({
      accept: "application/json",
      "x-a": "2",
      authorization: `Basic ${Buffer.from("ada:secret").toString("base64")}`,
    });
    expect(seen[0]?.headers["x-b"]).toBeUndefined();
    expect(seen[1]?.headers).toMatchObject({ authorization: "Bearer t", "x-b": "1" });
  });

  it.each([
    [{ prxy: "x" }, 'a target has no option "prxy"; did you mean "proxy"?'],
    [{ ca: "ca.pem" }, 'ca is not PEM text; write file("ca.pem") if it is a path'],
    [{ cert: ada.cert }, "cert and key go together: key is missing"],
    [{ certificate: () => ada, cert: ada.cert, key: ada.key }, "leave out cert and key"],
    [{ proxy: "https://p:1" }, "a proxy address begins with http://, not https://"],
    [{ proxy: "http://ada:secret@[" }, "proxy: not the address of a proxy"],
    [{ hosts: { a: "b:c" } }, 'hosts["a"]: "b:c" is neither a host nor host:port'],
    [{ localAddress: "eth0" }, 'localAddress: "eth0" is not an IP address'],
    [{ dns: { ttl: "soon" } }, "dns.ttl:"],
    [{ dns: { tll: "1s" } }, 'dns has no option "tll"; did you mean "ttl"?'],
  ])("rejects invalid options: %o", (options, message) => {
    expect(() => http.target("https://shop.test", options as TargetOptions)).toThrow(message);
  });

  it("rejects an invalid path", () => {
    const shop = http.target("https://shop.test");
    expect(() => shop.get("items")).toThrow('a path that begins with "/", not "items"');
    expect(() => shop.get("https://other.test/")).toThrow("a path that begins");
    expect(() => http.target("https://shop.test/?a=1")).toThrow("has no query");
  });

  it("connects from the configured local addresses in turn", async () => {
    const { port, seen } = await tlsServer();
    const target = http.target("https://shop.test", {
      hosts: { "shop.test:443": `127.0.0.1:${port}` },
      ca: shopCertificate.cert,
      localAddress: ["127.0.0.2", "127.0.0.3"],
    });
    const call = target.get("/");
    for (let i = 0; i < 3; i++) await once(call);
    expect(seen.map(({ from }) => from)).toEqual(["127.0.0.2", "127.0.0.3", "127.0.0.2"]);
  });
});

describe.each(versions)("a proxy for $name", ({ name, verbs, client }) => {
  async function plainServer(): Promise<{ port: number; hosts: string[] }> {
    const hosts: string[] = [];
    const onRequest = (
      request: nodeHttp.IncomingMessage | nodeHttp2.Http2ServerRequest,
      response: nodeHttp.ServerResponse | nodeHttp2.Http2ServerResponse,
    ): void => {
      hosts.push(String(request.headers[":authority"] ?? request.headers.host));
      response.end("ok".repeat(100_000));
    };
    const server =
      name === "HTTP/2" ? nodeHttp2.createServer(onRequest) : nodeHttp.createServer(onRequest);
    return { port: await listen(server), hosts };
  }

  it("opens a tunnel to a TLS server, with credentials, once per connection", async () => {
    const { port, seen } = await tlsServer();
    const expected = `Basic ${Buffer.from("ada:p@ss").toString("base64")}`;
    const proxy = await startProxy({ to: port, credentials: expected });
    closers.push(proxy.close);
    const target = verbs.target("https://shop.test", {
      proxy: `http://ada:p%40ss@127.0.0.1:${proxy.port}`,
      ca: shopCertificate.cert,
    });
    const send = await runner(target.get("/"), session());
    for (let i = 0; i < 3; i++) {
      const { record } = await send();
      expect([record.errorKind, record.status]).toEqual([null, 200]);
    }
    expect(proxy.requests).toEqual(["CONNECT shop.test:443"]);
    expect(proxy.credentials).toEqual([expected]);
    expect(seen.map(({ host }) => host)).toEqual(["shop.test", "shop.test", "shop.test"]);
  });

  it("forwards requests without TLS", async () => {
    const { hosts, port } = await plainServer();
    const proxy = await startProxy({ to: port });
    closers.push(proxy.close);
    const target = verbs.target("http://shop.test:81", { proxy: proxy.url });
    const own = client(session());
    const send = own.send.bind(own) as (call: unknown) => Promise<{ text(): string }>;
    for (let i = 0; i < 2; i++) {
      expect((await send(target.get("/x"))).text()).toHaveLength(200_000);
    }
    const expected =
      name === "HTTP/2" ? ["CONNECT shop.test:81"] : Array(2).fill("GET http://shop.test:81/x");
    expect(proxy.requests).toEqual(expected);
    expect(hosts).toEqual(["shop.test:81", "shop.test:81"]);
  });

  it("that refuses is named in the error", async () => {
    const { port } = await tlsServer();
    const proxy = await startProxy({ to: port, credentials: "Basic other" });
    closers.push(proxy.close);
    const { result } = await once(
      verbs.target("https://shop.test", { proxy: proxy.url, ca: shopCertificate.cert }).get("/"),
    );
    expect([result?.errorKind, result?.error]).toEqual([
      "refused",
      "the proxy answered CONNECT with status 407",
    ]);
  });

  it("is taken from the environment, with its exceptions", async () => {
    const { port } = await tlsServer();
    const proxy = await startProxy({ to: port });
    closers.push(proxy.close);
    process.env["HTTPS_PROXY"] = proxy.url;
    process.env["NO_PROXY"] = "other.test, .inside.test:8443";
    const ca = shopCertificate.cert;
    const { record } = await once(verbs.target("https://shop.test", { ca }).get("/"));
    expect(record.errorKind).toBeNull();
    expect(proxy.requests).toEqual(["CONNECT shop.test:443"]);
    const direct = [
      verbs.target("https://shop.test", {
        ca,
        proxy: false,
        hosts: { "shop.test": `127.0.0.1:${port}` },
      }),
      verbs.target("https://a.inside.test:8443", {
        ca,
        serverName: "shop.test",
        hosts: { "a.inside.test": `127.0.0.1:${port}` },
      }),
      verbs.target(`https://127.0.0.1:${port}`, { ca, serverName: "shop.test" }),
    ];
    for (const target of direct) expect((await once(target.get("/"))).record.errorKind).toBeNull();
    expect(proxy.requests).toHaveLength(1);
  });

  it("ends silently when the user stops before the tunnel is open", async () => {
    const silent = await listen(nodeHttp.createServer());
    const own = session();
    let reported = false;
    const target = verbs.target("https://shop.test", { proxy: `http://127.0.0.1:${silent}` });
    const started = runner(target.get("/"), own).then((send) => {
      void send().then(() => {
        reported = true;
      });
    });
    await started;
    own.close();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(reported).toBe(false);
  });
});

describe("a WebSocket", () => {
  it("uses a tunnel through the environment's proxy", async () => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await new Promise((resolve) => server.once("listening", resolve));
    closers.push(() => server.close());
    server.on("connection", (socket) => socket.on("message", (data) => socket.send(String(data))));
    const proxy = await startProxy({ to: (server.address() as net.AddressInfo).port });
    closers.push(proxy.close);
    process.env["HTTP_PROXY"] = proxy.url;
    const { record } = await once(websocket.exchange("ws://chat.test/", "hello"));
    expect(record.errorKind).toBeNull();
    expect(proxy.requests).toEqual(["CONNECT chat.test:80"]);
  });
});

describe.each(versions)("names for $name", ({ name, verbs }) => {
  /** The same port on several loopback addresses; each names itself. */
  async function several(addresses: readonly string[]): Promise<{ port: number; hits: string[] }> {
    const hits: string[] = [];
    let port = 0;
    for (const address of addresses) {
      const onRequest = (
        _: unknown,
        response: nodeHttp.ServerResponse | nodeHttp2.Http2ServerResponse,
      ) => {
        hits.push(address);
        response.end();
      };
      const server =
        name === "HTTP/2" ? nodeHttp2.createServer(onRequest) : nodeHttp.createServer(onRequest);
      await new Promise<void>((resolve) => server.listen(port, address, resolve));
      closers.push(() => server.close());
      port = (server.address() as net.AddressInfo).port;
    }
    return { port, hits };
  }

  it("of a list of hosts are rotated by each new connection", async () => {
    const { hits, port } = await several(["127.0.0.1", "127.0.0.2"]);
    const target = verbs.target("http://shop.test", {
      hosts: { "shop.test": [`127.0.0.1:${port}`, `127.0.0.2:${port}`] },
    });
    const call = target.get("/");
    for (let i = 0; i < 4; i++) await once(call);
    expect(hits).toEqual(["127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.2"]);
  });

  it("are resolved once, again after their TTL, or by each user (OPT-4)", async () => {
    const { hits, port } = await several(["127.0.0.1", "127.0.0.2"]);
    let addresses = ["127.0.0.1", "127.0.0.2"];
    const dns = await startDnsServer(() => addresses);
    closers.push(dns.close);
    const servers = [dns.address];
    const call = (options: TargetOptions["dns"]) =>
      verbs.target(`http://shop.test:${port}`, { dns: { servers, ...options } }).get("/");
    const forever = call({});
    await once(forever);
    const brief = call({ ttl: "1ms" });
    const kept = await runner(brief, session());
    await kept();
    const perUser = call({ per: "user" });
    for (let i = 0; i < 2; i++) await once(perUser);
    expect(hits.splice(0).toSorted()).toEqual(["127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.2"]);
    addresses = ["127.0.0.2"];
    await new Promise((resolve) => setTimeout(resolve, 5));
    const before = dns.questions();
    await once(forever);
    await kept();
    expect([dns.questions() - before, hits.splice(0)]).toEqual([0, ["127.0.0.1", "127.0.0.1"]]);
    await once(brief);
    expect(dns.questions()).toBeGreaterThan(before);
    expect(hits).toEqual(["127.0.0.2"]);
  });

  it("that cannot be resolved fail as dns", async () => {
    const dns = await startDnsServer(() => []);
    closers.push(dns.close);
    const target = verbs.target("http://shop.test", { dns: { servers: [dns.address] } });
    await expect(once(target.get("/"))).rejects.toThrow('cannot resolve the host name "shop.test"');
  });
});
