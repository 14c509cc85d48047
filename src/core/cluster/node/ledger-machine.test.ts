import { describe, expect, it } from "vitest";
import { checksumAead } from "../../../wire/checksum-aead.ts";
import type { Hello } from "../../../wire/hello.ts";
import { KeyRing } from "../../../wire/key-ring.ts";
import { MESSAGES, type MessageName, type StreamEnvelope } from "../../../wire/registry.ts";
import { bool, counter, decode, encode, optional, required, struct } from "../../../wire/schema.ts";
import { generate } from "../../../wire/testing/generate.ts";
import { CAPABILITIES, PROTOCOL } from "../../../wire/version.ts";
import { millis } from "../../base/brand.ts";
import { address, type NodeId, nodeId } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import type { EventId, JobEvent } from "../../ledger/job/events.ts";
import type { JobId } from "../../ledger/job/job-id.ts";
import { walConfig } from "../../ledger/log/limits.ts";
import { MemoryFiles } from "../../ledger/log/testing/memory-files.ts";
import { LEDGER_NODE_DEFAULTS, LEDGER_RULES } from "../../ledger/node/config.ts";
import type { LedgerAnswer, LedgerRequest } from "../../ledger/node/messages.ts";
import { event, read } from "../../ledger/node/testing/requests.ts";
import { Connection } from "../link/connection.ts";
import { QUEUE_LIMITS } from "../link/limits.ts";
import { LINK_RULES } from "../link/rules.ts";
import { Pipes } from "../link/testing/pipes.ts";
import type { StreamId } from "../link/types.ts";
import { describeLedger } from "./describe-ledger.ts";
import { LedgerMachine } from "./ledger-machine.ts";
import { PROCESS_RULES } from "./rules.ts";
import type { ProcessEffect, ProcessInput } from "./types.ts";

const SECRET = "gh7Kq2-vT9xLw4Zm";
const NAMES = ["n0", "n1", "n2"];
const STEP_MS = 20;
const WALL = 1_700_000_000_000;

const made = KeyRing.create(checksumAead, [SECRET], "test");
if (!made.ok) throw new Error(made.problem);
const { ring } = made;

function helloOf(node: string, datacenter: string): Hello {
  return {
    ...{ cluster: "c", environment: "e", nodeVersion: "0", datacenter },
    ...{ versionMajor: PROTOCOL.major, versionMinor: PROTOCOL.minor },
    capabilities: CAPABILITIES.filter((one) => one !== "compression"),
    ...{ node, address: `${node}:1`, role: "gate" },
  };
}

function entropyOf(random: Random): (count: number) => Uint8Array {
  return (count) => Uint8Array.from({ length: count }, () => random.below(256));
}

/** Three nodes over byte streams, on disks that are durable at once unless configured otherwise. */
class Ledger {
  readonly pipes = new Pipes();
  readonly machines: LedgerMachine[];
  readonly answers: LedgerAnswer[] = [];
  readonly events: string[][] = NAMES.map(() => []);
  readonly files = NAMES.map(() => new MemoryFiles());
  readonly #regions: (of: number) => readonly string[];
  readonly #sides: ReturnType<Pipes["add"]>[] = [];
  readonly #random = new Random("ledger");
  now = millis(1_000);
  wallShiftMs = 0;
  /** Overrides for single nodes. */
  readonly clockErrorMs = NAMES.map(() => 0);
  /** Overrides for processes started from now on. */
  recoveredAheadMsMax = LEDGER_NODE_DEFAULTS.recoveredAheadMsMax;
  slowDisk = false;

