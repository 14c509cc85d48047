import { expect, it } from "vitest";
import { DEFAULT_CALL_SETTINGS, registerProtocol } from "../protocols/protocol.ts";
import { setupContext, type UserContext, userContext } from "./context.ts";
import { Iteration } from "./iteration.ts";
import { Recorder } from "./recorder.ts";
import { UserSession } from "./session.ts";
import { recorderHost } from "./testing/recorder-host.ts";
import { TimeLimit } from "./time-limit.ts";

const signal = new AbortController().signal;
const abort = (): void => {};

function user(): UserContext {
  const host = { setup: 1, used: {}, core: 0, signal, sleep: () => Promise.resolve(), abort };
  const iteration = new Iteration(new Recorder(false, recorderHost()), false);
  return userContext(0, host, new UserSession(DEFAULT_CALL_SETTINGS), iteration);
}

it("have the clients of the imported protocols only (PROTO-3)", async () => {
  expect("http" in user()).toBe(false);
  const { HttpClient } = await import("../protocols/http1/index.ts");
  const [ada, bob] = [user(), user()];
  expect(ada.http).toBeInstanceOf(HttpClient);
  expect(ada.http).toBe(ada.http);
  expect(ada.http).not.toBe(bob.http);
  expect("ws" in ada).toBe(false);
  const { WebsocketClient } = await import("../protocols/websocket/index.ts");
  expect(user().ws).toBeInstanceOf(WebsocketClient);
  const session = new UserSession(DEFAULT_CALL_SETTINGS);
  const { http, ws, setup } = setupContext(
    session,
    { limit: new TimeLimit("setup", 1_000), abort },
    "made",
  );
  expect(http).toBeInstanceOf(HttpClient);
  expect(ws).toBeInstanceOf(WebsocketClient);
  expect(setup).toBe("made");
});

it("rejects two protocols with one name", async () => {
  const { HttpClient } = await import("../protocols/http1/index.ts");
  expect(() =>
    registerProtocol({ name: "http", client: (session) => new HttpClient(session) }),
  ).toThrow('two protocols are named "http"');
});
