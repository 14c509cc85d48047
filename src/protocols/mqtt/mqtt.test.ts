/** Tests specific to MQTT: qualities of service, subscriptions, logins; and its use in flows. */

import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { needs } from "../../../test/needs.ts";
import { flow, once } from "../../index.ts";
import type { CountingServer } from "../testing/contract.ts";
import { runExample } from "../testing/example.ts";
import { absent } from "../testing/real-server.ts";
import { perform, TestSession } from "../testing/session.ts";
import { matchesFilter } from "./filter.ts";
import { mqtt } from "./index.ts";
import { MOSQUITTO, mosquittoProgram, startMosquitto } from "./testing/server.ts";

const present = needs(mosquittoProgram !== null, absent(MOSQUITTO));

it.each([
  ["a/b", "a/b", true],
  ["a/b", "a/+", true],
  ["a/b/c", "a/+", false],
  ["a/b/c", "a/#", true],
  ["a", "a/#", true],
  ["$SYS/x", "#", false],
  ["$SYS/x", "$SYS/#", true],
  ["a", "+/b", false],
  ["a/b", "$share/group/a/+", true],
])("topic %s and filter %s: %s", (topic, filter, matches) => {
  expect(matchesFilter(topic, filter)).toBe(matches);
});

it("rejects invalid messages before the run", () => {
  const broker = mqtt.target("mqtt://broker.test");
  expect(() => broker.publish("a/+", "x")).toThrow("not a topic");
  expect(() => broker.subscribe("a/#/b")).toThrow("not a topic filter");
  expect(() => broker.publish("a", "x", { qos: 3 as 2 })).toThrow("qos");
  expect(() => mqtt.target("mqtt://b", { version: "4" as "5" })).toThrow("version");
});

describe.each(["5", "3.1.1"] as const)("version %s", present, (version) => {
  let server: CountingServer;
  beforeAll(async () => {
    server = await startMosquitto();
  });
  afterAll(() => server.stop());
  const broker = () => mqtt.target(`mqtt://127.0.0.1:${server.port}`, { version });

  it.each([0, 1, 2] as const)("carries messages with QoS %i", async (qos) => {
    const target = broker();
    const session = new TestSession();
    expect(await perform(target.subscribe("rooms/+", { qos }), session)).toMatchObject({
      ok: true,
    });
    const data = Buffer.alloc(300, qos);
    for (let i = 0; i < 3; i++)
      expect((await perform(target.publish("rooms/7", data, { qos }))).error).toBeNull();
    for (let i = 0; i < 3; i++) {
      const { value } = await perform(target.receive("rooms/+"), session);
      expect(value).toMatchObject({ topic: "rooms/7", qos, data });
    }
    session.reset();
    const late = await perform(target.receive("rooms/+"), session);
    expect(late).toMatchObject({ ok: false, errorKind: "exception" });
    expect((await perform(target.ping(), session)).ok).toBe(true);
    session.close();
  });

  it("carries concurrent calls of a flow on one connection", async () => {
    const target = broker();
    const chat = flow("chat", async ({ check, step }) => {
      await step("join", target.subscribe("room"), { required: true });
      const [received] = await Promise.all([
        step("receive", target.receive("room")),
        step("say", target.publish("room", "hello", { qos: 1 })),
        step("again", target.publish("other", "x", { qos: 2 })),
      ]);
      check("received", () => received.value.data.toString() === "hello");
    });
    const { calls, checks, outcome } = await once(chat);
    expect(outcome).toBe("completed");
    expect(checks).toEqual([{ name: "received", passed: true }]);
    expect(calls.filter(({ result }) => result.connectMs >= 0)).toHaveLength(1);
  });
});

describe("logins", present, () => {
  let server: CountingServer;
  beforeAll(async () => {
    server = await startMosquitto(["allow_anonymous false", "password_file FOLDER/passwords"], {
      passwords: "",
    });
  });
  afterAll(() => server.stop());

  it.each([
    ["5", "NOT_AUTHORIZED"],
    ["3.1.1", "NOT_AUTHORIZED"],
  ] as const)("are refused by version %s with %s", async (version, errorCode) => {
    const target = mqtt.target(`mqtt://ada:wrong@127.0.0.1:${server.port}`, { version });
    expect(await perform(target.ping())).toMatchObject({ errorKind: "application", errorCode });
  });
});

it("matches the server's own count in a whole run of the example", present, async () => {
  const server = await startMosquitto();
  onTestFinished(() => server.stop());
  const steps = await runExample("mqtt.ts", { MQTT_URL: `mqtt://127.0.0.1:${server.port}` });
  const sent = (steps.get("measure")?.sent ?? 0) + (steps.get("alarm")?.sent ?? 0);
  await expect.poll(server.served).toBe(sent);
});
