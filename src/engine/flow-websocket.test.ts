/** WebSocket targets in flows, against servers that count independently and that misbehave. */

import net from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { ws } from "../protocols/websocket/index.ts";
import { InProcessRun } from "../runner/testing/in-process-run.ts";
import { flow } from "../workflow/flow.ts";
import type { FlowContext } from "../workflow/flow-context.ts";
import { once } from "./once.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close();
});

interface Served {
  readonly url: string;
  readonly counts: { connections: number; messages: number; closed: number[] };
  readonly urls: string[];
}

async function serve(onMessage: (socket: WebSocket, text: string) => void): Promise<Served> {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await new Promise((resolve) => server.once("listening", resolve));
  const counts = { connections: 0, messages: 0, closed: [] as number[] };
  const urls: string[] = [];
  server.on("connection", (socket, request) => {
    counts.connections++;
    urls.push(`${request.url} ${request.headers["x-key"]}`);
    socket.on("error", () => undefined);
    socket.on("close", (code) => counts.closed.push(code));
    socket.on("message", (data) => {
      counts.messages++;
      onMessage(socket, String(data));
    });
  });
  closers.push(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  return { url: `ws://127.0.0.1:${(server.address() as net.AddressInfo).port}`, counts, urls };
}

const echo = (socket: WebSocket, text: string): void => socket.send(text);
const single = { vus: 1, iterations: 1 } as const;

interface Said {
  readonly id: string;
}

describe("connections of a flow", () => {
  for (const [model, load] of [
    ["closed", { vus: 4, iterationsPerVu: 5 }],
    ["open", { rate: 50, duration: "400ms", maxVus: 4, finish: "iteration" }],
  ] as const)
    it(`close with their iteration, and every call is counted once (${model}, two cores)`, async () => {
      const { counts, url } = await serve(echo);
      const room = ws.target(`${url}/room`);
      let iterations = 0;
      const body = async ({ check, step, user }: FlowContext): Promise<void> => {
        iterations++;
        const socket = await step("connect", room.connect(), { required: true });
        const id = `${user.id}-${user.iteration}`;
        const match = (message: { text(): string }): boolean => message.text().includes(id);
        const said = await step("say", socket.request<Said>({ id }, { match, within: "20s" }));
        check("echoed", () => said.json().id === id);
        await step(socket.send("bye"));
      };
      const run = await InProcessRun.whole(flow("f", load, body), { cores: 2 });
      expect(iterations).toBeGreaterThan(0);
      for (const name of ["connect", "say", "ws send"]) {
        const { ok, totals } = run.step("f", name);
        expect([name, ok, totals.sent]).toEqual([name, iterations, iterations]);
      }
      await expect.poll(() => counts.closed.length, { timeout: 20_000 }).toBe(iterations);
      expect(counts.connections).toBe(iterations);
      expect(counts.messages).toBe(2 * iterations);
      expect(run.workflow("f").outcome("completed")).toBe(iterations);
    });

  it('last over iterations with keep: "user", one per user, opened in userSetup', async () => {
    const { counts, url, urls } = await serve(echo);
    const room = ws.target(`${url}/room`, { headers: { "X-Key": "k" } });
    const chat = flow(
      "f",
      {
        vus: 3,
        iterationsPerVu: 4,
        userSetup: async ({ step }) => ({
          socket: await step("connect", room.connect({ params: { a: 1 }, keep: "user" })),
        }),
      },
      async ({ state, step }) => {
        await step("say", state.socket.request("x", { match: "x" }));
      },
    );
    const run = await InProcessRun.whole(chat, { cores: 2 });
    expect(run.step("f", "say").ok).toBe(12);
    expect([counts.connections, counts.messages]).toEqual([3, 12]);
    expect(urls).toEqual(Array(3).fill("/room?a=1 k"));
  });

  it("fail the next iteration's calls with what to write after closing with one", async () => {
    const { url } = await serve(echo);
    const room = ws.target(url);
    const chat = flow(
      "f",
      {
        vus: 1,
        iterations: 2,
        userSetup: async ({ step }) => ({ socket: await step("connect", room.connect()) }),
      },
      async ({ state, step }) => {
        const said = await step("say", state.socket.request("x"));
        if (!said.ok) errors.push(String(said.error));
      },
    );
    const errors: string[] = [];
    const run = await InProcessRun.whole(chat);
    expect(run.step("f", "say").errors).toEqual({ reset: 1 });
    expect(errors.join()).toMatch(/keep: "user"|connection is closed/);
  });

  it("end the iteration when a failed one is used, also one of userSetup", async () => {
    const server = net.createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closers.push(() => server.close());
    const room = ws.target(`ws://127.0.0.1:${(server.address() as net.AddressInfo).port}`);
    const body = async ({ step }: FlowContext): Promise<void> => {
      const socket = await step("connect", room.connect());
      await step("never", socket.request("x"));
    };
    const run = await InProcessRun.whole(flow("f", { vus: 1, iterations: 2 }, body));
    expect(run.step("f", "connect").failed).toBe(2);
    expect(run.workflow("f").outcome("ended")).toBe(2);
    expect(run.notes.join()).toContain("2 iterations ended early, by: connect");
    const kept = flow(
      "f",
      { ...single, userSetup: ({ step }) => step("connect", room.connect({ keep: "user" })) },
      async ({ state, step }) => {
        await step("never", state.request("x"));
      },
    );
    const later = await InProcessRun.whole(kept);
    expect(later.workflow("f").outcome("ended")).toBe(1);
    expect(later.notes.join()).toContain("by: connect");
  });
});

describe("unsolicited messages", () => {
  it("are left out of the measured time when their timestamp is outside it", async () => {
    const { url } = await serve((socket, text) => {
      for (let i = 0; i < 3; i++) socket.send(JSON.stringify({ at: Date.now() - 60_000 }));
      socket.send(JSON.stringify({ at: Date.now() + 60_000 }));
      socket.send(`answer ${text}`);
    });
    const body = async ({ step }: FlowContext): Promise<void> => {
      const socket = await step("connect", ws.target(url).connect());
      socket.listen("push", (message) => message.json<{ at: number }>().at);
      await step("ask", socket.request("x", { match: "answer" }));
    };
    const run = await InProcessRun.whole(flow("f", { vus: 2, iterationsPerVu: 2 }, body));
    expect(run.step("f", "ask").ok).toBe(4);
    // Clocks may differ: a message from the future has no negative latency.
    const { ok, totals } = run.step("f", "push");
    expect([ok, totals.latency.count]).toEqual([4, 4]);
  });

  it("have a latency, and none without a timestamp", async () => {
    const { url } = await serve((socket, text) => {
      for (let i = 0; i < 3; i++) socket.send(JSON.stringify({ at: Date.now() }));
      socket.send("rubbish");
      socket.send(`answer ${text}`);
    });
    const body = async ({ step }: FlowContext): Promise<void> => {
      const timed = await step("connect", ws.target(url).connect());
      timed.listen("push", (message) => message.json<{ at: number }>().at);
      expect(() => timed.listen("push")).toThrow("already has a listener");
      await step("ask", timed.request("x", { match: "answer" }));
      const counted = await step("connect", ws.target(url).connect());
      counted.listen("count");
      await step("ask", counted.request("x", { match: "answer" }));
    };
    const run = await InProcessRun.whole(flow("f", { vus: 1, iterations: 2 }, body));
    const push = run.step("f", "push");
    expect([push.ok, push.errors, push.totals.sent]).toEqual([6, { exception: 2 }, 0]);
    expect(push.totals.latency.count).toBe(6);
    const count = run.step("f", "count");
    expect([count.ok, count.totals.latency.count]).toEqual([8, 0]);
  });

  it("end with a failure when the server drops the connection", async () => {
    const { url } = await serve((socket) => socket.terminate());
    const body = async ({ step }: FlowContext): Promise<void> => {
      const socket = await step("connect", ws.target(url).connect());
      socket.listen("push");
      await step("ask", socket.request("x"));
      await step("again", socket.send("y"));
    };
    const run = await InProcessRun.whole(flow("f", single, body));
    for (const name of ["ask", "again", "push"])
      expect([name, run.step("f", name).errors]).toEqual([name, { reset: 1 }]);
  });
});

describe("a server that misbehaves", () => {
  it("times out the call it does not answer, and no other", async () => {
    const { url } = await serve((socket, text) => {
      if (text !== "silence") socket.send(text);
    });
    const body = async ({ step }: FlowContext): Promise<void> => {
      const socket = await step("connect", ws.target(url).connect());
      await step("wait", socket.request("silence", { match: "silence", within: "50ms" }));
      await step("nothing", socket.receive({ within: "50ms" }));
      await step("say", socket.request("x", { match: "x" }));
      await step("close", socket.close());
    };
    const run = await InProcessRun.whole(flow("f", single, body));
    expect(run.step("f", "wait").errors).toEqual({ timeout: 1 });
    expect(run.step("f", "nothing").errors).toEqual({ timeout: 1 });
    expect([run.step("f", "say").ok, run.step("f", "close").ok]).toEqual([1, 1]);
  });

  it("fails pending calls by sending garbage, and a loop of failures blocks nothing", async () => {
    const { url } = await serve((socket) => {
      const raw = (socket as unknown as { _socket: net.Socket })._socket;
      raw.write(Buffer.from([0xff, 0xff, 0xff, 0xff]));
    });
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const body = async ({ step }: FlowContext): Promise<void> => {
      const socket = await step("connect", ws.target(url).connect());
      await step("ask", socket.request("x"));
      for (let i = 0; i < 2_000; i++) await step("after", socket.send("y"));
    };
    const run = await InProcessRun.whole(flow("f", single, body));
    clearInterval(timer);
    expect(run.step("f", "ask").errors).toEqual({ protocol: 1 });
    expect(run.step("f", "after").errors).toEqual({ reset: 2_000 });
    expect(turns).toBeGreaterThan(1);
  });
});

describe("described calls", () => {
  it("throw the line to write when awaited, and refuse another user's connection", async () => {
    const { url } = await serve(echo);
    const room = ws.target(url);
    const awaited = await InProcessRun.whole(
      flow("f", single, async () => {
        await (room.connect() as unknown as Promise<void>);
      }),
    );
    expect(awaited.logs.join()).toMatch(/connect \/ is only described.*await step\("name"/);
    let shared: { request(message: string): never } | undefined;
    const thief = async ({ step }: FlowContext): Promise<void> => {
      const own = await step("connect", room.connect({ keep: "user" }));
      shared ??= own as never;
      await step("say", shared.request("x"));
    };
    const run = await InProcessRun.whole(flow("f", { vus: 2, iterationsPerVu: 1 }, thief));
    expect(run.workflow("f").outcome("failed")).toBe(1);
    expect(run.logs.join()).toMatch(/another user's; keep it in state/);
    expect(() => room.connect({ keep: "ever" as "user" })).toThrow(/keep: "user" or "iteration"/);
    expect(() => ws.target("chat.test")).toThrow(/has no scheme/);
  });

  it("accept canned answers", async () => {
    const chat = flow("f", async ({ check, step }) => {
      const socket = await step("connect", ws.target("ws://chat.test").connect());
      socket.listen("push");
      const said = await step("say", socket.request<Said>({ id: "1" }));
      check("echoed", () => said.json().id === "1");
    });
    const { checks, outcome } = await once(chat, {
      answers: { connect: {}, say: { json: { id: "1" } } },
    });
    expect([outcome, checks]).toEqual(["completed", [{ name: "echoed", passed: true }]]);
  });
});
