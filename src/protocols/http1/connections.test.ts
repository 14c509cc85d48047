/** Connections: reuse, the shared pool and its limit, timeouts, and how a virtual user leaves. */

import { afterEach, describe, expect, it } from "vitest";
import { startDemoTarget } from "../../demo/server.ts";
import type { HttpResponse } from "../http/response.ts";
import { clock } from "../net/clock.ts";
import { type CallSettings, DEFAULT_CALL_SETTINGS } from "../protocol.ts";
import { runner, TestSession } from "../testing/session.ts";
import { HttpClient, http } from "./client.ts";
import {
  type Script,
  type ScriptedServer,
  startScriptedServer,
} from "./testing/scripted-server.ts";

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const FINE = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/** Sessions share a pool when they have the same settings object, so it is created once per test. */
function users(count: number, settings: Partial<CallSettings> = {}): TestSession[] {
  const shared: CallSettings = { ...DEFAULT_CALL_SETTINGS, timeoutMs: 60_000, ...settings };
  return Array.from({ length: count }, () => {
    const session = new TestSession();
    Object.assign(session, { settings: shared });
    closers.push(() => session.close());
    return session;
  });
}

function clientWith(settings: Partial<CallSettings> = {}): HttpClient {
  const [session] = users(1, settings);
  return new HttpClient(session as TestSession);
}

async function scripted(script: Script): Promise<ScriptedServer> {
  const server = await startScriptedServer(script);
  closers.push(() => server.close());
  return server;
}

/** Lets the event loop run, to check that something does not happen. */
async function turns(ms = 60): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turns(5);
}

describe("connections of a virtual user", () => {
  it("are not shared, and kept for all its requests", async () => {
    const demo = await startDemoTarget({ port: 0 });
    closers.push(() => demo.close());
    const clients = users(5).map((session) => new HttpClient(session));
    for (let round = 0; round < 10; round++) {
      await Promise.all(clients.map((client) => client.get(demo.url)));
    }
    expect(demo.stats()).toMatchObject({ requests: 50, connections: 5 });
  });

  it("grow with its concurrent requests and serve later ones", async () => {
    const demo = await startDemoTarget({ port: 0 });
    closers.push(() => demo.close());
    const client = clientWith();
    for (let round = 0; round < 3; round++) {
      await Promise.all(Array.from({ length: 4 }, () => client.get(`${demo.url}/slow?ms=10`)));
    }
    expect(demo.stats()).toMatchObject({ requests: 12, connections: 4 });
  });

  it("are closed after each request when keep-alive is off", async () => {
    const server = await scripted((socket) => socket.write(FINE));
    const client = clientWith({ keepAlive: false });
    for (let i = 0; i < 3; i++) await client.get(server.url);
    expect(
      server.requests.map(({ connection, headers }) => [connection, headers.get("connection")]),
    ).toEqual([
      [0, "close"],
      [1, "close"],
      [2, "close"],
    ]);
    await until(() => server.open() === 0);
  });

  it("that the server closed while idle are replaced without a failure", async () => {
    const server = await scripted((socket) => socket.end(FINE));
    const client = clientWith();
    for (let i = 0; i < 3; i++) {
      expect((await client.get(server.url)).errorKind).toBeNull();
      await until(() => server.open() === 0);
      await turns(10);
    }
    expect(server.connections()).toBe(3);
  });

  it("that receive unsolicited bytes are not reused", async () => {
    const server = await scripted((socket, request) => {
      socket.write(FINE);
      if (request.connection === 0) setTimeout(() => socket.write("HTTP/1.1 200 OK\r\n\r\n"), 20);
    });
    const client = clientWith();
    await client.get(server.url);
    await until(() => server.open() === 0);
    expect((await client.get(server.url)).text()).toBe("ok");
    expect(server.requests.map((request) => request.connection)).toEqual([0, 1]);
  });

  it("do not deliver a smuggled second response to the next request", async () => {
    const smuggled = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
    const server = await scripted((socket, request) =>
      socket.write(request.path === "/first" ? FINE + smuggled : FINE),
    );
    const client = clientWith();
    expect((await client.get(`${server.url}/first`)).text()).toBe("ok");
    expect((await client.get(`${server.url}/second`)).text()).toBe("ok");
    expect(server.connections()).toBe(2);
  });
});

