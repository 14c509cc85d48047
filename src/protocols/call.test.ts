import { expect, it } from "vitest";
import { type CallOwner, type CallTimeouts, MeasuredCall, timeoutsOf } from "./call.ts";
import { DEFAULT_CALL_SETTINGS } from "./protocol.ts";

const TIMEOUTS: CallTimeouts = {
  timeoutMs: 1_000_000,
  firstByteTimeoutMs: 400_000,
  connectTimeoutMs: 100_000,
};

class Owner implements CallOwner {
  closed = false;
  readonly reported: string[] = [];
  readonly call = new MeasuredCall(this, {
    callFinished: ({ errorKind }) => this.reported.push(errorKind ?? "ok"),
  });

  abandon(): string {
    return "no answer";
  }

  finish(): undefined {
    return undefined;
  }
}

/** Far ahead of the real clock, so that the process-wide sweeper does not interfere. */
const NOW = 1e12;

it("reports its result once, however often it finishes", () => {
  const { call, reported } = new Owner();
  call.begin(NOW, TIMEOUTS);
  call.succeed(NOW + 5);
  call.fail("reset", "too late", NOW + 6);
  call.succeed(NOW + 7);
  expect(reported).toEqual(["ok"]);
  expect([call.errorKind, call.endedAt]).toEqual([null, NOW + 5]);
});

it("resets all measurements when it begins again", () => {
  const { call, reported } = new Owner();
  call.begin(NOW, TIMEOUTS);
  call.opened(3, 4);
  call.bytesIn = 7;
  call.status = 503;
  call.fail("status", "503", NOW + 1);
  call.begin(NOW + 10, TIMEOUTS);
  expect(call).toMatchObject({ errorKind: null, error: null, status: 0, firstByteAt: 0 });
  expect(call).toMatchObject({ connectMs: -1, tlsMs: -1, bytesIn: 0, startedAt: NOW + 10 });
  call.succeed(NOW + 11);
  expect(reported).toEqual(["status", "ok"]);
});

it("reports nothing after it was cancelled or its user was closed", () => {
  const { call, reported } = new Owner();
  call.begin(NOW, TIMEOUTS);
  call.cancel();
  call.fail("reset", "closed", NOW + 1);
  const closed = new Owner();
  closed.call.begin(NOW, TIMEOUTS);
  closed.closed = true;
  closed.call.succeed(NOW + 1);
  expect([...reported, ...closed.reported]).toEqual([]);
});

it("has the deadline of its current phase", () => {
  const { call } = new Owner();
  call.begin(NOW, TIMEOUTS);
  expect(call.deadline).toBe(NOW + 1_000_000);
  call.connecting(NOW + 10);
  expect(call.deadline).toBe(NOW + 100_010);
  call.awaitFirstByte(NOW + 50);
  expect(call.deadline).toBe(NOW + 400_050);
  call.awaitFirstByte(NOW + 900_000);
  expect(call.deadline).toBe(NOW + 1_000_000);
  call.firstByte(NOW + 60);
  call.firstByte(NOW + 70);
  expect([call.firstByteAt, call.deadline]).toEqual([NOW + 60, NOW + 1_000_000]);
  call.again({ ...TIMEOUTS, timeoutMs: 2_000_000 });
  expect(call.deadline).toBe(NOW + 2_000_000);
  call.cancel();
});

it("names what was missing when it times out", () => {
  const { call, reported } = new Owner();
  call.begin(NOW, TIMEOUTS);
  call.timedOut(NOW + 1_500.4);
  expect(reported).toEqual(["timeout"]);
  expect(call.error).toBe("no answer after 1500 ms");
});

it("fails as dns when the host is not found", async () => {
  const { call, reported } = new Owner();
  call.begin(NOW, TIMEOUTS);
  await new Promise<void>((resolve) => {
    call.lookUp({ prepare: () => Promise.reject(new Error("unknown host")) }, NOW, () =>
      expect.fail(),
    );
    setImmediate(resolve);
  });
  expect(reported).toEqual(["dns"]);
  expect(call.error).toBe("unknown host");
});

it("stops after a DNS lookup that outlasted the call", async () => {
  const { call, reported } = new Owner();
  let found: () => void = () => undefined;
  const prepare = (): Promise<void> =>
    new Promise((resolve) => {
      found = resolve;
    });
  call.begin(NOW, TIMEOUTS);
  call.lookUp({ prepare }, NOW, () => reported.push("went on"));
  expect(call.deadline).toBe(NOW + 100_000);
  call.timedOut(NOW + 100_000);
  call.begin(NOW + 200_000, TIMEOUTS);
  found();
  await new Promise((resolve) => setImmediate(resolve));
  expect(reported).toEqual(["timeout"]);
  call.cancel();
});

it("caps the timeout of every phase at that of the whole call", () => {
  expect(timeoutsOf(50, DEFAULT_CALL_SETTINGS)).toEqual({
    timeoutMs: 50,
    firstByteTimeoutMs: 50,
    connectTimeoutMs: 50,
  });
  expect(timeoutsOf(null, DEFAULT_CALL_SETTINGS).connectTimeoutMs).toBe(10_000);
});
