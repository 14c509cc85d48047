/** Subscriptions against a real graphql-transport-ws server, as flows and tests perform them. */

import { describe, expect, it, onTestFinished } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { flow, once } from "../../../index.ts";
import { runExample } from "../../testing/example.ts";
import { perform, TestSession } from "../../testing/session.ts";
import { graphql } from "../index.ts";
import { type SubscriptionServer, serveSubscriptions } from "../testing/subscription-server.ts";
import type { GraphqlConnection } from "./connection.ts";

const PRICE =
  "subscription Price($item: ID!, $count: Int!) { price(item: $item, count: $count) { cents at } }";
const SILENCE = "subscription { silence { cents } }";

interface Price {
  readonly price: { readonly cents: number; readonly at: number };
}

async function served(token: string | null = null): Promise<SubscriptionServer> {
  const server = await serveSubscriptions(token);
  onTestFinished(() => server.close());
  return server;
}

function userSession(timeoutMs = 60_000): TestSession {
  const session = new TestSession({ timeoutMs });
  onTestFinished(() => session.close());
  return session;
}

async function connected(
  server: SubscriptionServer,
  session: TestSession,
): Promise<GraphqlConnection> {
  const live = await perform(graphql.target(server.url).connect({ keep: "user" }), session);
  expect(live.error).toBeNull();
  return live;
}

