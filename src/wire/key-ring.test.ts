import { describe, expect, it } from "vitest";
import { nodeAead } from "../host/node-aead.ts";
import { KeyRing, sessionKey } from "./key-ring.ts";

const SECRET = "kX9-old-Zq2w7-secret-mN4";

function ringOf(scope: string, secret = SECRET): KeyRing {
  const made = KeyRing.create(nodeAead, [secret], scope);
  if (!made.ok) throw new Error(made.problem);
  return made.ring;
}

describe("the key of a session", () => {
  const [one, other] = [Uint8Array.of(1, 2, 3), Uint8Array.of(1, 2, 4)];
  const keyOf = (ring: KeyRing, purpose: "datagram" | "stream", session: Uint8Array): string =>
    Buffer.from(sessionKey(ring, ring.current, purpose, session)).toString("hex");

  it("is another for every session, purpose, cluster and secret, and the same for the same (C20-31)", () => {
    const ring = ringOf("c1/test");
    const keys = [
      keyOf(ring, "datagram", one),
      keyOf(ring, "datagram", other),
      keyOf(ring, "stream", one),
      keyOf(ring, "stream", other),
      keyOf(ringOf("c2/test"), "datagram", one),
      keyOf(ringOf("c1/test", "fR3-new-Bv8y1-secret-pL6"), "datagram", one),
    ];
    expect(new Set(keys).size).toBe(keys.length);
    expect(keyOf(ringOf("c1/test"), "datagram", one)).toBe(keys[0]);
    for (const key of keys) expect(key).toHaveLength(64);
  });

  it("is not the secret, and nothing of the secret is in it (C20-31)", () => {
    const ring = ringOf("c1/test");
    const secret = Buffer.from(ring.current.secret).toString("hex");
    expect(secret).toContain(Buffer.from(SECRET).toString("hex"));
    expect(keyOf(ring, "stream", one)).not.toContain(secret.slice(0, 16));
  });
});
