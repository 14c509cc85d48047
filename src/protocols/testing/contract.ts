/**
 * Requirements on every protocol, as tests: against its real server, and against a scripted one. A protocol provides a
 * `Subject`; the cases are the same for all.
 */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needs } from "../../../test/needs.ts";
import type { ErrorKind } from "../errors.ts";
import { clock } from "../net/clock.ts";
import type { CallSettings, PreparedCall } from "../protocol.ts";
import { freePort } from "./real-server.ts";
import type { Peer, ScriptedServer } from "./scripted-server.ts";
import { type Finished, runner, TestSession } from "./session.ts";

interface Subject {
  readonly name: string;
  /** Calls to the server at this loopback port. */
  calls(port: number): SubjectCalls;
  readonly real: RealSubject;
  readonly hostile: HostileSubject;
}

interface SubjectCalls {
  /** Small and successful. */
  readonly success: PreparedCall;
  /** A complete response that reports an error of this name. */
  readonly refused: { readonly call: PreparedCall; readonly code: string } | null;
}

interface RealSubject {
  /** Null where it is not installed, for the reason given. */
  readonly start: (() => Promise<CountingServer>) | null;
  readonly absent: string;
  /** Concurrent virtual users. */
  readonly users: number;
  /** Calls that must not leak anything; `LEAK_CALLS` by default. */
  readonly leakCalls?: number;
}

export interface CountingServer {
  readonly port: number;
  /** Number of calls like `success`, by the server's own count. */
  served(): Promise<number>;
  stop(): Promise<void>;
}

interface HostileSubject {
  /** A server that accepts clients and invokes the callback for each call; otherwise it stays silent. */
  listen(onCall: (peer: Peer) => void): Promise<ScriptedServer>;
  /** A server that accepts connections and stays silent; null where the protocol has no handshake. */
  readonly mute: (() => Promise<ScriptedServer>) | null;
  /** The beginning of a response that is never completed; null where responses arrive whole. */
  readonly half: Buffer | null;
  /** Error text for a response that was cut off; "mid-answer" by default. */
  readonly cutOff?: string;
  /** Connections can be closed by the server. */
  readonly resets: boolean;
  /** Malformed responses, one per violation. */
  readonly rubbish: readonly Buffer[];
  /** Longer than 64 KiB, or announced as such; null where it is impossible. */
  readonly oversize: Buffer | null;
  /** Error kind when nothing listens at the port; "refused" by default. */
  readonly unreachable?: ErrorKind;
  /** Enough to open a connection and call; `TIMEOUT_MS` by default. */
  readonly timeoutMs?: number;
}

const NO_BYTES = Buffer.alloc(0);
const CALLS_PER_USER = 5;
const LEAK_CALLS = 3_000;
const LEAK_BYTES_MAX = 4 * 1024 * 1024;
/** Long enough for a busy machine; not waited for when all is well. */
const TIMEOUT_MS = 300;

export function describeContract(subject: Subject): void {
  describe(`${subject.name} against its server`, () => realCases(subject));
  describe(`${subject.name} against a hostile server`, () => {
    lossCases(subject);
    rubbishCases(subject);
  });
}

interface Running {
  readonly server: CountingServer;
  readonly calls: SubjectCalls;
}

function realCases({ calls: callsTo, real }: Subject): void {
  describe("contract", needs(real.start !== null, real.absent), () => {
    let server: CountingServer | undefined;
    let running: Running | undefined;
    beforeAll(async () => {
      server = await real.start?.();
      if (server !== undefined) running = { server, calls: callsTo(server.port) };
    });
    afterAll(() => server?.stop());
    const given = (): Running => {
      if (running === undefined) throw new Error("the server did not start");
      return running;
    };
    singleCases(given);
    manyCases(real, given);
  });
}