/** A server that answers connection_init as scripted. */
async function scripted(answer: (socket: WebSocket, text: string) => void): Promise<string> {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  server.on("connection", (socket) => {
    socket.on("message", (data) => answer(socket, String(data)));
  });
  await new Promise((resolve) => server.once("listening", resolve));
  onTestFinished(() => {
    for (const client of server.clients) client.terminate();
    server.close();
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}/`;
}

describe("messages", () => {
  it("are measured one by one until the server completes", async () => {
    const server = await served();
    const session = userSession();
    const live = await connected(server, session);
    expect(live).toMatchObject({ protocol: "graphql", status: 101, ok: true, sent: 2 });
    const given = { item: "tea", count: 2 };
    const prices = await perform(live.subscribe<Price>(PRICE, given), session);
    expect(prices).toMatchObject({ ok: true, active: true, sent: 1 });
    const first = await perform(prices.next(), session);
    const second = await perform(prices.next(), session);
    expect([first, second].map(({ data }) => data.price.cents)).toEqual([1, 2]);
    expect(first.bytesIn).toBeGreaterThan(0);
    expect(first.endedAt).toBeGreaterThanOrEqual(first.startedAt);
    const [end, another] = await Promise.all([
      perform(prices.next(), session),
      perform(prices.next(), session),
    ]);
    expect([end, another]).toMatchObject([
      { ok: true, done: true },
      { ok: true, done: true },
    ]);
    expect(() => end.data).toThrow("has ended");
    expect(prices.active).toBe(false);
    expect(server.sent()).toBe(2);
  });

  it("of several subscriptions share a connection and reach their own subscriber", async () => {
    const server = await served();
    const session = userSession();
    const live = await connected(server, session);
    const counts = [3, 1, 2];
    const all = await Promise.all(
      counts.map((count) =>
        perform(live.subscribe<Price>(PRICE, { item: `item-${count}`, count }), session),
      ),
    );
    const received = await Promise.all(
      all.map(async (prices) => {
        let count = 0;
        while (!(await perform(prices.next(), session)).done) count++;
        return count;
      }),
    );
    expect(received).toEqual(counts);
    expect(server.connections()).toBe(1);
  });

  it("without a waiting call are counted by listen, from the time that they name", async () => {
    const server = await served();
    const api = graphql.target(server.url);
    const watching = flow("watching", async ({ step }) => {
      const live = await step("connect", api.connect());
      const prices = await step("ask", live.subscribe<Price>(PRICE, { item: "tea", count: 3 }));
      prices.listen("price", ({ price }) => price.at);
      const partly = await step("partly", live.subscribe("subscription { partly { cents } }"));
      partly.listen("part");
      while (partly.active) await new Promise((resolve) => setTimeout(resolve, 5));
    });
    const { calls, outcome } = await once(watching);
    expect(outcome).toBe("completed");
    const counted = (name: string) => calls.filter((call) => call.name === name);
    expect(counted("price").map(({ result }) => result.ok)).toEqual([true, true, true]);
    for (const { result } of counted("price")) expect(result.durationMs).toBeGreaterThanOrEqual(0);
    expect(counted("part").map(({ result }) => result.errorKind)).toEqual([null, "application"]);
  });

  it("answer each ping of the server with a pong", async () => {
    const received: string[] = [];
    const url = await scripted((socket, text) => {
      received.push(text);
      if (!text.includes("connection_init")) return;
      socket.send('{"type":"connection_ack"}');
      socket.send('{"type":"ping"}');
    });
    const session = userSession();
    await perform(graphql.target(url).connect(), session);
    await expect.poll(() => received.at(-1)).toBe('{"type":"pong"}');
  });
});

describe("failures", () => {
  it("are counted by their kind and leave the connection open", async () => {
    const server = await served();
    const session = userSession();
    const live = await connected(server, session);
    const failing = await perform(live.subscribe(PRICE, { item: "none", count: 1 }), session);
    const thrown = await perform(failing.next(), session);
    expect(thrown).toMatchObject({ errorKind: "application", done: true });
    expect(thrown.error).toBe("GraphQL error: there is no such item");
    const unknown = await perform(live.subscribe("subscription { nothing }"), session);
    const refused = await perform(unknown.next(), session);
    expect(refused.errorKind).toBe("application");
    expect(refused.errors[0]?.message).toContain("Cannot query field");
    const partly = await perform(live.subscribe("subscription { partly { cents } }"), session);
    expect((await perform(partly.next(), session)).ok).toBe(true);
    expect(await perform(partly.next(), session)).toMatchObject({ errorKind: "application" });
    const prices = await perform(live.subscribe<Price>(PRICE, { item: "tea", count: 1 }), session);
    expect((await perform(prices.next(), session)).data.price.cents).toBe(1);
    expect(server.connections()).toBe(1);
  });

  it("a wait that takes too long times out, and the next one may succeed", async () => {
    const server = await served();
    const session = userSession();
    const live = await connected(server, session);
    const silence = await perform(live.subscribe(SILENCE), session);
    const late = await perform(silence.next({ within: "50ms" }), session);
    expect(late.errorKind).toBe("timeout");
    expect(late.error).toContain("no message");
    expect(silence.active).toBe(true);
  });

  it("a lost connection ends waits as reset and counts as a failure of its listeners", async () => {
    const server = await served();
    const session = userSession();
    const live = await connected(server, session);
    const silence = await perform(live.subscribe(SILENCE), session);
    const waiting = perform(silence.next(), session);
    await expect.poll(server.active).toBe(1);
    server.hangUp();
    expect((await waiting).errorKind).toBe("reset");
    expect((await perform(silence.next(), session)).errorKind).toBe("reset");
    expect([silence.active, live.open]).toEqual([false, false]);
  });

  it.each(["hello", "[]", '{"type":"next"}', '{"id":"1","type":"next"}', '{"id":"1","type":"x"}'])(
    "a malformed message fails with kind protocol and closes the connection: %s",
    async (text) => {
      const server = await served();
      const session = userSession();
      const live = await connected(server, session);
      const silence = await perform(live.subscribe(SILENCE), session);
      const waiting = perform(silence.next(), session);
      await expect.poll(server.active).toBe(1);
      server.say(text);
      expect((await waiting).errorKind).toBe("protocol");
      await expect.poll(server.open).toBe(0);
    },
  );
});

describe("connecting", () => {
  it("sends its payload, and fails with the server's own code without it", async () => {
    const server = await served("secret");
    const api = graphql.target(server.url).with({ headers: { "x-app": "shop" } });
    const session = userSession();
    const inside = await perform(api.connect({ payload: { token: "secret" } }), session);
    expect(inside.ok).toBe(true);
    const outside = await perform(api.connect({ payload: { token: "guess" } }), session);
    expect(outside).toMatchObject({ errorKind: "application", open: false });
    expect(outside.error).toContain("4403: Forbidden");
  });

  it("times out on a slow server and leaves nothing open", async () => {
    const url = await scripted(() => undefined);
    const result = await perform(graphql.target(url).connect(), userSession(300));
    expect(result.errorKind).toBe("timeout");
  });

  it("to a server without subscriptions fails with kind protocol", async () => {
    const url = await scripted((socket) => socket.send('{"type":"hello"}'));
    const result = await perform(graphql.target(url).connect(), userSession());
    expect(result.errorKind).toBe("protocol");
  });

  it("rejects documents without a subscription before anything is sent", async () => {
    const server = await served();
    const session = userSession();
    const live = await connected(server, session);
    expect(() => live.subscribe("{ shop }")).toThrow("subscription got a query");
    expect(() => live.subscribe(PRICE, { item: "tea" })).toThrow('"$count" is required');
    expect(() => graphql.target(server.url).query(SILENCE)).toThrow("connect() of a target");
  });
});

describe("termination", () => {
  it("of a subscription reaches the server, and waits end without a message", async () => {
    const server = await served();
    const session = userSession();
    const live = await connected(server, session);
    const silence = await perform(live.subscribe(SILENCE), session);
    await expect.poll(server.active).toBe(1);
    const waiting = perform(silence.next(), session);
    expect(await perform(silence.unsubscribe(), session)).toMatchObject({ ok: true, sent: 1 });
    expect(await waiting).toMatchObject({ ok: true, done: true });
    await expect.poll(server.active).toBe(0);
    expect(live.open).toBe(true);
    // A second unsubscribe is not sent to the server.
    expect(await perform(silence.unsubscribe(), session)).toMatchObject({ ok: true, sent: 0 });
  });

  it("of an iteration closes its connections, except those kept for the user", async () => {
    const server = await served();
    const session = userSession();
    const kept = await connected(server, session);
    const own = await perform(graphql.target(server.url).connect(), session);
    expect([kept.open, own.open, server.open()]).toEqual([true, true, 2]);
    session.reset();
    expect([kept.open, own.open]).toEqual([true, false]);
    await expect.poll(server.open).toBe(1);
  });

  it("of a user is silent and leaves nothing behind", async () => {
    const server = await served();
    const session = new TestSession();
    const live = await connected(server, session);
    const silence = await perform(live.subscribe(SILENCE), session);
    let received = 0;
    const waiting = silence.next().bind(session, true, { callFinished: () => received++ });
    waiting.start(performance.now());
    session.close();
    await expect.poll(server.open).toBe(0);
    await expect.poll(server.active).toBe(0);
    expect(received).toBe(0);
    // The connection belongs to another user.
    expect(() => silence.next().bind(new TestSession(), true, { callFinished: () => {} })).toThrow(
      "another user's",
    );
  });
});

it("matches the server's own count in a whole run of the example", async () => {
  const server = await served();
  const steps = await runExample("graphql-subscriptions.ts", { GRAPHQL_URL: server.url });
  expect(steps.get("subscribe")?.sent).toBe(server.subscribed());
  // Messages in transit when the run ended are not counted.
  const received = (steps.get("price")?.ok ?? 0) - (steps.get("subscribe")?.ok ?? 0);
  expect(received).toBeLessThanOrEqual(server.sent());
});