  /** `regions`: where each node locates the others. */
  constructor(regions: (of: number) => readonly string[] = () => ["r0", "r1", "r2"]) {
    this.#regions = regions;
    this.machines = NAMES.map((_, index) => this.#machine(index, regions(index)));
    this.machines.forEach((_, index) => {
      this.#sides.push(this.pipes.add(`${NAMES[index]}:1`, (input) => this.take(index, input)));
    });
  }

  #machine(index: number, regions: readonly string[]): LedgerMachine {
    const sites = NAMES.map((node, i) => ({ node: nodeId(node), region: regions[i] ?? "" }));
    const random = this.#random.fork(`${index}`);
    const self = nodeId(NAMES[index] ?? "");
    const { recoveredAheadMsMax } = this;
    const config = { ...LEDGER_NODE_DEFAULTS, recoveredAheadMsMax };
    const peers = sites
      .filter(({ node }) => node !== self)
      .map(({ node: name, region }) => ({ name, region, address: address(`${name}:1`) }));
    return new LedgerMachine(
      {
        node: { self, sites, config, boot: "b", rules: LEDGER_RULES, shards: [1] },
        peers: {
          hello: helloOf(self, regions[index] ?? ""),
          ledger: describeLedger(sites, config),
          ...{ peers, ring, limits: QUEUE_LIMITS },
          entropy: entropyOf(random.fork("entropy")),
          compressor: { deflate: (bytes) => bytes, inflate: () => null },
          rules: { link: LINK_RULES, peers: PROCESS_RULES },
        },
        store: {
          identity: `${index}`.padStart(16, "0"),
          log: {
            ...walConfig({ segmentBytes: 65_536, chunkBytes: 4_096, chunkCount: 2 }),
            fullDisk: "wait",
          },
          checkpoint: { intervalEntries: 1_000_000, intervalMs: 1e9, keptMax: 2 },
          archiveKeepMs: 1e9,
        },
      },
      random,
    );
  }

  take(index: number, input: ProcessInput): void {
    this.#take(index, input);
    this.#flush(index);
  }

  #take(index: number, input: ProcessInput): void {
    const errorMs = this.wallShiftMs + (this.clockErrorMs[index] ?? 0);
    this.machines[index]?.take(input, this.now, WALL + this.now + errorMs);
  }

  /** Kills the process and restarts it on its disk. */
  restart(index: number): void {
    this.pipes.breakAll();
    this.events[index] = [];
    this.machines[index] = this.#machine(index, this.#regions(index));
    this.take(index, { kind: "open", first: null, identity: `disk ${index}` });
  }

  /** Kills the process. */
  stop(index: number): void {
    this.pipes.breakAll();
    this.machines[index] = this.#machine(index, this.#regions(index));
  }

  open(): this {
    this.machines.forEach((_, index) => {
      this.take(index, { kind: "open", first: "found", identity: `disk ${index}` });
    });
    return this.pass(500);
  }

  ask(index: number, request: LedgerRequest): LedgerAnswer | undefined {
    const { length } = this.answers;
    this.take(index, { kind: "request", token: 1, request });
    for (let i = 0; i < 500 && this.answers.length === length; i++) this.pass(STEP_MS);
    return this.answers[length];
  }

  pass(ms: number): this {
    for (const until = this.now + ms; this.now < until; ) {
      this.now = millis(this.now + STEP_MS);
      this.machines.forEach((machine, index) => {
        if ((machine.nextDeadline() ?? Number.POSITIVE_INFINITY) <= this.now) {
          this.take(index, { kind: "tick" });
        }
      });
      this.pipes.settle();
    }
    return this;
  }

  #flush(index: number): void {
    for (;;) {
      if (this.machines[index]?.wantsTurn === true) this.#take(index, { kind: "turn" });
      const effects = this.machines[index]?.flush() ?? [];
      if (effects.length === 0) return;
      for (const effect of effects) this.#run(index, effect);
    }
  }

  #run(index: number, effect: ProcessEffect): void {
    const side = this.#sides[index];
    switch (effect.kind) {
      case "dial":
      case "write":
      case "prove":
      case "end":
      case "destroy":
        if (side !== undefined) this.pipes.run(side, effect);
        return;
      case "file": {
        const result = this.files[index]?.perform(effect.operation);
        if (this.slowDisk || result === undefined) return;
        this.#take(index, { kind: "done", id: effect.id, result });
        return;
      }
      case "recovered":
        this.#take(index, { kind: "start" });
        return;
      case "firstStart":
        this.#take(index, { kind: "founded" });
        return;
      case "answer":
        this.answers.push(effect.answer);
        return;
      case "log":
        this.events[index]?.push(`${effect.event} ${Object.values(effect.fields).join(" ")}`);
        return;
      case "peerHealth":
        this.events[index]?.push(`peerHealth ${effect.peer} ${effect.health.pressure}`);
        return;
      case "callerGone":
        this.events[index]?.push(
          `callerGone ${effect.byPeer ? "by itself" : "for another reason"}`,
        );
        return;
      case "left":
        this.events[index]?.push(`left ${effect.leading}`);
        return;
      default:
        this.events[index]?.push(effect.kind);
    }
  }
}

