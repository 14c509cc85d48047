/** A member process by itself: its requests to the driver, and their order. */

import { describe, expect, it } from "vitest";
import { checksumAead } from "../../../wire/checksum-aead.ts";
import { PROBE_ANSWER } from "../../../wire/frame.ts";
import { KeyRing } from "../../../wire/key-ring.ts";
import { PROTOCOL } from "../../../wire/version.ts";
import { millis } from "../../base/brand.ts";
import { address, nodeId } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import { ELECTION_PROFILES } from "../../membership/election/config.ts";
import { SWIM_PROFILES } from "../../membership/swim/config.ts";
import { MemberProcess } from "./member-process.ts";
import type { MemberEffect, MemberInput, MemberOptions } from "./member-types.ts";

const WALL = 1_700_000_000_000;
const BY = { kind: "operator", name: "test" } as const;

function ring(...secrets: string[]): KeyRing {
  const made = KeyRing.create(checksumAead, secrets, "test/test");
  if (!made.ok) throw new Error(made.problem);
  return made.ring;
}

/** A process on a working disk; records all effects. */
class Member {
  readonly process: MemberProcess;
  readonly done: MemberEffect[] = [];
  readonly #regions = new Map<string, Uint8Array>();
  now = 0;

  constructor(over: Partial<MemberOptions> = {}) {
    const entropy = new Random("entropy");
    this.process = new MemberProcess(
      {
        self: {
          id: nodeId("a"),
          address: address("10.0.0.1:7946"),
          role: "manager",
          datacenter: "dc1",
          versionMajor: 1,
          versionMinor: 0,
          meta: new Uint8Array(0),
        },
        hello: {
          ...{ cluster: "test", environment: "test", node: "a", address: "10.0.0.1:7946" },
          ...{ role: "manager", datacenter: "dc1", nodeVersion: "" },
          versionMajor: PROTOCOL.major,
          versionMinor: PROTOCOL.minor,
          capabilities: [],
        },
        swim: SWIM_PROFILES.dc,
        electorate: { voters: [nodeId("a")], config: ELECTION_PROFILES.dc, priority: 0 },
        discovery: { seeds: [], names: [], formerPeers: [] },
        ring: ring("a-Secret-of-this-test-1"),
        ...over,
      },
      {
        random: new Random("member"),
        entropy: (count) => Uint8Array.from({ length: count }, () => entropy.below(256)),
        compressor: { deflate: (bytes) => bytes, inflate: () => null },
      },
    );
  }

  push(input: MemberInput): readonly MemberEffect[] {
    const effects = this.process.step(input, millis(this.now), WALL + this.now);
    this.done.push(...effects);
    for (const effect of effects) this.#answer(effect);
    return effects;
  }

  runUntil(now: number): void {
    for (let steps = 0; ; steps++) {
      const due = this.process.nextDeadline();
      if (due === null || due > now) break;
      if (steps > 10_000) throw new Error("it never rests");
      this.now = Math.max(this.now, due);
      this.push({ kind: "tick" });
    }
    this.now = now;
  }

  kinds(): string[] {
    return this.done.map((effect) => (effect.kind === "log" ? effect.event : effect.kind));
  }

  #answer(effect: MemberEffect): void {
    if (effect.kind === "readRegion") {
      const { region } = effect;
      const bytes = this.#regions.get(region) ?? null;
      this.push({ kind: "region", region, result: { kind: "contents", region: bytes } });
    } else if (effect.kind === "writeRegion") {
      const { region, at, bytes } = effect;
      const held = this.#regions.get(region) ?? new Uint8Array(0);
      const grown = new Uint8Array(Math.max(held.length, at + bytes.length));
      grown.set(held);
      grown.set(bytes, at);
      this.#regions.set(region, grown);
      this.push({ kind: "region", region, result: { kind: "written" } });
    } else if (effect.kind === "syncRegion") {
      this.push({ kind: "region", region: effect.region, result: { kind: "synced" } });
    }
  }
}

function started(over: Partial<MemberOptions> = {}): Member {
  const member = new Member(over);
  member.push({ kind: "start" });
  return member;
}

