import { afterEach, describe, expect, it, vi } from "vitest";
import { credentialOf, headerText, operatorHeaders, requesterOf } from "./requester.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

const socket = { remoteAddress: "127.0.0.1", remotePort: 5123 };

describe("the requester of a request", () => {
  it("has the name given by the client, its credential, and its address", () => {
    const headers = { "x-hyperscale-operator": "alice" };
    expect(requesterOf({ headers, socket }, credentialOf(null))).toEqual({
      kind: "operator",
      name: "alice",
      credential: "loopback",
      address: "127.0.0.1:5123",
    });
  });

  it("has the fingerprint of the token, which identifies tokens and reveals none", () => {
    const [one, other] = ["0123456789abcdef", "0123456789abcdeg"].map(credentialOf);
    expect(one).toMatch(/^token:[0-9a-f]{8}$/);
    expect(other).not.toBe(one);
    expect(one).not.toContain("01234567");
  });

  it("is bounded, and may be empty", () => {
    const headers = { "x-hyperscale-operator": "a".repeat(10_000) };
    const at = { remoteAddress: "::1", remotePort: 7 };
    const { name, address } = requesterOf({ headers, socket: at }, "loopback");
    expect([name.length, address]).toEqual([128, "[::1]:7"]);
    expect(requesterOf({ headers: {}, socket: {} }, "")).toMatchObject({ name: "", address: "" });
  });

  it("is sent by our own commands with characters a header may contain", () => {
    expect(headerText("Zoë\r\nx: y")).toBe("Zo???x: y");
    vi.stubEnv("HYPERSCALE_OPERATOR", "on-call");
    expect(operatorHeaders()).toEqual({ "x-hyperscale-operator": "on-call" });
    vi.stubEnv("HYPERSCALE_OPERATOR", "");
    expect(operatorHeaders()).toEqual({});
  });
});
