/** Tests specific to Socket.IO: namespaces, auth, events, attachments; and its use in flows. */

import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { flow, once } from "../../index.ts";
import { runExample } from "../testing/example.ts";
import { perform, TestSession } from "../testing/session.ts";
import { socketio } from "./index.ts";
import { encodeArguments, PACKET, packetText, readPacket, withBytes } from "./packet.ts";
import { type ChatServer, startChat } from "./testing/server.ts";

describe("packets", () => {
  it.each([
    { namespace: "/", id: null },
    { namespace: "/rooms", id: 0 },
    { namespace: "/a/b", id: 123 },
  ])("round-trip in $namespace with id $id", ({ id, namespace }) => {
    const when = new Date(0);
    const args = ["put", { bytes: Buffer.from("ä"), list: [1, null, Buffer.of(0)] }, when];
    const encoded = encodeArguments(args);
    const text = packetText(PACKET.binaryEvent, namespace, { id, encoded });
    const packet = readPacket(text.slice(1));
    expect(packet).toMatchObject({ type: 5, namespace, id, attachments: 2 });
    const [event, value, moment] = withBytes(packet?.data, encoded.attachments) as unknown[];
    expect([event, moment]).toEqual(["put", when.toJSON()]);
    expect(value).toEqual(args[1]);
  });
});

it.each([
  [() => socketio.target("http://chat.test").emit(""), "has a name"],
  [() => socketio.target("http://chat.test").emit("x", "y" as unknown as string[]), "list"],
  [() => socketio.target("http://chat.test/a,b"), "comma"],
  [() => socketio.target("http://chat.test", { path: "x" }), "slash"],
  [() => socketio.target("redis://chat.test"), "takes an address"],
])("rejects invalid use before the run: %s", (make, problem) => {
  expect(make).toThrow(problem);
});

describe("a server", () => {
  let server: ChatServer;
  beforeAll(async () => {
    server = await startChat();
  });
  afterAll(() => server.stop());
  const rooms = (token = "secret") =>
    socketio.target(`http://127.0.0.1:${server.port}/rooms`, { auth: { token } });
  function userSession(): TestSession {
    const session = new TestSession();
    onTestFinished(() => session.close());
    return session;
  }

  it("answers a request with its arguments, including bytes", async () => {
    const session = userSession();
    const given = ["hello", { bytes: Buffer.from([0, 255]) }];
    const answer = await perform(rooms().request("echo", given), session);
    expect(answer).toMatchObject({ ok: true, protocol: "socketio", sent: 1 });
    expect(answer.value).toEqual(given);
    expect(answer.loginMs).toBeGreaterThanOrEqual(0);
    expect(answer.bytesIn).toBeGreaterThan(0);
  });

  it("rejects unknown clients with its own message", async () => {
    const refused = await perform(rooms("guess").request("echo"), userSession());
    expect(refused).toMatchObject({ errorKind: "application", errorCode: "CONNECT_ERROR" });
    expect(refused.error).toBe("CONNECT_ERROR: who are you?");
    const nowhere = socketio.target(`http://127.0.0.1:${server.port}/nowhere`);
    const lost = await perform(nowhere.request("echo"), userSession());
    expect(lost).toMatchObject({ error: "CONNECT_ERROR: Invalid namespace" });
  });

  it("sends events, which are kept until they are received by name", async () => {
    const session = userSession();
    const chat = rooms();
    await perform(chat.emit("tell", ["one"]), session);
    await perform(chat.emit("tell", ["two"]), session);
    const early = perform(chat.receive("news"), session);
    const told = await perform(chat.receive("told"), session);
    expect(told.value).toMatchObject({ event: "told", args: ["one"] });
    expect((await perform(chat.receive("told"), session)).value.args).toEqual(["two"]);
    server.say("news", { cents: 7 }, Buffer.of(1));
    expect((await early).value.args).toEqual([{ cents: 7 }, Buffer.of(1)]);
    const late = await perform(chat.receive("never", { timeout: "50ms" }), session);
    expect(late.errorKind).toBe("timeout");
  });

  it("that never answers costs a timeout, and the connection stays open", async () => {
    const session = userSession();
    const chat = rooms();
    // Connect first: on a busy machine that alone may take longer.
    await perform(chat.request("echo"), session);
    const silent = await perform(chat.request("silence", [], { timeout: "50ms" }), session);
    expect(silent.errorKind).toBe("timeout");
    const next = await perform(chat.request("echo"), session);
    expect(next.connectMs).toBeLessThan(0);
  });

  it("may disconnect its clients, which fails waiting calls as reset", async () => {
    const session = userSession();
    const chat = rooms();
    await perform(chat.request("echo"), session);
    const waiting = perform(chat.receive("news"), session);
    server.kick();
    expect(await waiting).toMatchObject({ errorKind: "reset" });
    expect((await perform(chat.request("echo"), session)).ok).toBe(true);
  });

  it("is disconnected in order, and connected again by the next call", async () => {
    const session = userSession();
    const chat = rooms();
    await perform(chat.request("echo"), session);
    expect(await perform(chat.disconnect(), session)).toMatchObject({ ok: true, sent: 1 });
    await expect.poll(server.open).toBe(0);
    expect((await perform(chat.request("echo"), session)).connectMs).toBeGreaterThanOrEqual(0);
  });

  it("carries concurrent calls of a flow on one connection", async () => {
    const chat = rooms();
    const talk = flow("talk", async ({ check, step }) => {
      await step("join", chat.request("echo"), { required: true });
      const [told, echoed] = await Promise.all([
        step("hear", chat.receive("told")),
        step("ask", chat.request<[number]>("echo", [7])),
        step("say", chat.emit("tell", ["hello"])),
      ]);
      check("both", () => told.value.args[0] === "hello" && echoed.value[0] === 7);
    });
    const { calls, checks } = await once(talk);
    expect(checks).toEqual([{ name: "both", passed: true }]);
    expect(calls.filter(({ result }) => result.connectMs >= 0)).toHaveLength(1);
  });

  it("matches the server's own count in a whole run of the example", async () => {
    const before = await server.served();
    const url = `http://127.0.0.1:${server.port}/rooms`;
    const steps = await runExample("socketio.ts", { SOCKETIO_URL: url, SOCKETIO_TOKEN: "secret" });
    const sent = (steps.get("ask")?.sent ?? 0) + (steps.get("tell")?.sent ?? 0);
    expect((await server.served()) - before).toBe(sent);
  });
});
