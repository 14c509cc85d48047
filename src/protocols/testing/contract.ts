/**
 * What every protocol must do, as tests: against its real server, and against one of ours that says
 * whatever it is told to. A protocol gives a `Subject`; the cases are the same for all.
 */

import net from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needs } from "../../../test/needs.ts";
import { clock } from "../net/clock.ts";
import type { CallSettings, PreparedCall } from "../protocol.ts";
import { freePort } from "./real-server.ts";
import { type Finished, runner, TestSession } from "./session.ts";

export interface Subject {
  readonly name: string;
  /** Calls to the server at this port of loopback. */
  calls(port: number): SubjectCalls;
  readonly real: RealSubject;
  readonly hostile: HostileSubject;
}

export interface SubjectCalls {
  /** Small, and answered well. */
  readonly success: PreparedCall;
  /** A complete answer that says no, by this name. */
  readonly refused: { readonly call: PreparedCall; readonly code: string } | null;
}

interface RealSubject {
  /** Null where it is absent, for the reason given. */
  readonly start: (() => Promise<CountingServer>) | null;
  readonly absent: string;
  /** Virtual users at once. */
  readonly users: number;
}

export interface CountingServer {
  readonly port: number;
  /** How many calls like `success` the server has counted itself. */
  served(): Promise<number>;
  stop(): Promise<void>;
}

interface HostileSubject {
  /** Lets a client in; then `onCall` is called for each piece that comes. */
  accept(socket: net.Socket, onCall: () => void): void;
  /** The beginning of an answer that never ends. */
  readonly half: Buffer | null;
  /** Breaks the rules, each in its own way. */
  readonly rubbish: readonly Buffer[];
  /** More than 64 KiB, or says so. */
  readonly oversize: Buffer;
}

const CALLS_PER_USER = 5;
const LEAK_CALLS = 3_000;
const LEAK_BYTES_MAX = 4 * 1024 * 1024;
/** Long enough for a busy machine, and not waited for where all is well. */
const TIMEOUT_MS = 300;

export function describeContract(subject: Subject): void {
  describe(`${subject.name} against its server`, () => realCases(subject));
  describe(`${subject.name} against a hostile server`, () => hostileCases(subject));
}

function realCases({ calls: callsTo, real }: Subject): void {
  describe("contract", needs(real.start !== null, real.absent), () => {
    let server: CountingServer;
    let calls: SubjectCalls;
    beforeAll(async () => {
      if (real.start !== null) server = await real.start();
      calls = callsTo(server.port);
    });
    afterAll(() => server?.stop());

    it("answers: a success with its times and bytes (PROTO-1)", async () => {
      const { record, result } = await once(calls.success);
      expect(record.error ?? null).toBeNull();
      expect(record.errorKind).toBeNull();
      expect(record.connectMs).toBeGreaterThanOrEqual(0);
      expect(record.endedAt).toBeGreaterThanOrEqual(record.firstByteAt);
      expect(record.firstByteAt).toBeGreaterThanOrEqual(record.startedAt);
      expect(record.bytesOut).toBeGreaterThan(0);
      expect(result?.ok).toBe(true);
    });

    it("counts an error of the protocol with its own name and throws nothing (PROTO-1)", async () => {
      if (calls.refused === null) return;
      const { call, code } = calls.refused;
      const { record, result } = await once(call);
      expect(record.errorKind).toBe("application");
      expect(result).toMatchObject({ ok: false, errorKind: "application", errorCode: code });
      expect(result?.error).not.toBe("");
    });

    it("uses its connection again, also after an error of the protocol (PROTO-2)", async () => {
      const session = new TestSession();
      const run = await runner(calls.success, session);
      const connects: number[] = [];
      for (let i = 0; i < 3; i++) connects.push((await run()).record.connectMs);
      if (calls.refused !== null) await (await runner(calls.refused.call, session))();
      connects.push((await run()).record.connectMs);
      expect(connects.map((ms) => ms >= 0)).toEqual([true, false, false, false]);
      session.close();
    });

    it("opens a connection for each call where they are not to be kept", async () => {
      const session = new TestSession({ keepAlive: false });
      const run = await runner(calls.success, session);
      for (let i = 0; i < 3; i++) expect((await run()).record.connectMs).toBeGreaterThanOrEqual(0);
      session.close();
    });

    it(`counts what the server counts, with ${real.users} users at once`, async () => {
      const before = await server.served();
      const sessions = Array.from({ length: real.users }, (_, user) => new TestSession({}, user));
      const kinds = await Promise.all(sessions.map((session) => callsOf(session, calls.success)));
      const failed = kinds.flat().filter((kind) => kind !== null);
      expect(failed).toEqual([]);
      expect((await server.served()) - before).toBe(real.users * CALLS_PER_USER);
      for (const session of sessions) session.close();
    });

    it("shares connections where the workflow says so", async () => {
      const settings: Partial<CallSettings> = { connections: "shared", sharedConnectionsMax: 2 };
      const sessions = sharing(settings, 6);
      const all = await Promise.all(sessions.map((session) => recordsOf(session, calls.success)));
      const records = all.flat();
      expect(records.filter(({ record }) => record.errorKind !== null)).toEqual([]);
      for (const session of sessions) session.close();
    });

    it("is silent after its user has ended, and lets go of its connections", async () => {
      const session = new TestSession();
      await calls.success.prepare({ settings: session.settings, folder: "." });
      let heard = 0;
      const bound = calls.success.bind(session, true, { callFinished: () => heard++ });
      bound.start(clock());
      session.close();
      bound.start(clock());
      await settled();
      expect(heard).toBe(0);
    });

    it("leaks nothing over many calls", async () => {
      const sockets = openSockets();
      const session = new TestSession();
      const run = await runner(calls.success, session);
      for (let i = 0; i < LEAK_CALLS / 3; i++) await run();
      const before = heapBytes();
      for (let i = 0; i < LEAK_CALLS; i++) await run();
      expect(heapBytes() - before).toBeLessThan(LEAK_BYTES_MAX);
      session.close();
      await expect.poll(openSockets).toBeLessThanOrEqual(sockets);
    });
  });
}

