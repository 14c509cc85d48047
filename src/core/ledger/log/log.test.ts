/** The log over files in memory: opening, the line before the queue, segments, compaction. */

import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import type { WalConfig } from "./limits.ts";
import { walConfig } from "./limits.ts";
import { Log, type LogEvent, type LogInput } from "./log.ts";
import { ANY_IDENTITY, encodeSegmentHeader, segmentName } from "./segment.ts";
import { MemoryFiles, settle } from "./testing/memory-files.ts";

const entry = { type: 64, payload: new Uint8Array(60), wall: 1, logical: 0 };
const NOW = millis(0);

class Bench {
  readonly files: MemoryFiles;
  readonly log: Log;
  readonly events: LogEvent[] = [];
  readonly found: number[] = [];

  constructor(files = new MemoryFiles(), config: Partial<WalConfig> = {}) {
    this.files = files;
    this.log = new Log({
      directory: "wal",
      config: walConfig({ segmentBytes: 4_096, ...config }),
      identity: ANY_IDENTITY,
      onEntry: ({ lsn }) => this.found.push(lsn),
    });
  }

  step(input: LogInput): readonly LogEvent[] {
    const events = settle<LogInput, LogEvent>(this.log, this.files, input, 0);
    this.events.push(...events);
    return events;
  }

  append(count: number): void {
    for (let i = 0; i < count; i++) this.log.append(entry, NOW);
    this.step({ kind: "tick" });
  }
}

function opened(files?: MemoryFiles, config?: Partial<WalConfig>): Bench {
  const bench = new Bench(files, config);
  expect(bench.step({ kind: "open" }).at(-1)?.kind).toBe("opened");
  return bench;
}

describe("a log on files", () => {
  it("is there again after a restart, and refuses nothing it wrote itself", () => {
    const first = opened();
    first.append(200);
    expect(first.step({ kind: "close" }).at(-1)?.kind).toBe("closed");
    const second = opened(first.files);
    expect(second.found).toHaveLength(200);
    second.append(1);
    expect(second.events.some(({ kind }) => kind === "durable")).toBe(true);
  });

  it.each([1, 33, 1_000, 4_095])(
    "is read in pieces of %i bytes as at once, also a segment that was prepared and never used",
    (pieceBytes) => {
      const first = opened();
      first.append(70);
      expect([...first.files.files.keys()].filter((path) => path.endsWith(".wal"))).toHaveLength(3);
      const [last] = first.events.filter(({ kind }) => kind === "segmentOpened").slice(-1);
      const second = opened(first.files, { pieceBytes });
      expect(second.found).toHaveLength(70);
      expect(second.log.view().segmentId).toBe(last?.kind === "segmentOpened" ? last.segmentId : 0);
      second.append(100);
      expect(opened(first.files, { pieceBytes }).found).toHaveLength(170);
    },
  );

  it("refuses a foreign file and changes nothing", () => {
    const files = new MemoryFiles();
    files.files.set("wal/holiday.jpg", new Uint8Array(3));
    const events = new Bench(files).step({ kind: "open" });
    expect(events).toEqual([
      { kind: "refused", refusal: { code: "FOREIGN_FILES", names: ["holiday.jpg"] } },
    ]);
    expect(files.log.map(({ kind }) => kind)).toEqual(["list"]);
  });

  it("continues in a segment of which a crash has left only the header", () => {
    const files = new MemoryFiles();
    const segment = new Uint8Array(4_096);
    segment.set(encodeSegmentHeader({ segmentId: 1, identity: ANY_IDENTITY, firstLsn: 1 }));
    files.files.set(`wal/${segmentName(1)}`, segment);
    const log = opened(files);
    log.append(1);
    expect(log.events.at(-1)).toMatchObject({ kind: "durable", ticket: 1 });
    expect(opened(files).found).toEqual([1]);
  });

  it("removes a segment that could not be made whole, and makes it again (WAL-15)", () => {
    const files = new MemoryFiles();
    let full = true;
    files.fault = ({ kind }) => (full && kind === "create" ? "ENOSPC" : null);
    const log = opened(files, { fullDisk: "wait" });
    expect(files.log.map(({ kind }) => kind).slice(-3)).toEqual(["create", "release", "remove"]);
    log.append(1);
    expect(log.events.map(({ kind }) => kind)).not.toContain("durable");
    full = false;
    settle<LogInput, LogEvent>(log.log, files, { kind: "tick" }, 1_000);
    expect(log.log.view()).toMatchObject({ durableTicket: 1, stalled: null });
  });

  it("deletes only segments that are covered, each name synced before the next (WAL-17)", () => {
    const log = opened();
    log.append(200);
    const segments = (): string[] =>
      [...log.files.files.keys()].filter((path) => path.endsWith(".wal"));
    const before = segments();
    const [compacted] = log.step({ kind: "compact", id: 7, safeLsn: 100 });
    expect(compacted).toMatchObject({ kind: "compacted", id: 7, segments: 2 });
    expect(segments()).toEqual(before.slice(2));
    const kinds = log.files.log.slice(-6).map(({ kind }) => kind);
    expect(kinds).toEqual([
      "remove",
      "syncDirectory",
      "remove",
      "remove",
      "syncDirectory",
      "remove",
    ]);
  });
});

describe("a full queue", () => {
  const small = { queueEntriesMax: 100, batchEntriesMax: 100, segmentBytes: 65_536 };

  it("makes entries wait in line for space, and rejects those beyond the line's bound", () => {
    const { log } = opened(undefined, small);
    let ticket: unknown = 0;
    for (let i = 1; i <= 100_100; i++) ticket = log.append(entry, NOW);
    expect(ticket).toBe(100_100);
    expect(log.append(entry, NOW)).toBe("QUEUE_FULL");
    expect(log.view()).toMatchObject({ waiting: 100_000, queueEntries: 100 });
    // The writer takes a batch of the queue, and as many of the line go in.
    log.step({ kind: "tick" }, NOW);
    log.step({ kind: "tick" }, NOW);
    expect(log.view()).toMatchObject({ waiting: 99_900, lastTicket: 200 });
  });

  it("flushes the entries in line before it, however many came after them (SW-5)", () => {
    const bench = opened(undefined, { ...small, segmentBytes: 1_048_576 });
    const { log } = bench;
    for (let i = 0; i < 150; i++) log.append(entry, NOW);
    const asked = log.step({ kind: "flush", id: 3 }, NOW);
    for (let i = 0; i < 5_000; i++) log.append(entry, NOW);
    const write = asked.find(({ kind }) => kind === "file");
    if (write?.kind !== "file") throw new Error("a batch is written");
    const result = bench.files.perform(write.operation);
    const events = bench.step({ kind: "done", id: write.id, result });
    const at = events.findIndex(({ kind }) => kind === "flushed");
    const durable = events.slice(0, at).findLast(({ kind }) => kind === "durable");
    expect(durable).toMatchObject({ kind: "durable", ticket: 200 });
    expect(log.view().lastTicket).toBe(5_150);
  });
});