const NO_HLC: JobEvent["hlc"] = { wallMs: 0, logical: 0, node: nodeId("client") };
const submit: LedgerRequest = {
  kind: "submit",
  key: "",
  spec: Uint8Array.of(1),
  assignedDcs: ["dc1"],
};

describe("a ledger node", () => {
  it("distinguishes a connection broken by the network from one closed by the peer", () => {
    const ledger = new Ledger().open();
    ledger.pipes.breakAll();
    ledger.pass(3_000);
    expect(ledger.events[0]).toContain("callerGone for another reason");
    expect(ledger.events[0]).not.toContain("callerGone by itself");
  });

  it("rejects a peer that returns with an older copy of its data, with the reason", () => {
    const ledger = new Ledger().open();
    const old = new Map([...(ledger.files[2]?.files ?? [])].map(([path, b]) => [path, b.slice()]));
    for (let i = 0; i < 3; i++) {
      expect(ledger.ask(0, submit)).toMatchObject({ kind: "committed" });
      ledger.pass(1_500);
    }
    const files = ledger.files[2]?.files;
    files?.clear();
    for (const [path, bytes] of old) files?.set(path, bytes);
    ledger.restart(2);
    ledger.pass(2_000);
    expect(ledger.events[2]).toContain("outdated");
    expect(ledger.events[0]?.join()).toContain(
      "peer.refused n2 OLD_LOG: the log of n2 ends at record",
    );
    expect(ledger.ask(0, submit)).toMatchObject({ kind: "committed" });
  });

  it("reports its health to its peers, also after they reconnect (AD-19.40)", () => {
    const ledger = new Ledger().open();
    const health = { hasDatacenter: true, datacenters: 1, forwarded: 2, forwardable: 0 };
    ledger.take(0, { kind: "tellPeers", health: { ...health, pressure: "stressed" } });
    ledger.pipes.settle();
    for (const other of [1, 2]) expect(ledger.events[other]).toContain("peerHealth n0 stressed");
    expect(ledger.events[0]?.join()).not.toContain("peerHealth");
    ledger.restart(2);
    ledger.pass(3_000);
    expect(ledger.events[2]).toContain("peerHealth n0 stressed");
    expect(ledger.ask(2, submit)).toMatchObject({ kind: "committed" });
  });

  it("exchanges marks without health with peers of older versions", () => {
    const { type } = MESSAGES.ledgerMark;
    const fields = { lastRecord: required(1, counter(9)), draining: optional(2, bool, false) };
    const older = struct<{ lastRecord: number; draining: boolean }>("LedgerMark", fields);
    const mark = { lastRecord: 7, draining: true };
    expect(decode(type, encode(older, mark))).toEqual({
      ok: true,
      value: { ...mark, health: null, wallMs: 0, diskProblem: "" },
    });
    const counts = { hasDatacenter: true, datacenters: 1, forwarded: 2, forwardable: 0 };
    const health = { ...counts, pressure: "healthy" } as const;
    const newer = { ...mark, health, wallMs: 5, diskProblem: "no space" };
    expect(decode(type, encode(type, newer))).toEqual({ ok: true, value: newer });
    expect(decode(older, encode(type, newer))).toEqual({ ok: true, value: mark });
  });

  it("accepts a peer that returns with all its data", () => {
    const ledger = new Ledger().open();
    for (let i = 0; i < 3; i++) {
      ledger.ask(0, submit);
      ledger.pass(1_500);
      ledger.restart(i);
      ledger.pass(2_000);
      expect(ledger.events.flat().join()).not.toContain("OLD_LOG");
    }
    for (const machine of ledger.machines)
      expect(machine.peers().every(({ heard, up }) => heard && up)).toBe(true);
  });

  it("replicates and answers over byte streams", () => {
    const ledger = new Ledger().open();
    for (const machine of ledger.machines) {
      const states = machine.peers().map(({ up, heard }) => [up, heard]);
      expect(states).toEqual([
        [true, true],
        [true, true],
      ]);
    }
    expect(ledger.ask(1, submit)).toMatchObject({ kind: "committed" });
  });

  it("rejects a node of another ledger, with a reason at both ends", () => {
    const wrong = ["r0", "r1", "elsewhere"];
    const ledger = new Ledger((of) => (of === 0 ? wrong : ["r0", "r1", "r2"])).open();
    const [n0, n1] = ledger.machines;
    expect(n0?.peers().every(({ up, heard }) => !up && !heard)).toBe(true);
    expect(n1?.peers().map(({ up }) => up)).toEqual([false, true]);
    for (const index of [0, 1])
      expect(ledger.events[index]?.join()).toContain("another replica set");
  });

  it("logs a disconnected peer at a bounded rate, not with every attempt", () => {
    const ledger = new Ledger((of) => (of === 0 ? ["x", "r1", "r2"] : ["r0", "r1", "r2"])).open();
    ledger.pass(20_000);
    const lines = ledger.events[1]?.filter((line) => line.startsWith("peer.down n0")) ?? [];
    expect(lines.length).toBe(1);
  });
});