function hostileCases({ calls: callsTo, hostile }: Subject): void {
  const against = async (
    onCall: (socket: net.Socket) => void,
    use: (call: PreparedCall, server: ScriptedServer) => Promise<void>,
  ): Promise<void> => {
    const server = await listen((socket) => hostile.accept(socket, () => onCall(socket)));
    try {
      await use(callsTo(server.port).success, server);
    } finally {
      await server.close();
    }
  };

  it("refused: nobody listens", async () => {
    const { success } = callsTo(await freePort());
    const { record, result } = await once(success);
    expect(record.errorKind).toBe("refused");
    expect(result?.ok).toBe(false);
  });

  it("time-out: the server says nothing, and its late answer is nobody's", async () => {
    await against(
      () => undefined,
      async (call, server) => {
        const session = new TestSession({ timeoutMs: TIMEOUT_MS });
        const run = await runner(call, session);
        for (let i = 0; i < 2; i++) expect((await run()).record.errorKind).toBe("timeout");
        expect(server.accepted()).toBeGreaterThan(0);
        session.close();
        await expect.poll(server.open).toBe(0);
      },
    );
  });

  it("time-out: a server that lets nobody in", async () => {
    const server = await listen(() => undefined);
    const { record } = await once(callsTo(server.port).success, { timeoutMs: TIMEOUT_MS });
    expect(record.errorKind).toBe("timeout");
    await server.close();
  });

  it("reset: the connection ends without an answer", async () => {
    await against(
      (socket) => socket.destroy(),
      async (call) => {
        const session = new TestSession();
        const run = await runner(call, session);
        for (let i = 0; i < 3; i++) expect((await run()).record.errorKind).toBe("reset");
        session.close();
      },
    );
  });

  it("reset: the connection ends in mid-answer", async () => {
    const { half } = hostile;
    if (half === null) return;
    await against(
      (socket) => socket.end(half),
      async (call) => {
        const { record, result } = await once(call);
        expect(record.errorKind).toBe("reset");
        expect(record.bytesIn).toBeGreaterThanOrEqual(half.length);
        expect(result?.error).toContain("mid-answer");
      },
    );
  });

  it.each(
    hostile.rubbish.map(
      (bytes) => [JSON.stringify(bytes.toString("latin1").slice(0, 40)), bytes] as const,
    ),
  )("protocol: rubbish %s", async (_, bytes) => {
    await against(
      (socket) => socket.write(bytes),
      async (call, server) => {
        const session = new TestSession({ timeoutMs: 30_000 });
        const { record } = await (await runner(call, session))();
        expect(record.errorKind).toBe("protocol");
        await expect.poll(server.open).toBe(0);
        session.close();
      },
    );
  });

  it("protocol: an answer that is too long, in bounded memory", async () => {
    await against(
      (socket) => socket.write(hostile.oversize),
      async (call) => {
        const { record } = await once(call, { bodyBytesMax: 64 * 1024, timeoutMs: 30_000 });
        expect(record.errorKind).toBe("protocol");
      },
    );
  });

  it("cancelled: a user that ends under way is not heard, and its connections close", async () => {
    await against(
      () => undefined,
      async (call, server) => {
        const session = new TestSession();
        await call.prepare({ settings: session.settings, folder: "." });
        let heard = 0;
        call.bind(session, true, { callFinished: () => heard++ }).start(clock());
        await expect.poll(server.accepted).toBe(1);
        session.close();
        await expect.poll(server.open).toBe(0);
        expect(heard).toBe(0);
      },
    );
  });

  it("one byte at a time is as good as all at once", async () => {
    if (hostile.half === null) return;
    const bytes = hostile.half;
    await against(
      (socket) => {
        for (const byte of bytes) socket.write(Buffer.of(byte));
        socket.end();
      },
      async (call) => {
        expect((await once(call)).record).toMatchObject({
          errorKind: "reset",
          bytesIn: bytes.length,
        });
      },
    );
  });
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

/** Sessions with the same settings object: shared pools are found by it. */
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

export interface ScriptedServer {
  readonly port: number;
  /** Connections ever. */
  accepted(): number;
  /** Connections now. */
  open(): number;
  close(): Promise<void>;
}

async function listen(onSocket: (socket: net.Socket) => void): Promise<ScriptedServer> {
  const sockets = new Set<net.Socket>();
  let accepted = 0;
  const server = net.createServer((socket) => {
    accepted++;
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    // What nobody reads would never be known to have ended.
    socket.resume();
    onSocket(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    accepted: () => accepted,
    open: () => sockets.size,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
