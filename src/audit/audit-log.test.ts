import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { millis } from "../core/base/brand.ts";
import { RECORD_TYPES } from "../core/ledger/log/record-types.ts";
import { identityOf } from "../core/ledger/log/segment.ts";
import { Background } from "../host/background.ts";
import type { AuditEvent, AuditKind } from "../host/ports/audit.ts";
import type { LogFields } from "../host/ports/log.ts";
import { Wal } from "../ledger/log/wal.ts";
import { AUDIT_IDENTITY, AuditLog, type AuditLogOptions } from "./audit-log.ts";
import {
  type AuditEntry,
  type AuditFilter,
  type AuditProblem,
  auditDirectory,
  followAudit,
  readAudit,
} from "./read.ts";

const roots: string[] = [];
const open: AuditLog[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((log) => log.close()));
  for (const path of roots.splice(0)) rmSync(path, { recursive: true, force: true });
});

const DAY_MS = 86_400_000;
const START_MS = Date.parse("2026-05-01T12:00:00Z");

class World {
  readonly directory: string;
  readonly said: { readonly event: string; readonly fields: LogFields }[] = [];
  readonly background = new Background((work, error) => {
    throw new Error(`${work} failed`, { cause: error });
  });
  wallMs = START_MS;

  constructor() {
    const root = mkdtempSync(join(tmpdir(), "hyperscale-audit-"));
    roots.push(root);
    this.directory = join(root, "audit");
  }

  async open(changes: Partial<AuditLogOptions> = {}): Promise<AuditLog> {
    const log = await AuditLog.open(this.directory, {
      node: "gate-1",
      clock: { now: () => millis(0), wall: () => this.wallMs },
      log: {
        enabled: () => true,
        event: (_level, event, fields) => this.said.push({ event, fields }),
      },
      background: this.background,
      segmentBytes: 65_536,
      ...changes,
    });
    open.push(log);
    return log;
  }

  async read(filter: AuditFilter = {}, problems: AuditProblem[] = []): Promise<AuditEntry[]> {
    const found: AuditEntry[] = [];
    const onProblem = (problem: AuditProblem): void => void problems.push(problem);
    for await (const entry of readAudit(this.directory, filter, { onProblem })) found.push(entry);
    return found;
  }

  segments(): string[] {
    return readdirSync(this.directory)
      .filter((name) => name.endsWith(".wal"))
      .sort()
      .map((name) => join(this.directory, name));
  }
}

function change(kind: AuditKind, subject: string, by = "c"): AuditEvent {
  return { kind, subject, requester: { kind: "peer", name: by, address: "127.0.0.3:7946" } };
}

function spoil(path: string, at: number, length: number): void {
  const bytes = readFileSync(path);
  bytes.fill(0xee, at, at + length);
  writeFileSync(path, bytes);
}

const subjects = (entries: readonly AuditEntry[]): string[] =>
  entries.filter(({ kind }) => kind !== "audit.opened").map(({ subject }) => subject);

