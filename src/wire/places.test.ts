import { describe, expect, it } from "vitest";
import { hostKey } from "./address.ts";
import { type Place, Places } from "./places.ts";

const limits = { total: 100, perHost: 10, forMembers: 40 };

function fill(places: Places, hosts: readonly string[], each: number): Place[] {
  return hosts.flatMap((host) =>
    Array.from({ length: each }, () => places.take(host)).filter((place) => place !== null),
  );
}

describe("places for connections", () => {
  it("are bounded per host, and come back when they are given back", () => {
    const places = new Places(limits, () => false);
    const held = fill(places, ["10.0.0.1"], 50);
    expect([held.length, places.refused]).toEqual([10, 40]);
    held[0]?.release();
    expect(places.take("10.0.0.1")).not.toBeNull();
    expect(places.take("10.0.0.1")).toBeNull();
  });

  it("keep some for members, however many hosts strangers have", () => {
    const places = new Places(limits, (host) => host === "10.9.9.9");
    const strangers = Array.from({ length: 200 }, (_, i) => `10.0.1.${i}`);
    expect(fill(places, strangers, 10)).toHaveLength(60);
    expect(fill(places, ["10.9.9.9"], 20)).toHaveLength(10);
    expect(places.open).toBe(70);
  });

  it("count one site of IPv6 as one host: a stranger there has 2^64 addresses", () => {
    const places = new Places(limits, () => false);
    const site = Array.from({ length: 30 }, (_, i) => `2001:db8:0:1::${i.toString(16)}`);
    expect(fill(places, site, 1)).toHaveLength(10);
    expect(places.take("2001:db8:0:2::1")).not.toBeNull();
  });

  it.each([
    ["10.0.0.1", "10.0.0.1"],
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["2001:db8:0:1:2:3:4:5", "2001:db8:0:1"],
    ["2001:DB8::7", "2001:db8:0:0"],
    ["::1", "0:0:0:0"],
    ["fe80::1%eth0", "fe80:0:0:0"],
  ])("%s counts as %s", (host, key) => {
    expect(hostKey(host)).toBe(key);
  });
});
