import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Random } from "../core/base/random.ts";
import { checksumAead } from "./checksum-aead.ts";
import type { Claims } from "./claims.ts";
import type { Hello } from "./hello.ts";
import { KeyRing } from "./key-ring.ts";
import { type StreamEvent, StreamGuard } from "./stream-guard.ts";
import { CAPABILITIES, PROTOCOL } from "./version.ts";

const SECRET = "kX9-old-Zq2w7-secret-mN4";
const random = new Random("streams");
const ours: Hello = {
  cluster: "c1",
  environment: "test",
  versionMajor: PROTOCOL.major,
  versionMinor: PROTOCOL.minor,
  capabilities: CAPABILITIES,
  nodeVersion: "0.1.0",
  node: "n1",
  address: "10.0.0.1:7946",
  role: "worker",
  datacenter: "dc1",
};

function guard(
  side: "client" | "server",
  over: Partial<Hello> = {},
  claims: Claims | null = null,
  secrets = [SECRET],
): StreamGuard {
  const made = KeyRing.create(checksumAead, secrets, "unused");
  if (!made.ok) throw new Error(made.problem);
  return new StreamGuard({
    ring: made.ring,
    entropy: (count) => Uint8Array.from({ length: count }, () => random.below(256)),
    side,
    hello: { ...ours, ...over },
    claims,
  });
}

function greet(
  client: StreamGuard,
  server: StreamGuard,
): { s: StreamEvent; c: StreamEvent | null } {
  const s = server.push(client.greet());
  const reply = s.kind === "data" ? null : s.reply;
  return { s, c: reply === null ? null : client.push(reply) };
}

const problemOf = (event: StreamEvent | null): string =>
  event?.kind === "refused" ? event.problem : "";

/** A node that clients may call with a secret of their own. */
function openToClients(secret: string): StreamGuard {
  const made = KeyRing.create(checksumAead, [SECRET], "unused");
  const opened = made.ok ? made.ring.withClients(checksumAead, [secret]) : made;
  if (!opened.ok) throw new Error(opened.problem);
  const entropy = (count: number) => Uint8Array.from({ length: count }, () => random.below(256));
  const server = { ...ours, node: "n2", role: "manager" } as const;
  return new StreamGuard({
    ring: opened.ring,
    entropy,
    side: "server",
    hello: server,
    claims: null,
  });
}

describe("a client's credential", () => {
  const CLIENT = "client-credential-7Tz4Lq";

  it("is answered under its own key, and data flows both ways", () => {
    const client = guard("client", { role: "client" }, null, [CLIENT]);
    const server = openToClients(CLIENT);
    const { s, c } = greet(client, server);
    expect([s.kind, c?.kind]).toEqual(["ready", "ready"]);
    expect(server.push(client.seal(Uint8Array.of(1))).kind).toBe("data");
    expect(client.push(server.seal(Uint8Array.of(2))).kind).toBe("data");
  });

  it.each(["gate", "manager", "worker"] as const)("never speaks for a %s", (role) => {
    const { s, c } = greet(guard("client", { role }, null, [CLIENT]), openToClients(CLIENT));
    expect(problemOf(s)).toBe("a client's credential speaks for clients only");
    expect(problemOf(c)).toBe("a client's credential speaks for clients only");
  });

  it("cannot act as a server: it cannot even read the greeting of a node", () => {
    const impostor = guard("server", { role: "manager" }, null, [CLIENT]);
    expect(problemOf(impostor.push(guard("client").greet()))).toBe("a greeting under another key");
  });
});