describe("requests to a ledger node", () => {
  it("are refused once each before the start and after a leave", () => {
    const ledger = new Ledger().open();
    ledger.take(0, { kind: "leave" });
    ledger.pass(10_000);
    expect(ledger.events[0]?.filter((line) => line.startsWith("left"))).toEqual(["left 0"]);
    expect(ledger.ask(0, submit)).toMatchObject({
      kind: "retry",
      why: expect.stringMatching(/going down/),
    });
  });

  it("are refused while the disk is behind, with cancels refused last (G-12)", () => {
    const ledger = new Ledger().open();
    const created = ledger.ask(0, submit);
    const jobId = (created?.kind === "committed" ? created.jobId : "") as JobId;
    const { length } = ledger.answers;
    ledger.slowDisk = true;
    const head = { jobId, eventId: "e" as EventId, fenceToken: 0, hlc: NO_HLC };
    const counts = { dcId: "dc1", completed: 1, failed: 0 };
    const progress = { ...head, kind: "JobProgressReported", ...counts } as const;
    const abort = { ...head, kind: "JobAborted", reason: "", requestor: "me" } as const;
    let token = 2;
    const append = (event: JobEvent): void => {
      const request = { kind: "append", event, durability: "NONE" } as const;
      ledger.take(0, { kind: "request", token: token++, request });
    };
    while (token < 60_000 && ledger.answers.length === length) append(progress);
    expect(ledger.answers[length]).toEqual({ kind: "retry", why: "the disk is behind" });
    append(abort);
    expect(ledger.answers.length).toBe(length + 1);
  });

  it("in progress are answered when the node leaves", () => {
    const ledger = new Ledger().open();
    ledger.pipes.breakAll();
    ledger.slowDisk = true;
    ledger.take(0, { kind: "request", token: 9, request: submit });
    ledger.take(0, { kind: "leave" });
    ledger.pass(10_000);
    expect(ledger.answers.length).toBe(1);
    expect(ledger.machines[0]?.waiting).toBe(0);
  });
});

describe("a leaving node", () => {
  it("leaves as soon as others lead", () => {
    const ledger = new Ledger().open();
    const leader = ledger.machines.findIndex(({ node }) => node.status().leading > 0);
    ledger.take(leader, { kind: "leave" });
    ledger.pass(500);
    expect(ledger.events[leader]).toContain("left 0");
    expect(ledger.events[leader]?.join()).not.toContain("notHandedOver");
  });

  it("waits for a slow successor for a limited time", () => {
    const ledger = new Ledger().open();
    const leader = ledger.machines.findIndex(({ node }) => node.status().leading > 0);
    ledger.slowDisk = true;
    ledger.take(leader, { kind: "leave" });
    ledger.pass(12_000);
    expect(ledger.events[leader]?.join()).not.toContain("notHandedOver");
    ledger.pass(5_000);
    expect(ledger.events[leader]).toContain("ledger.notHandedOver 1");
  });

  it("reports how many groups it still leads when no other node can", () => {
    const ledger = new Ledger().open();
    const leader = ledger.machines.findIndex(({ node }) => node.status().leading > 0);
    for (const index of NAMES.keys()) if (index !== leader) ledger.stop(index);
    ledger.take(leader, { kind: "leave" });
    ledger.pass(20_000);
    expect(ledger.events[leader]).toContain("ledger.notHandedOver 1");
    expect(ledger.events[leader]?.at(-1)).toBe("left 1");
  });
});

