/** Exchanges over real sockets on the loopback, plain and with mutual TLS. */

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { freshNet } from "../../../bench/swim/agents.ts";
import { needs } from "../../../test/needs.ts";
import { Asker } from "../../../test/processes/cluster/asker.ts";
import { Authority, hasOpenssl, NO_OPENSSL } from "../../../test/processes/cluster/certificates.ts";
import { address } from "../../core/base/ids.ts";
import type { ExchangeResult } from "../../core/cluster/link/exchanges.ts";
import { nodeAead } from "../../host/node-aead.ts";
import { readTlsMaterial, type TlsMaterial } from "../../host/tls.ts";
import { Admission } from "../../wire/admission.ts";
import type { PeerRole } from "../../wire/claims.ts";
import type { Hello } from "../../wire/hello.ts";
import { KeyRing } from "../../wire/key-ring.ts";
import type { StreamEnvelope } from "../../wire/registry.ts";

const SECRET = "streams-under-Test-7c2f9e";
const TIMEOUT_MS = 60_000;
const closers: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const NET = freshNet();
let places = 0;

async function open(
  role: PeerRole,
  over: {
    readonly hello?: Partial<Hello>;
    readonly secrets?: readonly string[];
    readonly tls?: TlsMaterial;
    readonly admission?: Admission;
    readonly reply?: StreamEnvelope;
  } = {},
): Promise<Asker> {
  const made = KeyRing.create(nodeAead, over.secrets ?? [SECRET], "");
  if (!made.ok) throw new Error(made.problem);
  const host = `127.${NET}.${++places}`;
  const asker = await Asker.open({ ...over, host, role, ring: made.ring });
  closers.push(() => asker.close());
  return asker;
}

const opened: StreamEnvelope = { name: "ledgerOpened", correlation: 0, value: { node: "n1" } };

function exchange(
  from: Asker,
  to: Pick<Asker, "at">,
  value = new Uint8Array(10),
): Promise<ExchangeResult> {
  return from.ask(to.at, { name: "ledgerBatch", correlation: 0, value }, TIMEOUT_MS);
}

describe("exchanges", () => {
  it("carry a request and its reply, small, large and compressible", async () => {
    const server = await open("gate", { reply: opened });
    const client = await open("gate");
    for (const payload of [
      randomBytes(10),
      randomBytes(3_000_000),
      Buffer.alloc(2_000_000, "ab"),
    ]) {
      const result = await exchange(client, server, payload);
      expect(result.ok && result.reply.name).toBe("ledgerOpened");
      const got = server.requests.at(-1)?.message.value as Uint8Array;
      expect(Buffer.compare(got, payload)).toBe(0);
    }
    expect(server.problems).toEqual([]);
  });

  it("report why the caller was rejected: another cluster, another key, no listener", async () => {
    const server = await open("gate");
    const stranger = await open("gate", { hello: { cluster: "c2" } });
    expect(await exchange(stranger, server)).toMatchObject({
      ok: false,
      problem: 'cluster "c2" met cluster "c1"',
    });
    const thief = await open("gate", { secrets: ["quite-Another-secret-0815"] });
    expect(await exchange(thief, server)).toMatchObject({
      ok: false,
      refused: false,
      problem: expect.stringContaining("another secret, cluster or environment"),
    });
    expect(server.problems).toContain("a greeting under another key");
    const nobody = { at: address(`127.${NET}.250:7946`) };
    expect(await exchange(thief, nobody)).toMatchObject({ ok: false, refused: true });
    expect(server.requests).toEqual([]);
  });

  it("refuse a message that the peer's role may not send", async () => {
    const server = await open("worker");
    const other = await open("worker");
    const result = await exchange(other, server);
    expect(result.ok && result.reply.value).toMatchObject({
      code: "ROLE",
      text: "Connection denied: role 'worker' cannot connect to 'worker'",
    });
    expect(server.requests).toEqual([]);
  });

  it("refuse work beyond the limit with a time to come again, and take it after an end", async () => {
    const admission = new Admission({ global: 0, high: 1, normal: 1, low: 1 });
    const server = await open("gate", { admission });
    const client = await open("gate");
    const first = exchange(client, server);
    while (server.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const second = await exchange(client, server);
    expect(second.ok && second.reply.value).toMatchObject({ code: "BUSY", retryAfterMs: 1_000 });
    server.answer(server.requests[0]?.number ?? 0, opened);
    expect((await first).ok).toBe(true);
    expect(admission.stats("high").inFlight).toBe(0);
  });
});

/** Certificates of an authority of their own. */
function authority(): (role: string, cluster?: string) => TlsMaterial {
  const directory = mkdtempSync(join(tmpdir(), "hyperscale-tls-"));
  closers.push(() => rmSync(directory, { recursive: true, force: true }));
  const signer = new Authority(directory);
  return (role, cluster = "c1") =>
    readTlsMaterial({ ...signer.sign(role, cluster, "test"), verifyHostname: false });
}

describe("exchanges with mutual TLS", needs(hasOpenssl, NO_OPENSSL), () => {
  it("take roles from certificates, and refuse who claims another one or was signed by a stranger", async () => {
    const sign = authority();
    const server = await open("gate", { tls: sign("gate"), reply: opened });
    const client = await open("gate", { tls: sign("gate") });
    expect((await exchange(client, server)).ok).toBe(true);

    const liar = await open("gate", { tls: sign("worker") });
    expect(await exchange(liar, server)).toMatchObject({
      ok: false,
      problem: 'role "gate" but the certificate says "worker"',
    });
    const elsewhere = await open("gate", { tls: sign("gate", "c2") });
    expect(await exchange(elsewhere, server)).toMatchObject({ ok: false });
    const stranger = await open("gate", { tls: authority()("gate") });
    expect((await exchange(stranger, server)).ok).toBe(false);
    const plain = await open("gate");
    expect((await exchange(plain, server)).ok).toBe(false);
    expect(server.requests).toHaveLength(1);
  });
});