function singleCases(given: () => Running): void {
  it("succeeds with its times and bytes (PROTO-1)", async () => {
    const { record, result } = await once(given().calls.success);
    expect(result?.error).toBeNull();
    expect(record.errorKind).toBeNull();
    expect(record.connectMs).toBeGreaterThanOrEqual(0);
    expect(record.endedAt).toBeGreaterThanOrEqual(record.firstByteAt);
    expect(record.firstByteAt).toBeGreaterThanOrEqual(record.startedAt);
    expect(record.bytesOut).toBeGreaterThan(0);
  });

  it("counts an error of the protocol by its own name and throws nothing (PROTO-1)", async () => {
    const { refused } = given().calls;
    if (refused === null) return;
    const { record, result } = await once(refused.call);
    expect(record.errorKind).toBe("application");
    expect(result).toMatchObject({ ok: false, errorCode: refused.code });
    expect(result?.error).not.toBe("");
  });

  it("reuses its connection, also after an error of the protocol (PROTO-2)", async () => {
    const { refused, success } = given().calls;
    const session = new TestSession();
    const run = await runner(success, session);
    const connects: number[] = [];
    for (let i = 0; i < 3; i++) connects.push((await run()).record.connectMs);
    if (refused !== null) await (await runner(refused.call, session))();
    connects.push((await run()).record.connectMs);
    expect(connects.map((ms) => ms >= 0)).toEqual([true, false, false, false]);
    session.close();
  });

  it("opens a connection for each call without keep-alive", async () => {
    const session = new TestSession({ keepAlive: false });
    const run = await runner(given().calls.success, session);
    for (let i = 0; i < 3; i++) expect((await run()).record.connectMs).toBeGreaterThanOrEqual(0);
    session.close();
  });
}

function manyCases({ leakCalls = LEAK_CALLS, users }: RealSubject, given: () => Running): void {
  it(`matches the server's own count, with ${users} concurrent users`, async () => {
    const { calls, server } = given();
    const before = await server.served();
    const sessions = Array.from({ length: users }, (_, user) => new TestSession({}, user));
    const kinds = await Promise.all(sessions.map((session) => callsOf(session, calls.success)));
    expect(kinds.flat().filter((kind) => kind !== null)).toEqual([]);
    expect((await server.served()) - before).toBe(users * CALLS_PER_USER);
    for (const session of sessions) session.close();
  });

  it("shares connections when the workflow says so", async () => {
    const { success } = given().calls;
    const sessions = sharing({ connections: "shared", sharedConnectionsMax: 2 }, 6);
    const kinds = await Promise.all(sessions.map((session) => callsOf(session, success)));
    expect(kinds.flat().filter((kind) => kind !== null)).toEqual([]);
    for (const session of sessions) session.close();
  });

  it("is silent after its user has stopped", async () => {
    const { success } = given().calls;
    const session = new TestSession();
    await success.prepare({ settings: session.settings, folder: "." });
    let reported = 0;
    const bound = success.bind(session, true, { callFinished: () => reported++ });
    bound.start(clock());
    session.close();
    bound.start(clock());
    await settled();
    expect(reported).toBe(0);
  });

  it("leaks nothing over many calls", async () => {
    const sockets = openSockets();
    const session = new TestSession();
    const run = await runner(given().calls.success, session);
    for (let i = 0; i < leakCalls / 3; i++) await run();
    const before = heapBytes();
    for (let i = 0; i < leakCalls; i++) await run();
    expect(heapBytes() - before).toBeLessThan(LEAK_BYTES_MAX);
    session.close();
    await expect.poll(openSockets).toBeLessThanOrEqual(sockets);
  });
}

/** A case for the protocols to which it applies. */
function where(applies: boolean): (name: string, test: () => Promise<void>) => void {
  return (name, test) => {
    if (applies) it(name, test);
  };
}

/** Calls against a server that handles each call with this script. */
async function against(
  { calls, hostile }: Subject,
  onCall: (peer: Peer) => void,
  use: (call: PreparedCall, server: ScriptedServer) => Promise<void>,
): Promise<void> {
  const server = await hostile.listen(onCall);
  try {
    await use(calls(server.port).success, server);
  } finally {
    await server.close();
  }
}

