import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needs } from "../../../test/needs.ts";
import { runExample } from "../testing/example.ts";
import { absent } from "../testing/real-server.ts";
import { answersTo, perform, TestSession } from "../testing/session.ts";
import { KafkaTarget } from "./target.ts";
import { type KafkaServer, KCAT, kcatProgram, startKafka } from "./testing/server.ts";

describe("a cluster", needs(kcatProgram !== null, absent(KCAT)), () => {
  let server: KafkaServer;
  let events: KafkaTarget;
  beforeAll(async () => {
    server = await startKafka();
    events = new KafkaTarget(server.url);
  });
  afterAll(() => server.stop());

  it("stores messages in their partition and returns its offset", async () => {
    const [first, second, batch] = await answersTo(
      events.produce("orders", { id: 7 }, { partition: 2, acks: "leader" }),
      events.produce("orders", "again", { partition: 2, compression: "gzip" }),
      events.produceBatch("orders", [
        { value: "a", partition: 1 },
        { value: "b", partition: 1, key: "k" },
      ]),
    );
    expect(first).toMatchObject({ ok: true, protocol: "kafka", sent: 1 });
    expect(first.value).toEqual([{ partition: 2, offset: "0" }]);
    expect(second.value).toEqual([{ partition: 2, offset: "1" }]);
    expect(batch.value).toEqual([{ partition: 1, offset: "0" }]);
    expect(first.connectMs).toBeGreaterThanOrEqual(0);
    expect(second.connectMs).toBe(-1);
    expect(second.bytesOut).toBeGreaterThan(50);
    expect(second.bytesIn).toBeGreaterThan(20);
    expect(await server.count("orders")).toBe(4);
  });

  it("assigns one partition per key", async () => {
    const call = events.produce("keyed", "x", { key: "ada" });
    const results = await answersTo(call, call, call);
    expect(results.map(({ value }) => value[0]?.offset)).toEqual(["0", "1", "2"]);
  });

  it("does not wait for an acknowledgement when none is requested", async () => {
    const [sent] = await answersTo(events.produce("careless", "x", { acks: "none" }));
    expect(sent).toMatchObject({ ok: true });
    await expect.poll(() => server.count("careless")).toBe(1);
  });

  it("delivers messages produced after the subscription, with their latency", async () => {
    const session = new TestSession();
    await perform(events.produce("news", "old"), session);
    expect(await perform(events.subscribe("news"), session)).toMatchObject({ ok: true });
    const headers = { kind: "new" };
    await perform(events.produce("news", "fresh", { key: "k", headers }), session);
    const { value } = await perform(events.receive("news", { timeout: "30s" }), session);
    expect(value).toMatchObject({ topic: "news", data: Buffer.from("fresh") });
    expect(value.key?.toString()).toBe("k");
    expect(value.headers.get("kind")).toBe("new");
    expect(value.latencyMs).toBeGreaterThanOrEqual(0);
    session.reset();
    const late = await perform(events.receive("news"), session);
    expect(late).toMatchObject({ ok: false, errorCode: "NOT_SUBSCRIBED" });
    session.close();
  });

  it("starts at the beginning on request, and times out when nothing arrives", async () => {
    const session = new TestSession();
    await perform(events.produce("log", "first"), session);
    await perform(events.subscribe("log", { from: "beginning", keep: "user" }), session);
    session.reset();
    const received = await perform(events.receive("log", { timeout: "30s" }), session);
    expect(received.value.data.toString()).toBe("first");
    const nothing = await perform(events.receive("log", { timeout: "50ms" }), session);
    expect(nothing.errorKind).toBe("timeout");
    // A wait that times out keeps the connection.
    const next = await perform(events.produce("log", "second"), session);
    expect(next).toMatchObject({ ok: true, connectMs: -1 });
    session.close();
  });

  it("matches the cluster's own count in a whole run", async () => {
    const steps = await runExample("kafka.ts", { KAFKA_URL: server.url }, "10s");
    expect(await server.count("hyperscale-orders")).toBe(steps.get("order")?.ok);
  });
});

describe("validation", () => {
  const events = new KafkaTarget("kafka://127.0.0.1");
  it.each([
    ["no topic", () => events.produce("a b", "x"), /is not a topic/],
    ["an empty batch", () => events.produceBatch("a", []), /1 to 10000 messages/],
    ["unknown acks", () => events.produce("a", "x", { acks: "some" as "all" }), /acks is/],
    [
      "an unknown mechanism",
      () => new KafkaTarget("kafka://a", { mechanism: "magic" as "plain" }),
      /mechanism is one of/,
    ],
    ["endless retries", () => new KafkaTarget("kafka://a", { retries: -1 }), /retries is/],
  ])("reports at once: %s", (_what, make, text) => {
    expect(make).toThrow(text);
  });
});