describe("the shared pool", () => {
  it("never exceeds its connection limit, and serves every request", async () => {
    const demo = await startDemoTarget({ port: 0 });
    closers.push(() => demo.close());
    const sessions = users(40, { connections: "shared", sharedConnectionsMax: 3 });
    const answers = await Promise.all(
      sessions.flatMap((session) => {
        const client = new HttpClient(session);
        return Array.from({ length: 5 }, () => client.get(`${demo.url}/slow?ms=1`));
      }),
    );
    expect(answers.filter((answer) => answer.ok)).toHaveLength(200);
    expect(demo.stats()).toMatchObject({ requests: 200, connections: 3 });
  });

  it("times out waiting requests and replaces broken connections", async () => {
    const server = await scripted((socket, { path }) => {
      if (path === "/ok") socket.write(FINE);
      else if (path === "/cut") socket.destroy();
    });
    const sessions = users(3, { connections: "shared", sharedConnectionsMax: 1 });
    const [a, b, c] = sessions.map((session) => new HttpClient(session)) as [
      HttpClient,
      HttpClient,
      HttpClient,
    ];
    const [hang, waits] = await Promise.all([
      a.get(`${server.url}/hang`, { timeout: "150ms" }),
      // Earlier than the other, whose end would serve it.
      b.get(`${server.url}/ok`, { timeout: "100ms" }),
    ]);
    expect([hang.errorKind, waits.errorKind]).toEqual(["timeout", "timeout"]);
    expect((await c.get(`${server.url}/cut`)).errorKind).toBe("reset");
    expect((await c.get(`${server.url}/ok`)).text()).toBe("ok");
  });

  it("fails every queued request once when nothing listens", async () => {
    const gone = await startScriptedServer(() => undefined);
    await gone.close();
    const sessions = users(10, { connections: "shared", sharedConnectionsMax: 2 });
    const answers = await Promise.all(
      sessions.map((session) => new HttpClient(session).get(`${gone.url}/`)),
    );
    expect(answers.map((answer) => answer.errorKind)).toEqual(new Array(10).fill("refused"));
  });

  it("keeps serving others when a user leaves with a request in flight or queued", async () => {
    const server = await scripted((socket, { path }) => {
      if (path === "/ok") socket.write(FINE);
    });
    const [leaver, waiter, stayer] = users(3, {
      connections: "shared",
      sharedConnectionsMax: 1,
    }) as [TestSession, TestSession, TestSession];
    const reported: string[] = [];
    const get = (session: TestSession, path: string): Promise<HttpResponse> =>
      new HttpClient(session).get(`${server.url}${path}`).then((answer) => {
        reported.push(path);
        return answer;
      });
    void get(leaver, "/hang");
    await until(() => server.requests.length === 1);
    void get(waiter, "/waiting");
    const last = get(stayer, "/ok");
    waiter.close();
    leaver.close();
    expect((await last).text()).toBe("ok");
    await turns();
    expect(reported).toEqual(["/ok"]);
    expect(server.requests.map((request) => request.path)).toEqual(["/hang", "/ok"]);
  });
});

describe("timeouts", () => {
  it("of the first byte, the whole call, and a single request", async () => {
    const server = await scripted((socket, { path }) => {
      if (path === "/half") socket.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc");
    });
    const first = await clientWith({ firstByteTimeoutMs: 60 }).get(`${server.url}/nothing`);
    expect([first.errorKind, first.status]).toEqual(["timeout", 0]);
    expect(first.error).toMatch(/^no answer after \d+ ms$/);
    const whole = await clientWith({ timeoutMs: 1_100, firstByteTimeoutMs: 1_000 }).get(
      `${server.url}/half`,
    );
    expect([whole.errorKind, whole.status]).toEqual(["timeout", 200]);
    expect(whole.error).toMatch(/^no complete answer after \d+ ms$/);
    const own = await clientWith().get(`${server.url}/nothing`, { timeout: "50ms" });
    expect(own.errorKind).toBe("timeout");
    expect(own.durationMs).toBeGreaterThanOrEqual(50);
    await until(() => server.open() === 0);
  });

  it("treat a slow drip as one call that takes too long", async () => {
    const server = await scripted((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
      const timer = setInterval(() => socket.write("x"), 5);
      socket.on("close", () => clearInterval(timer));
    });
    const response = await clientWith({ timeoutMs: 120 }).get(server.url);
    expect(response.errorKind).toBe("timeout");
  });

  it("cover a whole chain of redirects", async () => {
    const server = await scripted((socket) => {
      setTimeout(
        () => socket.write("HTTP/1.1 302 Go\r\nlocation: /on\r\ncontent-length: 0\r\n\r\n"),
        20,
      );
    });
    const response = await clientWith({ timeoutMs: 150, redirectsMax: 1_000 }).get(server.url);
    expect(response.errorKind).toBe("timeout");
    const asked = server.requests.length;
    await turns();
    expect(server.requests.length).toBe(asked);
  });

  it("discard a late response: the next request gets its own", async () => {
    const server = await scripted((socket, { path }) => {
      const body = `HTTP/1.1 200 OK\r\ncontent-length: ${path.length}\r\n\r\n${path}`;
      setTimeout(() => socket.write(body), path === "/late" ? 120 : 0);
    });
    const client = clientWith();
    const late = await client.get(`${server.url}/late`, { timeout: "60ms" });
    expect(late.errorKind).toBe("timeout");
    for (let i = 0; i < 5; i++) {
      await turns(20);
      expect((await client.get(`${server.url}/n${i}`)).text()).toBe(`/n${i}`);
    }
  });
});

