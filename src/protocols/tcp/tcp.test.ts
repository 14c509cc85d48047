/** Tests specific to TCP: the end of responses. */

import { afterAll, beforeAll, expect, it } from "vitest";
import { listenTcp, type ScriptedServer } from "../testing/scripted-server.ts";
import { runner, TestSession } from "../testing/session.ts";
import { type TcpAnswer, type TcpCall, type TcpResponse, tcp } from "./index.ts";

let server: ScriptedServer;
/** Echoes byte by byte; closes the connection on "bye". */
beforeAll(async () => {
  server = await listenTcp((socket) =>
    socket.on("data", (bytes) => {
      for (const byte of bytes) socket.write(Buffer.of(byte));
      if (bytes.includes("bye")) socket.end();
    }),
  );
});
afterAll(() => server.close());

async function perform<Value>(
  call: TcpCall<Value>,
  session = new TestSession(),
): Promise<TcpResponse<Value>> {
  const { result } = await (await runner(call, session))();
  return result as TcpResponse<Value>;
}

it.each<[string, TcpAnswer]>([
  ["hello\n", { until: "\n" }],
  ["hello, end", { until: Buffer.from("end") }],
  ["four", { bytes: 4 }],
  ["\x05hello", { prefix: 1 }],
  ["\x00\x05hello", { prefix: 2 }],
  ["\x00\x00\x00\x05hello", { prefix: 4 }],
  ["and bye", "close"],
])("%j answered by %j", async (text, answer) => {
  const target = tcp.target(`tcp://127.0.0.1:${server.port}`);
  const session = new TestSession();
  for (let i = 0; i < 2; i++) {
    const response = await perform(target.request(text, { answer }), session);
    expect(response.error).toBeNull();
    expect(response.value.toString()).toBe(text);
  }
  session.close();
});

it("drops a connection that receives more than was requested", async () => {
  const target = tcp.target(`tcp://127.0.0.1:${server.port}`);
  const session = new TestSession();
  const call = target.request("one\ntwo\n", { answer: { until: "\n" } });
  expect((await perform(call, session)).value.toString()).toBe("one\n");
  await expect.poll(server.open).toBe(0);
  expect((await perform(call, session)).connectMs).toBeGreaterThanOrEqual(0);
  session.close();
});

it("sends without waiting, and rejects a response without an end before the run", async () => {
  const target = tcp.target(`tcp://127.0.0.1:${server.port}`);
  expect(await perform(target.send("x"))).toMatchObject({ ok: true, value: null, bytesOut: 1 });
  expect(() => target.request("x", {} as { answer: "close" })).toThrow("where it ends");
  expect(() => tcp.target("tcp://h")).toThrow("names no port");
});
