/** Tests specific to NATS: requests, subscriptions, logins; and its use in flows. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { needs } from "../../../test/needs.ts";
import { makeCertificate } from "../../demo/certificate.ts";
import { flow, once } from "../../index.ts";
import type { CountingServer } from "../testing/contract.ts";
import { runExample } from "../testing/example.ts";
import { absent } from "../testing/real-server.ts";
import { answersTo, perform, TestSession } from "../testing/session.ts";
import { nats } from "./index.ts";
import { NATS_SERVER, natsProgram, startNats } from "./testing/server.ts";

const present = needs(natsProgram !== null, absent(NATS_SERVER));

it.each(["a b", "", "a..b", ".a", "a\r\nPUB b 0", 7 as unknown as string])(
  "rejects the subject %j before the run",
  (subject) => {
    const bus = nats.target("nats://bus.test");
    expect(() => bus.publish(subject, "x")).toThrow("is not a subject");
    expect(() => bus.publish("a", "x", { headers: { "a\r\n": "b" } })).toThrow("header");
  },
);

describe("a server", present, () => {
  let server: CountingServer;
  beforeAll(async () => {
    server = await startNats();
  });
  afterAll(() => server.stop());

  it("carries messages from a publisher to a subscriber, with headers and any bytes", async () => {
    const bus = nats.target(`nats://127.0.0.1:${server.port}`);
    const session = new TestSession();
    await perform(bus.subscribe("orders.*"), session);
    const data = Buffer.of(0, 13, 10, 255);
    await perform(bus.publish("orders.tea", data, { headers: { id: "7" } }));
    const { value } = await perform(bus.receive("orders.*"), session);
    expect(value).toMatchObject({ subject: "orders.tea", data });
    expect(value.headers.get("id")).toBe("7");
    session.reset();
    const late = await perform(bus.receive("orders.*"), session);
    expect(late).toMatchObject({ ok: false, errorKind: "exception" });
    session.close();
  });

  it("answers requests, and reports a missing responder", async () => {
    const bus = nats.target(`nats://127.0.0.1:${server.port}`);
    const answering = new TestSession();
    await perform(bus.subscribe("prices", { keep: "user" }), answering);
    const asking = new TestSession();
    const asked = perform(bus.request("prices", { sku: "tea" }), asking);
    const { value: question } = await perform(bus.receive("prices"), answering);
    expect(question.data.toString()).toBe('{"sku":"tea"}');
    await perform(bus.publish(question.replyTo, "12"), answering);
    expect((await asked).value.data.toString()).toBe("12");
    const nobody = await perform(bus.request("nobody", "x"), asking);
    expect(nobody).toMatchObject({
      errorKind: "application",
      errorCode: "NO_RESPONDERS",
      // Samples in the report show the text only.
      error: "NO_RESPONDERS: no responders for that subject",
      status: 503,
    });
    const slow = await perform(bus.request("prices", "x", { timeout: "50ms" }), asking);
    expect(slow.errorKind).toBe("timeout");
    // The connection stays open: a late response is ignored.
    expect((await perform(bus.ping(), asking)).connectMs).toBeLessThan(0);
    asking.close();
    answering.close();
  });

  it("carries concurrent calls of a flow on one connection", async () => {
    const bus = nats.target(`nats://127.0.0.1:${server.port}`);
    const chat = flow("chat", async ({ check, step }) => {
      await step("join", bus.subscribe("room"), { required: true });
      const [received] = await Promise.all([
        step("receive", bus.receive("room")),
        step("say", bus.publish("room", "hello")),
        step("whisper", bus.publish("other", "x", { confirm: false })),
      ]);
      check("received", () => received.value.data.toString() === "hello");
    });
    const { calls, checks, outcome } = await once(chat);
    expect(outcome).toBe("completed");
    expect(checks).toEqual([{ name: "received", passed: true }]);
    expect(calls.filter(({ result }) => result.connectMs >= 0)).toHaveLength(1);
  });

  it("matches the server's own count in a whole run of the example", async () => {
    const before = await server.served();
    const steps = await runExample("nats.ts", { NATS_URL: `nats://127.0.0.1:${server.port}` });
    const sent = (steps.get("order")?.sent ?? 0) + (steps.get("event")?.sent ?? 0);
    expect((await server.served()) - before).toBe(sent);
  });
});

describe("logins", present, () => {
  let server: CountingServer;
  beforeAll(async () => {
    server = await startNats('authorization { timeout: 60, token: "secret" }');
  });
  afterAll(() => server.stop());

  it("accepts clients with the token and rejects others", async () => {
    const at = `127.0.0.1:${server.port}`;
    expect((await perform(nats.target(`nats://secret@${at}`).ping())).ok).toBe(true);
    const inside = await perform(nats.target(`nats://${at}`, { token: "secret" }).ping());
    expect(inside.loginMs).toBeGreaterThan(0);
    const outside = await perform(nats.target(`nats://wrong@${at}`).ping());
    expect(outside).toMatchObject({
      errorKind: "application",
      errorCode: "AUTHORIZATION_VIOLATION",
    });
  });
});

describe("TLS", present, () => {
  const certificate = makeCertificate({ hosts: ["127.0.0.1"] });
  let folder: string;
  let server: CountingServer;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "hyperscale-nats-"));
    const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    writeFileSync(cert, certificate.cert);
    writeFileSync(key, certificate.key);
    server = await startNats(`tls { cert_file: "${cert}", key_file: "${key}", timeout: 60 }`);
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  it.each(["nats", "tls"])(
    "begins after the greeting of %s://, and is measured separately",
    async (scheme) => {
      const bus = nats.target(`${scheme}://127.0.0.1:${server.port}`, { ca: certificate.cert });
      const [first, again] = await answersTo(bus.publish("a", Buffer.alloc(100_000)), bus.ping());
      expect(first.error).toBeNull();
      expect(first.tlsMs).toBeGreaterThan(0);
      expect(first.loginMs).toBeGreaterThan(0);
      expect(again.connectMs).toBe(-1);
    },
  );

  it("fails when the certificate is not trusted", async () => {
    const bus = nats.target(`tls://127.0.0.1:${server.port}`);
    expect(await perform(bus.ping())).toMatchObject({ errorKind: "tls" });
  });

  it("fails when it is required and the server has none", async () => {
    const plain = await startNats();
    onTestFinished(() => plain.stop());
    const bus = nats.target(`tls://127.0.0.1:${plain.port}`);
    const result = await perform(bus.ping());
    expect(result).toMatchObject({ errorKind: "tls", error: "the server does not speak TLS" });
  });
});