describe("the audit log", () => {
  it("records requests with requester and time, newest last, over restarts (SWIM-12)", async () => {
    const world = new World();
    const first = await world.open();
    first.record(change("member.joined", "b"));
    await first.close();
    world.wallMs += 5_000;
    const second = await world.open();
    second.record({
      kind: "member.removed",
      subject: "b",
      requester: { kind: "operator", name: "alice", credential: "loopback", address: "127.0.0.1" },
      detail: { forced: true },
    });
    await second.flush();
    const entries = await world.read();
    expect(entries.map(({ kind }) => kind)).toEqual([
      "audit.opened",
      "member.joined",
      "audit.opened",
      "member.removed",
    ]);
    expect(entries.at(-1)).toEqual({
      lsn: entries.at(-1)?.lsn,
      at: START_MS + 5_000,
      node: "gate-1",
      kind: "member.removed",
      subject: "b",
      requester: { kind: "operator", name: "alice", credential: "loopback", address: "127.0.0.1" },
      detail: { forced: "true" },
    });
  });

  it("is filtered by time, kind, group of kinds, subject and requester", async () => {
    const world = new World();
    const log = await world.open();
    for (let i = 0; i < 10; i++) {
      world.wallMs = START_MS + 1_000 * (i + 1);
      const kind = i % 2 === 0 ? "member.joined" : "leader.changed";
      log.record(change(kind, `n${i}`, i === 4 ? "d" : "c"));
    }
    await log.flush();
    const names = async (filter: AuditFilter): Promise<string[]> =>
      subjects(await world.read(filter));
    expect(await names({ fromMs: START_MS + 3_000, toMs: START_MS + 5_000 })).toEqual([
      "n2",
      "n3",
      "n4",
    ]);
    expect(await names({ kind: "leader.changed", fromMs: START_MS + 7_000 })).toEqual(["n7", "n9"]);
    expect(await names({ kind: "member" })).toHaveLength(5);
    expect(await names({ kind: "mem" })).toEqual([]);
    expect(await names({ subject: "n8" })).toEqual(["n8"]);
    expect(await names({ requester: "d" })).toEqual(["n4"]);
    expect(await names({ requester: "127.0.0.3:7946" })).toHaveLength(10);
  });

  it("counts dropped entries, and writes the count once there is room", async () => {
    const world = new World();
    const log = await world.open();
    await log.flush();
    for (let i = 0; i < 5_000; i++) log.record(change("member.joined", `n${i}`));
    expect(log.counts.dropped).toBe(3_000);
    await log.flush();
    await log.flush();
    log.record(change("member.left", "after"));
    await log.flush();
    const entries = await world.read();
    expect(subjects(entries).slice(0, 2_000)).toEqual(
      Array.from({ length: 2_000 }, (_, i) => `n${i}`),
    );
    const [dropped, ...more] = entries.filter(({ kind }) => kind === "audit.dropped");
    expect(dropped?.detail["count"]).toBe("3000");
    expect(more).toEqual([]);
    expect(entries.at(-1)?.subject).toBe("after");
    const said = world.said.map(({ event }) => event);
    expect(said.filter((event) => event === "audit.dropping")).toHaveLength(1);
    expect(log.counts).toEqual({ recorded: entries.length, dropped: 3_000 });
  });

  it("stays below its size: drops the oldest segments", async () => {
    const world = new World();
    const log = await world.open({ bytesMax: 4 * 65_536 });
    for (let i = 0; i < 4_000; i++) {
      log.record({ ...change("member.updated", `n${i}`), detail: { text: "x".repeat(100) } });
      if (i % 100 === 99) await log.flush();
    }
    await log.close();
    const bytes = world.segments().reduce((sum, path) => sum + statSync(path).size, 0);
    expect(bytes).toBeLessThanOrEqual(4 * 65_536);
    const found = subjects(await world.read());
    expect(found.length).toBeGreaterThan(500);
    expect(found.length).toBeLessThan(2_000);
    expect(found).toEqual(
      Array.from({ length: found.length }, (_, i) => `n${4_000 - found.length + i}`),
    );
  });

  it("removes segments whose newest entry is too old, at opening too", async () => {
    const world = new World();
    const log = await world.open({ ageMsMax: 10 * DAY_MS });
    for (let i = 0; i < 800; i++) {
      if (i % 100 === 0) await log.flush();
      log.record({ ...change("member.updated", "old"), detail: { text: "x".repeat(200) } });
    }
    await log.close();
    const before = world.segments().length;
    expect(before).toBeGreaterThan(3);
    world.wallMs += 11 * DAY_MS;
    const again = await world.open({ ageMsMax: 10 * DAY_MS });
    await again.close();
    expect(world.segments().length).toBeLessThan(before - 1);
    expect((await world.read()).at(-1)?.kind).toBe("audit.opened");
  });

  it("checks for old segments as background work of the process, until it is closed", async () => {
    const world = new World();
    const log = await world.open();
    expect(world.background.list().map(({ name }) => name)).toEqual(["audit retention"]);
    await log.close();
    expect(world.background.list()).toEqual([]);
  });

  it("never goes back in time when the clock does", async () => {
    const world = new World();
    const log = await world.open();
    world.wallMs -= DAY_MS;
    log.record(change("member.joined", "b"));
    await log.close();
    expect((await world.read()).map(({ at }) => at)).toEqual([START_MS, START_MS]);
  });

  it("cuts a torn tail at opening, and readers report it and continue", async () => {
    const world = new World();
    const log = await world.open();
    for (let i = 0; i < 20; i++) log.record(change("member.joined", `n${i}`));
    await log.close();
    const [path = ""] = world.segments();
    const end = readFileSync(path).findLastIndex((byte) => byte !== 0) + 1;
    spoil(path, end + 7, 40);
    const problems: AuditProblem[] = [];
    expect(await world.read({}, problems)).toHaveLength(21);
    expect(problems).toMatchObject([{ damaged: false }]);
    const again = await world.open();
    await again.close();
    expect(world.said.map(({ event }) => event)).toContain("audit.torn-tail-cut");
    expect((await world.read()).at(-1)?.detail).toMatchObject({ tailCut: "true", entries: "21" });
  });

  it("is set aside when damaged below its tail, and both can be read", async () => {
    const world = new World();
    const log = await world.open();
    for (let i = 0; i < 800; i++) {
      if (i % 100 === 0) await log.flush();
      log.record({ ...change("member.updated", `n${i}`), detail: { text: "x".repeat(200) } });
    }
    await log.close();
    spoil(world.segments()[1] ?? "", 5_000, 4);
    const problems: AuditProblem[] = [];
    const rest = subjects(await world.read({}, problems));
    expect(problems).toMatchObject([{ damaged: true }]);
    expect(problems[0]?.message).toContain("segment_00000002.wal");
    expect([rest[0], rest.at(-1)]).toEqual(["n0", "n799"]);
    expect(rest.length).toBeGreaterThan(500);
    expect(rest.length).toBeLessThan(800);

    const again = await world.open();
    again.record(change("member.joined", "new"));
    await again.close();
    expect((await world.read()).map(({ kind }) => kind)).toEqual([
      "audit.opened",
      "audit.replaced",
      "member.joined",
    ]);
    const old = readAudit(`${world.directory}.damaged-1`);
    expect((await old.next()).value).toMatchObject({ kind: "audit.opened" });
    await old.return(undefined);
  });

  it("skips a segment whose header is damaged", async () => {
    const world = new World();
    const log = await world.open();
    for (let i = 0; i < 800; i++) {
      if (i % 100 === 0) await log.flush();
      log.record({ ...change("member.updated", `n${i}`), detail: { text: "x".repeat(200) } });
    }
    await log.close();
    spoil(world.segments()[1] ?? "", 20, 3);
    const problems: AuditProblem[] = [];
    const rest = subjects(await world.read({}, problems));
    expect(problems[0]?.message).toContain("damaged header");
    expect([rest[0], rest.at(-1)]).toEqual(["n0", "n799"]);
  });

  it("has one writer: a second one is rejected", async () => {
    const world = new World();
    await world.open();
    await expect(world.open()).rejects.toMatchObject({ code: "WAL_LOCKED" });
  });

  it("rejects a ledger's log, foreign files and later versions, for writing and for reading", async () => {
    const ledger = new World();
    const identity = identityOf("prod", "gate-1");
    const wal = await Wal.open({
      directory: ledger.directory,
      identity,
      config: { segmentBytes: 4_096 },
    });
    await wal.append(RECORD_TYPES.VSR_ENTRY, Buffer.from("job"));
    await wal.close();
    await expect(ledger.open()).rejects.toMatchObject({ code: "WAL_IDENTITY" });
    await expect(ledger.read()).rejects.toMatchObject({ code: "NOT_AUDIT" });

    const foreign = new World();
    await (await foreign.open()).close();
    rmSync(foreign.segments()[0] ?? "");
    await expect(foreign.read()).rejects.toThrow(/is not an audit log: it is empty/);
    writeFileSync(join(foreign.directory, "notes.txt"), "mine");
    await expect(foreign.open()).rejects.toMatchObject({ code: "WAL_FOREIGN" });
    await expect(foreign.read()).rejects.toThrow(/notes\.txt/);

    const later = new World();
    await (await later.open()).close();
    const [path = ""] = later.segments();
    const bytes = readFileSync(path);
    bytes.writeUInt16LE(6, 4);
    writeFileSync(path, bytes);
    await expect(later.open()).rejects.toMatchObject({ code: "WAL_VERSION" });
    await expect(later.read()).rejects.toMatchObject({ code: "NEWER" });

    const newerRecords = new World();
    const other = await Wal.open({
      directory: newerRecords.directory,
      identity: AUDIT_IDENTITY,
      config: { segmentBytes: 4_096 },
    });
    // A struct of three bytes whose first field, the format, is 9.
    await other.append(RECORD_TYPES.AUDIT_ENTRY, Uint8Array.of(2, 4, 9));
    await other.close();
    await expect(newerRecords.read()).rejects.toMatchObject({ code: "NEWER" });

    const nowhere = new World();
    await expect(nowhere.read()).rejects.toMatchObject({ code: "MISSING" });
  });

  it("is found in a data directory, and followed while it is written", async () => {
    const world = new World();
    const log = await world.open();
    log.record(change("member.joined", "before"));
    await log.flush();
    const directory = await auditDirectory(join(world.directory, ".."));
    expect(directory).toBe(world.directory);
    expect(await auditDirectory(directory)).toBe(directory);
    const stop = new AbortController();
    const { signal } = stop;
    const seen: string[] = [];
    for await (const { subject } of followAudit(directory, { kind: "member" }, { signal })) {
      seen.push(subject);
      if (subject === "before") log.record(change("leader.changed", "not wanted"));
      if (subject === "before") log.record(change("member.left", "after"));
      if (subject === "after") stop.abort();
    }
    expect(seen).toEqual(["before", "after"]);
  });
});