function lossCases(subject: Subject): void {
  const { calls, hostile } = subject;
  const { unreachable = "refused", timeoutMs = TIMEOUT_MS } = hostile;
  const nothing = (): void => undefined;

  it(`${unreachable}: nothing listens`, async () => {
    const settings = unreachable === "timeout" ? { timeoutMs } : {};
    const { record, result } = await once(calls(await freePort()).success, settings);
    expect(record.errorKind).toBe(unreachable);
    expect(result?.ok).toBe(false);
  });

  it("time-out: the server stays silent, repeatedly", () =>
    against(subject, nothing, async (call, server) => {
      const session = new TestSession({ timeoutMs });
      const run = await runner(call, session);
      for (let i = 0; i < 2; i++) expect((await run()).record.errorKind).toBe("timeout");
      expect(server.accepted()).toBeGreaterThan(0);
      session.close();
      await expect.poll(server.open).toBe(0);
    }));

  where(hostile.mute !== null)("time-out: the server accepts no client", async () => {
    const server = await hostile.mute?.();
    if (server === undefined) return;
    const { record } = await once(calls(server.port).success, { timeoutMs });
    expect(record.errorKind).toBe("timeout");
    await expect.poll(server.open).toBe(0);
    await server.close();
  });

  where(hostile.resets)("reset: the connection closes without a response", () =>
    against(
      subject,
      (peer) => peer.destroy(),
      async (call) => {
        const session = new TestSession();
        const run = await runner(call, session);
        for (let i = 0; i < 3; i++) expect((await run()).record.errorKind).toBe("reset");
        session.close();
      },
    ),
  );

  it("cancelled: a user that stops with a call in flight gets no result, and its connections close", () =>
    against(subject, nothing, async (call, server) => {
      const session = new TestSession();
      await call.prepare({ settings: session.settings, folder: "." });
      let reported = 0;
      call.bind(session, true, { callFinished: () => reported++ }).start(clock());
      await expect.poll(server.accepted).toBeGreaterThan(0);
      session.close();
      await expect.poll(server.open).toBe(0);
      expect(reported).toBe(0);
    }));
}

function rubbishCases(subject: Subject): void {
  const { cutOff = "mid-answer", half, oversize, rubbish } = subject.hostile;

  where(half !== null)("reset: the connection closes during the response", () =>
    against(
      subject,
      (peer) => peer.end(half ?? NO_BYTES),
      async (call) => {
        const { record, result } = await once(call);
        expect(record.errorKind).toBe("reset");
        expect(result?.error).toContain(cutOff);
      },
    ),
  );

  where(half !== null)("reset: the same, one byte at a time", () =>
    against(
      subject,
      (peer) => {
        for (const byte of half ?? []) peer.write(Buffer.of(byte));
        peer.end(NO_BYTES);
      },
      async (call) => {
        const { record, result } = await once(call);
        expect(record.errorKind).toBe("reset");
        expect(result?.error).toContain(cutOff);
      },
    ),
  );

  const shown = rubbish.map(
    (bytes) => [JSON.stringify(bytes.toString("latin1").slice(0, 40)), bytes] as const,
  );
  it.each(shown)("protocol: malformed response %s", (_, bytes) =>
    against(
      subject,
      (peer) => peer.write(bytes),
      async (call, server) => {
        const session = new TestSession({ timeoutMs: 30_000 });
        const { record } = await (await runner(call, session))();
        expect(record.errorKind).toBe("protocol");
        await expect.poll(server.open).toBe(0);
        session.close();
      },
    ),
  );

  where(oversize !== null)("protocol: a response that is too long, in bounded memory", () =>
    against(
      subject,
      (peer) => peer.write(oversize ?? NO_BYTES),
      async (call) => {
        const { record } = await once(call, { bodyBytesMax: 64 * 1024, timeoutMs: 30_000 });
        expect(record.errorKind).toBe("protocol");
      },
    ),
  );
}

async function once(call: PreparedCall, settings: Partial<CallSettings> = {}): Promise<Finished> {
  const session = new TestSession(settings);
  const finished = await (await runner(call, session))();
  session.close();
  return finished;
}

async function recordsOf(session: TestSession, call: PreparedCall): Promise<Finished[]> {
  const run = await runner(call, session);
  const all: Finished[] = [];
  for (let i = 0; i < CALLS_PER_USER; i++) all.push(await run());
  return all;
}

async function callsOf(session: TestSession, call: PreparedCall): Promise<(string | null)[]> {
  const all = await recordsOf(session, call);
  return all.map(
    ({ record, result }) => record.errorKind && `${record.errorKind}: ${result?.error}`,
  );
}

/** Sessions with the same settings object, which identifies shared pools. */
function sharing(settings: Partial<CallSettings>, users: number): TestSession[] {
  const first = new TestSession(settings);
  const others = Array.from({ length: users - 1 }, (_, user) => first.another(user + 1));
  return [first, ...others];
}

async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setTimeout(resolve, 5));
}

function openSockets(): number {
  const isSocket = (name: string): boolean => /^(TCP|UDP|TLS)\w*Wrap$/.test(name);
  return process.getActiveResourcesInfo().filter(isSocket).length;
}

function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  return process.memoryUsage().heapUsed;
}