describe("a member process", () => {
  it("reads all its records before it contacts any peer", () => {
    const member = new Member({
      discovery: { seeds: [address("10.0.0.2:7946")], names: [], formerPeers: [] },
    });
    const first = member.process.step({ kind: "start" }, millis(0), WALL);
    expect(first).toEqual([{ kind: "readRegion", region: "swim" }]);
    const bytes = new Uint8Array(64);
    const source = address("10.0.0.2:7946");
    expect(member.push({ kind: "datagram", source, bytes })).toEqual([]);
    expect(member.process.swim).toBeNull();
    const contents = { kind: "contents", region: null } as const;
    const second = member.process.step(
      { kind: "region", region: "swim", result: contents },
      millis(0),
      WALL,
    );
    expect(second).toEqual([{ kind: "readRegion", region: "vote" }]);
    const third = member.process.step(
      { kind: "region", region: "vote", result: contents },
      millis(0),
      WALL,
    );
    expect(third[0]).toEqual({ kind: "started" });
  });

  it("terminates at a record that it cannot use, and does nothing more", () => {
    const member = new Member();
    member.process.step({ kind: "start" }, millis(0), WALL);
    const result = { kind: "contents", region: new Uint8Array(2_000).fill(1) } as const;
    const effects = member.push({ kind: "region", region: "swim", result });
    expect(effects).toEqual([
      { kind: "unusable", region: "swim", detail: "both copies are damaged" },
    ]);
    expect(member.push({ kind: "tick" })).toEqual([]);
    expect(member.process.nextDeadline()).toBeNull();
  });

  it("is its own leader when it votes alone, and reports it to log, audit and events", () => {
    const member = started();
    member.runUntil(10_000);
    expect(member.process.election?.state).toBe("leader");
    const events = member.done.filter((effect) => effect.kind === "event");
    expect(events.at(-1)?.event).toMatchObject({ event: "leader-change", member: "a", term: 1 });
    expect(member.kinds()).toContain("election.leading");
    expect(member.done.some(({ kind, ...rest }) => kind === "audit" && "entry" in rest)).toBe(true);
  });

  it("leaves once, in bounded time, and is idle afterwards", () => {
    const member = started();
    // The process was suspended: its health fell, and the pending report must not keep a leaving member awake.
    member.now = 600;
    member.push({ kind: "tick" });
    expect(member.process.swim?.healthScore).toBeGreaterThan(0);
    member.push({ kind: "leave", requester: BY });
    member.push({ kind: "leave", requester: BY });
    member.runUntil(30_000);
    expect(member.kinds().filter((kind) => kind === "left")).toHaveLength(1);
    expect(member.process.election?.state).toBe("follower");
  });

  it("opens and seals with a rotated key without a restart", () => {
    const [old, fresh] = ["a-Secret-of-this-test-1", "a-Secret-of-this-test-2"];
    const member = started();
    const id = member.process.ring.current.id;
    member.push({ kind: "setKeys", ring: ring(old, fresh), requester: BY });
    expect(member.process.ring.current.id).toBe(id);
    member.push({ kind: "setKeys", ring: ring(fresh, old), requester: BY });
    expect(member.process.ring.current.id).not.toBe(id);
    expect(member.kinds().filter((kind) => kind === "keys.reloaded")).toHaveLength(2);
  });

  it("resolves names, probes their addresses, and joins the first that answers", () => {
    const discovery = { seeds: [], names: ["members.test"], formerPeers: [] };
    const member = started({ discovery });
    expect(member.kinds()).toContain("resolve");
    const addresses = [address("10.0.0.2:7946"), address("10.0.0.3:7946")];
    member.push({ kind: "resolved", name: "members.test", addresses, ttlMs: null });
    member.runUntil(200);
    const dials = member.done.filter((effect) => effect.kind === "dial");
    expect(dials.map(({ to }) => to).sort()).toEqual([...addresses].sort());
    const [first, second] = dials;
    if (first === undefined || second === undefined) throw new Error("two are probed");
    const facts = { host: "10.0.0.2", peerUris: null };
    for (const { stream } of dials) member.push({ kind: "opened", stream, facts });
    const { stream } = first;
    member.push({ kind: "bytes", stream, bytes: PROBE_ANSWER.slice(0, 2) });
    member.push({ kind: "bytes", stream, bytes: PROBE_ANSWER.slice(2) });
    member.runUntil(400);
    expect(member.done.filter((effect) => effect.kind === "dial").at(-1)?.to).toBe(first.to);
    // Ignores an answer to a cancelled probe.
    const dialled = member.kinds().filter((kind) => kind === "dial").length;
    member.push({ kind: "bytes", stream: second.stream, bytes: PROBE_ANSWER });
    expect(member.kinds().filter((kind) => kind === "dial")).toHaveLength(dialled);
  });
});

describe("BP-1, BP-6: a member whose own loop is late", () => {
  /** Fires every timer this late for a while. */
  function late(member: Member, lateMs: number, times: number): void {
    for (let one = 0; one < times; one++) {
      const due = member.process.nextDeadline() ?? 0;
      member.now = Math.max(member.now, due) + lateMs;
      member.push({ kind: "tick" });
    }
  }

  function changes(member: Member): unknown[] {
    return member.done.flatMap((effect) =>
      effect.kind === "log" && effect.event === "degradation.changed"
        ? [[effect.level, effect.fields["from"], effect.fields["to"]]]
        : [],
    );
  }

  it("steps down, reports it, and leads again once healthy", () => {
    // Health of membership plays no role here: there is no peer to probe.
    const member = started({ swim: { ...SWIM_PROFILES.dc, lifeguard: false } });
    member.runUntil(20_000);
    expect(member.process.election?.state).toBe("leader");
    late(member, 3_000, 8);
    expect(member.process.restraint.view().level).toBe("critical");
    expect(member.process.election?.state).not.toBe("leader");
    expect(changes(member)[0]).toEqual(["warn", "normal", "critical"]);
    member.runUntil(member.now + 120_000);
    expect(changes(member).at(-1)).toMatchObject(["info", expect.anything(), "normal"]);
    expect(member.process.restraint.view()).toMatchObject({
      level: "normal",
      entered: { critical: 1, normal: 1 },
    });
    expect(member.process.election?.state).toBe("leader");
  });
});