describe("a restarted node", () => {
  it("recovers its data, after an orderly leave from its checkpoint alone", () => {
    const ledger = new Ledger().open();
    expect(ledger.ask(1, submit)).toMatchObject({ kind: "committed" });
    ledger.take(1, { kind: "leave" });
    ledger.pass(5_000);
    expect(ledger.events[1]).toContain("left 0");
    const groups = ledger.machines[1]?.node.groups.size;
    ledger.restart(1);
    expect(ledger.machines[1]?.node.groups.size).toBe(groups);
    expect(ledger.pass(15_000).ask(1, submit)).toMatchObject({ kind: "committed" });
  });

  it("waits until its clock has caught up with its own log, and logs it once (HLC-5)", () => {
    const ledger = new Ledger().open();
    expect(ledger.ask(0, submit)).toMatchObject({ kind: "committed" });
    ledger.wallShiftMs = -60_000;
    ledger.restart(0);
    ledger.pass(30_000);
    expect(ledger.events[0]).not.toContain("serving");
    expect(ledger.ask(0, submit)).toMatchObject({ why: expect.stringMatching(/starting/) });
    ledger.pass(35_000);
    expect(ledger.events[0]).toContain("serving");
    const warnings = ledger.events[0]?.filter((line) => line.startsWith("clock.behind-own-log"));
    expect(warnings?.length).toBe(1);
  });

  it("serves at once when configured to ignore timestamps of a wrong clock", () => {
    const ledger = new Ledger().open();
    expect(ledger.ask(0, submit)).toMatchObject({ kind: "committed" });
    ledger.wallShiftMs = -3_600_000;
    ledger.restart(0);
    ledger.pass(5_000);
    expect(ledger.events[0]).not.toContain("serving");
    expect(ledger.machines[0]?.clockBehindMs).toBeGreaterThan(3_500_000);
    ledger.recoveredAheadMsMax = 10_000;
    ledger.restart(0);
    ledger.pass(5_000);
    expect(ledger.events[0]).toContain("serving");
    expect(ledger.pass(15_000).ask(0, submit)).toMatchObject({ kind: "committed" });
  });

  it("serves at once when the clock is corrected in the meantime", () => {
    const ledger = new Ledger().open();
    expect(ledger.ask(0, submit)).toMatchObject({ kind: "committed" });
    ledger.wallShiftMs = -3_600_000;
    ledger.restart(0);
    ledger.pass(5_000);
    expect(ledger.events[0]).not.toContain("serving");
    ledger.wallShiftMs = 0;
    ledger.pass(1_000);
    expect(ledger.events[0]).toContain("serving");
  });
});

describe("a clock ahead of another", () => {
  const clockLines = (ledger: Ledger, index: number): readonly string[] =>
    (ledger.events[index] ?? []).filter((line) => line.startsWith("clock."));

  it("raises an alarm at its node while it is ahead, even without traffic", () => {
    const ledger = new Ledger().open().pass(30_000);
    expect(ledger.machines.map(({ clockAhead }) => clockAhead)).toEqual([null, null, null]);
    ledger.clockErrorMs[1] = 3_600_000;
    ledger.pass(60_000);
    expect(clockLines(ledger, 1)).toHaveLength(1);
    expect(clockLines(ledger, 1)[0]).toMatch(/^clock\.ahead/);
    expect(Math.round((ledger.machines[1]?.clockAhead?.aheadMs ?? 0) / 1_000)).toBe(3_600);
    expect([clockLines(ledger, 0), clockLines(ledger, 2)]).toEqual([[], []]);

    ledger.clockErrorMs[1] = 0;
    ledger.pass(120_000);
    expect(clockLines(ledger, 1)[1]).toMatch(/^clock\.agrees/);
    expect(ledger.machines[1]?.clockAhead).toBeNull();
  });

  it("raises no alarm for a tolerated or short difference", () => {
    const ledger = new Ledger().open();
    ledger.clockErrorMs[1] = 4_000;
    ledger.pass(60_000);
    ledger.clockErrorMs[1] = 60_000;
    ledger.pass(5_000);
    ledger.clockErrorMs[1] = 0;
    ledger.pass(60_000);
    expect(clockLines(ledger, 1)).toEqual([]);
  });
});