describe("a virtual user that leaves", () => {
  it("closes its connections and receives no more results", async () => {
    const server = await scripted(() => undefined);
    const [session] = users(1, { timeoutMs: 1_000 }) as [TestSession];
    let reported = 0;
    const call = http.get(`${server.url}/prepared`);
    await call.prepare({ settings: session.settings, folder: "." });
    const bound = call.bind(session, true, {
      callFinished: () => {
        reported++;
      },
    });
    bound.start(clock());
    void new HttpClient(session).get(`${server.url}/function`).then(() => reported++);
    await until(() => server.requests.length === 2);
    session.close();
    await until(() => server.open() === 0);
    // Longer than their timeout.
    await turns(1_200);
    expect(reported).toBe(0);
  });

  it("opens no new connection, whatever its functions still try", async () => {
    const server = await scripted((socket) => socket.write(FINE));
    const [session] = users(1) as [TestSession];
    const client = new HttpClient(session);
    await client.get(server.url);
    session.close();
    let reported = 0;
    void client.get(server.url).then(() => reported++);
    void client.get(`${server.url}/other`, { redirects: 3 }).then(() => reported++);
    await turns();
    expect([server.requests.length, server.connections(), reported]).toEqual([1, 1, 0]);
  });

  it("stops a chain of redirects", async () => {
    const server = await scripted((socket) => {
      setTimeout(
        () => socket.write("HTTP/1.1 302 Go\r\nlocation: /on\r\ncontent-length: 0\r\n\r\n"),
        5,
      );
    });
    const [session] = users(1, { redirectsMax: 1_000 }) as [TestSession];
    void new HttpClient(session).get(server.url);
    await until(() => server.requests.length > 3);
    session.close();
    await turns(20);
    const asked = server.requests.length;
    await turns();
    expect(server.requests.length).toBe(asked);
  });
});

it("sends one prepared request at a time, and reports each result once", async () => {
  const server = await scripted((socket) => socket.write(FINE));
  const [session] = users(1) as [TestSession];
  // `runner` throws when a result is reported twice or without a start.
  const send = await runner(http.get(server.url), session);
  for (let i = 0; i < 500; i++) await send();
  expect(server.requests.length).toBe(500);
  expect(server.connections()).toBe(1);
});

describe("responses that arrive in one turn of the loop", () => {
  const USERS = 32;
  const ROUNDS = 20;

  /** Waits until all users have sent a request, and then answers all of them together. */
  async function answeringTogether(): Promise<ScriptedServer> {
    let waiting: (() => void)[] = [];
    return scripted((socket, { path }) => {
      waiting.push(() =>
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${path.length}\r\n\r\n${path}`),
      );
      if (waiting.length < USERS) return;
      for (const answer of waiting) answer();
      waiting = [];
    });
  }

  it("reach their own callers, one request at a time, and are timed when they are read", async () => {
    const server = await answeringTogether();
    const clients = users(USERS).map((session) => new HttpClient(session));
    await Promise.all(
      clients.map(async (client, user) => {
        let before = 0;
        for (let round = 0; round < ROUNDS; round++) {
          const path = `/${user}/${round}`;
          const response = await client.get(`${server.url}${path}`);
          expect([response.text(), response.sent]).toEqual([path, 1]);
          expect(response.startedAt).toBeGreaterThanOrEqual(before);
          expect(response.endedAt).toBeLessThanOrEqual(clock());
          before = response.endedAt;
        }
      }),
    );
    expect([server.requests.length, server.connections()]).toEqual([USERS * ROUNDS, USERS]);
  });

  it("lead to uploads, too, whose pieces follow their heads", async () => {
    const server = await answeringTogether();
    const clients = users(USERS).map((session) => new HttpClient(session));
    const piece = "x".repeat(1_000);
    async function* pieces(): AsyncGenerator<Buffer> {
      for (let i = 0; i < 3; i++) yield Buffer.from(piece);
    }
    await Promise.all(
      clients.map(async (client) => {
        for (let round = 0; round < 3; round++) {
          await client.get(`${server.url}/before`);
          const headers = { "content-length": "3000" };
          const sent = await client.post(`${server.url}/upload`, { body: pieces(), headers });
          expect(sent.ok).toBe(true);
        }
      }),
    );
    const uploads = server.requests.filter(({ path }) => path === "/upload");
    expect(uploads.map(({ body }) => body)).toEqual(Array(USERS * 3).fill(piece.repeat(3)));
  });
});