describe("the stream guard", () => {
  it("lets data flow both ways after one greeting and one answer", () => {
    const client = guard("client");
    const server = guard("server", { node: "n2", role: "manager" });
    const { s, c } = greet(client, server);
    expect(s.kind).toBe("ready");
    expect(c?.kind === "ready" && c.peer.node).toBe("n2");
    const plain = Uint8Array.of(1, 2, 3);
    for (let i = 0; i < 3; i++) {
      expect(server.push(client.seal(plain))).toEqual({ kind: "data", plain });
      expect(client.push(server.seal(plain))).toEqual({ kind: "data", plain });
    }
  });

  // AD-28.5
  it("refuses politely: cluster first, then environment, then version, naming what was met", () => {
    const wrong = { cluster: "c2", environment: "prod", versionMajor: 9 };
    const all = greet(guard("client", wrong), guard("server"));
    expect(problemOf(all.c)).toBe('cluster "c2" met cluster "c1"');
    const env = greet(guard("client", { ...wrong, cluster: "c1" }), guard("server"));
    expect(problemOf(env.c)).toBe('environment "prod" met environment "test"');
    const version = greet(guard("client", { versionMajor: 2, versionMinor: 0 }), guard("server"));
    expect(problemOf(version.c)).toContain("protocol 2.0 is not spoken here");
  });

  it("talks to an older minor with the features both have (AD-25)", () => {
    const { c } = greet(guard("client", { versionMinor: 1 }), guard("server"));
    expect(c?.kind === "ready" && c.features).toEqual(["cancellation", "batched_stats"]);
  });

  it("receives version, features and software of its peer; the software decides nothing (AD-25.3)", () => {
    for (const nodeVersion of ["", "0.0.1", "99.0.0-next", "not a version"]) {
      const { s } = greet(guard("client", { nodeVersion }), guard("server"));
      if (s.kind !== "ready") throw new Error(problemOf(s));
      const { capabilities, versionMajor, versionMinor } = s.peer;
      expect([versionMajor, versionMinor]).toEqual([PROTOCOL.major, PROTOCOL.minor]);
      expect(capabilities).toEqual(CAPABILITIES);
      expect(s.peer.nodeVersion).toBe(nodeVersion);
      expect(s.features).toEqual(CAPABILITIES);
    }
  });

  it("refuses a greeting that contradicts the certificate", () => {
    const claims: Claims = {
      role: "worker",
      cluster: "c1",
      environment: "test",
      datacenter: "dc1",
    };
    expect(greet(guard("client"), guard("server", {}, claims)).s.kind).toBe("ready");
    const liar = greet(guard("client", { role: "manager" }), guard("server", {}, claims));
    expect(problemOf(liar.c)).toBe('role "manager" but the certificate says "worker"');
  });

  it("closes on a wrong key without an answer", () => {
    const { s, c } = greet(guard("client", {}, null, ["another-Secret-77-xyzzy"]), guard("server"));
    expect(problemOf(s)).toBe("a greeting under another key");
    expect(c).toBeNull();
  });

  it("gives a replayed conversation nothing but an answer to its greeting", () => {
    const client = guard("client");
    const first = guard("server");
    const greeting = client.greet();
    const answer = first.push(greeting);
    if (answer.kind !== "ready" || answer.reply === null) throw new Error("no answer");
    client.push(answer.reply);
    const request = client.seal(Uint8Array.of(9));
    expect(first.push(request).kind).toBe("data");

    const second = guard("server");
    expect(second.push(greeting).kind).toBe("ready");
    expect(problemOf(second.push(request))).toBe("a frame out of place");
  });

  it("ends on a repeated, reordered or changed frame", () => {
    fc.assert(
      fc.property(fc.constantFrom("repeat", "swap", "change"), fc.nat(), (fault, place) => {
        const client = guard("client");
        const server = guard("server");
        greet(client, server);
        const one = client.seal(Uint8Array.of(1));
        const two = client.seal(Uint8Array.of(2));
        if (fault === "change") {
          const at = place % one.length;
          one[at] = (one[at] ?? 0) ^ 1;
        }
        const frames = fault === "repeat" ? [one, one] : fault === "swap" ? [two, one] : [one, two];
        expect(frames.map((frame) => server.push(frame).kind)).toContain("refused");
        expect(server.push(client.seal(Uint8Array.of(3))).kind).toBe("refused");
      }),
    );
  });

  it("never throws on arbitrary frames", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 150 }), { maxLength: 4 }), (frames) => {
        const server = guard("server");
        for (const frame of frames) expect(server.push(frame).kind).toBe("refused");
      }),
    );
  });
});