describe("a finished job evicted from memory", () => {
  it("is read through any node, before and after it reaches the archive file (LEDG-8)", () => {
    const ledger = new Ledger().open();
    const submitted = ledger.ask(0, submit);
    if (submitted?.kind !== "committed") throw new Error("no job");
    const { jobId } = submitted;
    const failed = { kind: "JobFailed", error: "x", failedDc: "dc1" } as const;
    expect(ledger.ask(0, event(jobId, "f", failed))).toMatchObject({ kind: "committed" });
    ledger.wallShiftMs = 2 * LEDGER_NODE_DEFAULTS.retentionMs;
    // A running node counts by its own clock and would take days.
    for (const index of NAMES.keys()) ledger.restart(index);
    ledger.pass(130_000);
    const archived = { kind: "job", archived: true, state: { jobId, status: "FAILED" } };
    for (const index of NAMES.keys()) {
      expect(ledger.machines[index]?.store.archive.waiting.length).toBe(1);
      expect(ledger.ask(index, read(jobId))).toMatchObject(archived);
    }
    ledger.take(1, { kind: "leave" });
    ledger.pass(5_000);
    ledger.restart(1);
    ledger.pass(15_000);
    expect(ledger.machines[1]?.store.archive.places.has(jobId)).toBe(true);
    expect(ledger.ask(1, read(jobId))).toMatchObject({ ...archived, servedBy: "n1" });
  });
});

/** A member with the key that sends arbitrary messages. */
class Liar {
  readonly #ledger: Ledger;
  readonly #side: ReturnType<Pipes["add"]>;
  #connection: Connection | null = null;
  isClosed = false;

  constructor(ledger: Ledger, seed: number) {
    this.#ledger = ledger;
    this.#side = ledger.pipes.add(`liar${seed}:1`, (input) => {
      if (input.kind === "opened") this.#open(seed);
      else if (input.kind === "bytes") this.#connection?.onBytes(input.bytes, ledger.now);
      else if (input.kind === "closed") this.#connection?.onClosed();
    });
    const to = address("n0:1");
    ledger.pipes.run(this.#side, { kind: "dial", stream: 2 as StreamId, to, timeoutMs: 1 });
    ledger.pipes.settle();
  }

  #open(seed: number): void {
    this.#connection = new Connection(
      {
        stream: 2 as StreamId,
        facts: { host: "h", peerUris: null },
        ...{ side: "client", hello: helloOf("n1", "r1"), ring, markBytes: 1 },
        entropy: entropyOf(new Random(seed)),
        compressor: { deflate: (bytes) => bytes, inflate: () => null },
        emit: (effect) => this.#ledger.pipes.run(this.#side, effect),
      },
      {
        onReady: () => undefined,
        onMessage: () => undefined,
        onEnd: () => {
          this.isClosed = true;
        },
      },
      this.#ledger.now,
    );
  }

  say(message: StreamEnvelope): void {
    this.#connection?.send(message, this.#ledger.now);
    this.#ledger.pipes.settle();
  }
}

describe("a member with the key", () => {
  it("cannot make a node throw with any messages in any order", () => {
    const names = Object.keys(MESSAGES) as MessageName[];
    const ledger = new Ledger().open();
    const { digest, described } = describeLedger(
      NAMES.map((node, i) => ({ node: node as NodeId, region: `r${i}` })),
      LEDGER_NODE_DEFAULTS,
    );
    const value = { digest, described, identity: "disk 1", lastRecord: null };
    for (let seed = 0; seed < 300; seed++) {
      const random = new Random(seed);
      const liar = new Liar(ledger, seed);
      if (random.chance(0.7)) liar.say({ name: "ledgerOpening", correlation: 1, value });
      for (let i = 0; i < 5; i++) {
        const name = random.pick(names);
        const correlation = random.pick([0, 1, 2 ** 31, Number.MAX_SAFE_INTEGER]);
        const drawn = generate(MESSAGES[name].type as (typeof MESSAGES)["refusal"]["type"], random);
        liar.say({ name, correlation, value: drawn } as StreamEnvelope);
      }
    }
    ledger.pass(5_000);
    expect(ledger.ask(0, submit)).toMatchObject({ kind: "committed" });
  });

  it("is ignored before its opening", () => {
    const ledger = new Ledger().open();
    const liar = new Liar(ledger, 1);
    liar.say({ name: "ledgerBatch", correlation: 0, value: Uint8Array.of(255) });
    expect(liar.isClosed).toBe(true);
    expect(ledger.events[0]?.join()).toContain("begins with its opening");
  });

  it("gets a refusal within the wire limit, regardless of the length of its own texts", () => {
    const ledger = new Ledger().open();
    const liar = new Liar(ledger, 2);
    const value = { digest: "other", described: "ß".repeat(250), identity: "x", lastRecord: null };
    liar.say({ name: "ledgerOpening", correlation: 1, value });
    expect(liar.isClosed).toBe(true);
    expect(ledger.events[0]?.join()).toContain("another replica set");
  });
});
