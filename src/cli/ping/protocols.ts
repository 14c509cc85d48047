/**
 * Addresses of other protocols than HTTP: `redis://…`. The protocol of the scheme makes its smallest call on a fresh
 * connection; its own measurement gives the phases.
 */

import { existsSync, readdirSync } from "node:fs";
import { createServer, isIP } from "node:net";
import {
  type CallResult,
  type CallSettings,
  DEFAULT_CALL_SETTINGS,
  type PreparedCall,
  type ProtocolPing,
  registeredProtocols,
  type Session,
  type SessionKey,
  type SessionState,
} from "../../protocols/protocol.ts";
import type { PingOutcome } from "./probe.ts";

/** Protocols are in folders, each with an entry point; built where this file is. */
const FOLDER = new URL("../../protocols/", import.meta.url);
const DOOR = import.meta.url.endsWith(".ts") ? "index.ts" : "index.js";
const WARM_UP_ROUNDS = 3;
const WARM_UP_MS_MAX = 200;

/** Undefined when no protocol has the scheme. Loads entry points until it is found. */
export async function protocolOf(scheme: string): Promise<ProtocolPing | undefined> {
  const find = (): ProtocolPing | undefined =>
    registeredProtocols().find(({ ping }) => ping?.schemes.includes(scheme))?.ping;
  const folders = readdirSync(FOLDER).sort(
    (a, b) => Number(scheme.startsWith(b)) - Number(scheme.startsWith(a)),
  );
  for (const folder of folders) {
    const door = new URL(`${folder}/${DOOR}`, FOLDER);
    if (existsSync(door)) await import(door.href);
    const found = find();
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Complete once `protocolOf` has loaded all entry points. */
export function knownSchemes(): readonly string[] {
  return registeredProtocols().flatMap(({ ping }) => ping?.schemes ?? []);
}

/** One fresh user, whose connections end with it. */
class PingUser implements Session {
  readonly user = 0;
  readonly settings: CallSettings;
  closed = false;
  readonly #states = new Map<SessionKey<SessionState>, SessionState>();

  constructor(settings: CallSettings) {
    this.settings = settings;
  }

  state<State extends SessionState>(key: SessionKey<State>): State {
    const known = this.#states.get(key) ?? key.create(this);
    this.#states.set(key, known);
    return known as State;
  }

  close(): void {
    this.closed = true;
    for (const state of this.#states.values()) state.close();
  }
}

export interface ProtocolProbe {
  readonly protocol: ProtocolPing;
  readonly url: URL;
  readonly timeoutMs: number;
  readonly insecure: boolean;
}

export async function probeProtocol(probe: ProtocolProbe): Promise<PingOutcome> {
  const { insecure, protocol, timeoutMs, url } = probe;
  const startedAt = performance.now();
  const call = protocol.call(url.href, { insecure });
  const origin = call.origin?.(DEFAULT_CALL_SETTINGS);
  await origin?.prepare().catch(() => undefined);
  const lookedUpAt = performance.now();
  const leftMs = Math.max(1, timeoutMs - (lookedUpAt - startedAt));
  const limits = { timeoutMs: leftMs, firstByteTimeoutMs: leftMs, connectTimeoutMs: leftMs };
  const user = new PingUser({ ...DEFAULT_CALL_SETTINGS, ...limits, insecure });
  const result = await perform(call, user);
  user.close();
  const named = isIP(url.hostname.replace(/^\[|\]$/g, "")) === 0;
  const dns = named && origin !== undefined ? lookedUpAt - startedAt : null;
  const place = origin?.nextAddress();
  const address = place?.host ?? url.hostname;
  return outcomeOf(result, { dns, address, port: place?.port ?? Number(url.port) });
}

function perform(call: PreparedCall, user: PingUser): Promise<CallResult> {
  return new Promise((resolve, reject) => {
    const callFinished = (_: unknown, result: CallResult | undefined): void => {
      if (result === undefined) reject(new Error("the call has no result"));
      else resolve(result);
    };
    call.bind(user, true, { callFinished }).start(performance.now());
  });
}

interface Place {
  readonly dns: number | null;
  readonly address: string;
  readonly port: number;
}

const NO_ANSWER = {
  dns: "dns",
  refused: "refused",
  reset: "reset",
  timeout: "timeout",
  tls: "tls",
  protocol: "protocol",
} as const;

const PHASES = { dns: "dns", refused: "connect", tls: "tls" } as const;

function outcomeOf(result: CallResult, { address, dns, port }: Place): PingOutcome {
  const { bytesIn, connectMs, durationMs, errorKind, firstByteAt, startedAt, tlsMs } = result;
  const kinds: Readonly<Record<string, (typeof NO_ANSWER)[keyof typeof NO_ANSWER]>> = NO_ANSWER;
  const totalMs = (dns ?? 0) + durationMs;
  const code = "errorCode" in result ? String(result.errorCode) : "";
  // An error reply is an answer: the server is alive.
  if (errorKind !== null && errorKind !== "application" && errorKind !== "status") {
    const phases: Readonly<Record<string, (typeof PHASES)[keyof typeof PHASES]>> = PHASES;
    return {
      ok: false,
      kind: kinds[errorKind] ?? "other",
      phase: phases[errorKind] ?? (connectMs < 0 ? "connect" : "first byte"),
      code,
      ...explained(result, `${address}:${port}`),
      totalMs,
    };
  }
  const loginMs = "loginMs" in result ? Number(result.loginMs) : -1;
  const openMs = Math.max(0, connectMs) + Math.max(0, tlsMs);
  return {
    ok: true,
    address,
    port,
    protocol: result.protocol,
    status: result.status,
    statusText: errorKind === null ? textOf(result) : (result.error ?? code),
    headers: {},
    headBytes: 0,
    bodyBytes: bytesIn,
    tls: null,
    phases: {
      dns,
      connect: Math.max(0, connectMs) - Math.max(0, loginMs),
      tls: tlsMs < 0 ? null : tlsMs,
      ...(loginMs < 0 ? {} : { login: loginMs }),
      firstByte: firstByteAt - startedAt - openMs,
      body: result.endedAt - firstByteAt,
    },
    totalMs,
  };
}

function explained(result: CallResult, place: string): { message: string; hint: string } {
  if (result.errorKind !== "refused") return { message: result.error ?? "", hint: "" };
  const hint = "Is the server started, and is the port right?";
  return { message: `nothing listens on ${place}`, hint };
}

function textOf(result: CallResult): string {
  return "text" in result && typeof result.text === "function" ? String(result.text()) : "";
}

/**
 * Loads what the protocol needs, and throws the line to install it with where it is missing. The first call of a
 * process pays for compiling: one to an echo server on loopback pays it instead.
 */
export async function warmUpProtocol(protocol: ProtocolPing, target: URL): Promise<void> {
  const local = new URL(target);
  // No host is resolved here: that is measured.
  local.hostname = "127.0.0.1";
  const settings = DEFAULT_CALL_SETTINGS;
  await protocol.call(local.href, { insecure: true }).prepare({ settings, folder: process.cwd() });
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.pipe(socket);
  });
  const listening = new Promise<number | null>((resolve) => {
    server.once("error", () => resolve(null));
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : null);
    });
  });
  const port = await listening;
  if (port === null) return;
  const url = new URL(target);
  url.host = `localhost:${port}`;
  const probe = { protocol, url, timeoutMs: WARM_UP_MS_MAX, insecure: true };
  for (let round = 0; round < WARM_UP_ROUNDS; round++) await probeProtocol(probe);
  server.close();
}
