import { describe, expect, it } from "vitest";
import { mayConnect, readClaims } from "./claims.ts";
import { CAPABILITIES, negotiate, parseVersion, supports } from "./version.ts";

const at = (text: string) => ({
  version: parseVersion(text) ?? { major: 0, minor: 0 },
  capabilities: CAPABILITIES,
});

describe("versions", () => {
  it.each([
    ["1.0", "1.2", ["cancellation"]],
    ["1.1", "1.2", ["cancellation", "batched_stats"]],
    ["1.2", "1.0", ["cancellation"]],
    ["1.9", "1.1", ["cancellation", "batched_stats"]],
  ])("%s and %s share %j", (ours, theirs, features) => {
    expect(negotiate(at(ours), at(theirs))).toMatchObject({ ok: true, features });
  });

  // AD-25.5
  it("of another major are refused, and a capability both lack is not used (AD-25)", () => {
    expect(negotiate(at("1.2"), at("2.0"))).toMatchObject({ ok: false });
    const silent = { ...at("1.2"), capabilities: ["cancellation", "time_travel"] };
    expect(negotiate(at("1.2"), silent)).toMatchObject({ features: ["cancellation"] });
    expect(supports({ major: 1, minor: 9 }, "time_travel")).toBe(false);
    expect(supports({ major: 1, minor: 9 }, "constructor")).toBe(false);
  });

  it("are two numbers and nothing else", () => {
    for (const text of ["", "1", "1.2.3", "1.x", " 1.2", "99999.1"])
      expect(parseVersion(text)).toBeNull();
  });
});

describe("certificate claims", () => {
  const good = ["role/worker", "cluster/c1", "env/prod", "dc/eu-1"].map((c) => `hyperscale://${c}`);

  it("are read when complete and single, beside foreign names (AD-28.7)", () => {
    expect(readClaims([...good, "spiffe://x/y"])).toEqual({
      ok: true,
      claims: { role: "worker", cluster: "c1", environment: "prod", datacenter: "eu-1" },
    });
  });

  it("are refused when missing, doubled, unreadable or of an unknown role (AD-28.10)", () => {
    expect(readClaims(good.slice(1))).toMatchObject({ problem: expect.stringContaining("role") });
    expect(readClaims([...good, "hyperscale://dc/eu-2"])).toMatchObject({ ok: false });
    expect(readClaims([...good, "hyperscale://dc/a/b"])).toMatchObject({ ok: false });
    expect(readClaims(["hyperscale://role/king", ...good.slice(1)])).toMatchObject({ ok: false });
  });

  it("decide which role may open a stream to which, and a rejected peer learns it (AD-28.8, AD-28.9, C10-26)", () => {
    const roles = ["client", "gate", "manager", "worker"] as const;
    const allowed = roles.flatMap((from) =>
      roles.filter((to) => mayConnect(from, to) === null).map((to) => `${from}>${to}`),
    );
    expect(allowed).toEqual([
      "client>gate",
      "gate>client",
      "gate>gate",
      "gate>manager",
      "manager>client",
      "manager>gate",
      "manager>manager",
      "manager>worker",
      "worker>manager",
    ]);
    for (const from of roles)
      for (const to of roles)
        if (!allowed.includes(`${from}>${to}`))
          expect(mayConnect(from, to)).toBe(
            `Connection denied: role '${from}' cannot connect to '${to}'`,
          );
  });
});
