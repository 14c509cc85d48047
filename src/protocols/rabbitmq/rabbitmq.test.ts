import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needs } from "../../../test/needs.ts";
import { runExample } from "../testing/example.ts";
import { absent } from "../testing/real-server.ts";
import { answersTo, perform, TestSession } from "../testing/session.ts";
import { RabbitmqTarget } from "./target.ts";
import {
  RABBITMQ_SERVER,
  type RabbitmqServer,
  rabbitmqProgram,
  startRabbitmq,
} from "./testing/server.ts";

describe("a server", needs(rabbitmqProgram !== null, absent(RABBITMQ_SERVER)), () => {
  let server: RabbitmqServer;
  let broker: RabbitmqTarget;
  beforeAll(async () => {
    server = await startRabbitmq();
    broker = new RabbitmqTarget(server.url);
  });
  afterAll(() => server.stop());

  it("stores messages with their properties and returns each once", async () => {
    const options = { headers: { id: 7 }, correlationId: "c", replyTo: "r", persistent: true };
    const [declared, sent, got, empty] = await answersTo(
      broker.declareQueue("orders"),
      broker.send("orders", { sku: "tea" }, options),
      broker.get("orders"),
      broker.get("orders"),
    );
    expect(declared.value).toEqual({ messages: 0, consumers: 0 });
    expect(sent).toMatchObject({ ok: true, protocol: "rabbitmq", sent: 1, connectMs: -1 });
    expect(declared.loginMs).toBeGreaterThan(0);
    expect(sent.bytesOut).toBeGreaterThan(20);
    expect(sent.bytesIn).toBeGreaterThan(10);
    expect(got.value).toMatchObject({ correlationId: "c", replyTo: "r", redelivered: false });
    expect(got.value?.headers.get("id")).toBe(7);
    expect(JSON.parse(String(got.value?.data))).toEqual({ sku: "tea" });
    expect(empty.value).toBeNull();
  });

  it("routes messages through exchanges and reports unroutable ones", async () => {
    const [, , , , nowhere, next, bound] = await answersTo(
      broker.declareExchange("shop", "topic", { durable: false }),
      broker.declareQueue("teas", { durable: false }),
      broker.bind("teas", "shop", "tea.*"),
      broker.publish("shop", "tea.green", "x"),
      broker.publish("shop", "coffee", "x", { mandatory: true }),
      broker.publish("shop", "coffee", "x"),
      broker.get("teas"),
    );
    expect(nowhere).toMatchObject({ errorKind: "application", errorCode: "NO_ROUTE" });
    expect(next).toMatchObject({ ok: true, connectMs: -1 });
    expect(bound.value).toMatchObject({ exchange: "shop", routingKey: "tea.green" });
  });

  it("reports the server's refusals and continues with the next call", async () => {
    const [unlike, missing, next] = await answersTo(
      broker.declareQueue("teas", { durable: true }),
      broker.get("nowhere"),
      broker.send("teas", "x"),
    );
    expect(unlike).toMatchObject({ ok: false, errorCode: "PRECONDITION_FAILED" });
    expect(missing).toMatchObject({ ok: false, errorCode: "NOT_FOUND" });
    expect(next).toMatchObject({ ok: true, connectMs: -1 });
  });

  it("delivers to consumers and requeues messages that were not received", async () => {
    const session = new TestSession();
    await perform(broker.declareQueue("work"), session);
    await perform(broker.consume("work"), session);
    for (const text of ["a", "b", "c"]) await perform(broker.send("work", text), session);
    const { value } = await perform(broker.receive("work", { timeout: "30s" }), session);
    expect(value.data.toString()).toBe("a");
    session.reset();
    const late = await perform(broker.receive("work"), session);
    expect(late).toMatchObject({ ok: false, errorCode: "NOT_CONSUMING" });
    await expect.poll(() => server.count("work")).toBe(2);
    const again = await perform(broker.get("work"), session);
    expect(again.value).toMatchObject({ redelivered: true });
    session.close();
  });

  it("times out without losing its connection", async () => {
    const session = new TestSession();
    await perform(broker.declareQueue("quiet"), session);
    await perform(broker.consume("quiet", { keep: "user" }), session);
    const nothing = await perform(broker.receive("quiet", { timeout: "50ms" }), session);
    expect(nothing.errorKind).toBe("timeout");
    const next = await perform(broker.send("quiet", "x"), session);
    expect(next).toMatchObject({ ok: true, connectMs: -1 });
    const received = await perform(broker.receive("quiet", { timeout: "30s" }), session);
    expect(received.value.data.toString()).toBe("x");
    session.close();
  });

  it("reports why a login failed", async () => {
    const [stranger, homeless] = await answersTo(
      new RabbitmqTarget(server.url, { user: "ada", password: "wrong" }).ping(),
      new RabbitmqTarget(server.url, { vhost: "nowhere" }).ping(),
    );
    expect(stranger).toMatchObject({ errorKind: "application", errorCode: "ACCESS_REFUSED" });
    expect(homeless).toMatchObject({ errorKind: "application", errorCode: "NOT_ALLOWED" });
  });

  it("trusts only the given authority over TLS", async () => {
    const [trusting, doubting] = await answersTo(
      new RabbitmqTarget(server.secureUrl, { ca: server.cert }).ping(),
      new RabbitmqTarget(server.secureUrl).ping(),
    );
    expect(trusting.error).toBeNull();
    expect(doubting.errorKind).toBe("tls");
  });

  it("matches the server's own count in a whole run", async () => {
    const steps = await runExample("rabbitmq.ts", { RABBITMQ_URL: server.url });
    expect(await server.count("hyperscale-log")).toBe(steps.get("log")?.ok);
  });
});

describe("validation", () => {
  const broker = new RabbitmqTarget("amqp://127.0.0.1");
  it.each([
    ["no queue", () => broker.send("", "x"), /a queue has a name/],
    ["a long name", () => broker.publish("x".repeat(256), "", "x"), /is not a name/],
    ["no prefetch", () => broker.consume("a", { prefetch: 0 }), /prefetch is/],
    ["an unknown exchange", () => broker.declareExchange("a", "x" as "topic"), /one of direct/],
  ])("reports at once: %s", (_what, make, text) => {
    expect(make).toThrow(text);
  });
});
