import { describe, expect, it } from "vitest";
import { hostKey } from "./address.ts";
import { type Place, Places } from "./places.ts";

const limits = { total: 100, perHost: 10, forMembers: 40 };

const silent = (): void => {};

/** A connection whose peer has the key. */
function greeted(places: Places, host: string): Place | null {
  const place = places.take(host, silent);
  place?.prove();
  return place;
}

function fill(places: Places, hosts: readonly string[], each: number): Place[] {
  return hosts.flatMap((host) =>
    Array.from({ length: each }, () => greeted(places, host)).filter((place) => place !== null),
  );
}

describe("places for connections", () => {
  it("are bounded per host, and come back when they are given back", () => {
    const places = new Places(limits, () => false);
    const held = fill(places, ["10.0.0.1"], 50);
    expect([held.length, places.refused]).toEqual([10, 40]);
    held[0]?.release();
    expect(greeted(places, "10.0.0.1")).not.toBeNull();
    expect(greeted(places, "10.0.0.1")).toBeNull();
  });

  it("keep some for members, however many hosts strangers have", () => {
    const places = new Places(limits, (host) => host === "10.9.9.9");
    const strangers = Array.from({ length: 200 }, (_, i) => `10.0.1.${i}`);
    expect(fill(places, strangers, 10)).toHaveLength(60);
    expect(fill(places, ["10.9.9.9"], 20)).toHaveLength(10);
    expect(places.open).toBe(70);
  });

  it("are taken from the oldest silent connection, never from one that has greeted", () => {
    const places = new Places(limits, () => false);
    const closed: number[] = [];
    const member = greeted(places, "10.0.0.1");
    for (let i = 0; i < 12; i++) places.take("10.0.0.1", () => closed.push(i));
    expect(closed).toEqual([0, 1, 2]);
    expect([places.open, places.refused]).toEqual([10, 3]);
    // The evicted connection closes now, which changes nothing; then the member's does.
    member?.release();
    member?.release();
    expect(places.open).toBe(9);
  });

  it("count one site of IPv6 as one host: a stranger there has 2^64 addresses", () => {
    const places = new Places(limits, () => false);
    const site = Array.from({ length: 30 }, (_, i) => `2001:db8:0:1::${i.toString(16)}`);
    expect(fill(places, site, 1)).toHaveLength(10);
    expect(greeted(places, "2001:db8:0:2::1")).not.toBeNull();
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
