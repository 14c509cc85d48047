/** The log on real files, in its own directory per test. */

import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { decodeWalRecord } from "../../core/ledger/log/record.ts";
import { RECORD_TYPES } from "../../core/ledger/log/record-types.ts";
import { identityOf } from "../../core/ledger/log/segment.ts";
import { WalError } from "./errors.ts";
import { inspectLog } from "./inspect.ts";
import { listSegments, readRecords } from "./reader.ts";
import type { WalOptions } from "./types.ts";
import { Wal } from "./wal.ts";

const directories: string[] = [];
afterEach(async () => {
  for (const path of directories.splice(0)) await rm(path, { recursive: true, force: true });
});

async function scratch(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "hyperscale-wal-unit-"));
  directories.push(path);
  return path;
}

const identity = identityOf("test", "unit");

function open(directory: string, more: Partial<WalOptions> = {}): Promise<Wal> {
  const { config, ...rest } = more;
  return Wal.open({ directory, identity, config: { segmentBytes: 65_536, ...config }, ...rest });
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (payload: Uint8Array): string => new TextDecoder().decode(payload);
const TYPE = RECORD_TYPES.VSR_ENTRY;

async function texts(
  directory: string,
  range: { readonly from: number; readonly to?: number } = { from: 1 },
): Promise<string[]> {
  const found: string[] = [];
  for await (const { type, payload } of readRecords(await listSegments(directory), range)) {
    if (type === TYPE) found.push(text(payload));
  }
  return found;
}

async function code(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "none",
    (error: unknown) => (error instanceof WalError ? error.code : String(error)),
  );
}

describe("a log on disk", () => {
  it("answers with number and clock, and has the entry after a restart", async () => {
    const directory = await scratch();
    const log = await open(directory);
    const first = await log.append(TYPE, bytes("a"));
    const second = await log.append(TYPE, bytes(""));
    expect([first.lsn, second.lsn]).toEqual([1, 3]);
    await log.close();
    const seen: string[] = [];
    const again = await open(directory, { onEntry: ({ payload }) => seen.push(text(payload)) });
    expect(seen).toEqual(["a", ""]);
    expect(again.recovery).toMatchObject({
      recoveredEntries: 2,
      tornTail: null,
    });
    expect(again.recovery.maxHlc.wall).toBe(second.wall);
    const third = await again.append(TYPE, bytes("c"));
    expect(third.lsn).toBeGreaterThan(again.recovery.maxLsn);
    await again.close();
  });

  it("keeps thousands of concurrent appends in order over many segments", async () => {
    const directory = await scratch();
    const log = await open(directory);
    const wanted = Array.from({ length: 5_000 }, (_, i) => `entry ${i} ${"x".repeat(i % 70)}`);
    const answers = await Promise.all(wanted.map((entry) => log.append(TYPE, bytes(entry))));
    const lsns = answers.map(({ lsn }) => lsn ?? 0);
    expect(lsns).toEqual([...lsns].sort((a, b) => a - b));
    expect(await texts(directory)).toEqual(wanted);
    await log.close();
    expect(
      (await readdir(directory)).filter((name) => name.endsWith(".wal")).length,
    ).toBeGreaterThan(5);
    await (await open(directory)).close();
    expect(await texts(directory)).toEqual(wanted);
  });

  it("reports how many posted entries are durable, always a prefix", async () => {
    const counts: number[] = [];
    const log = await open(await scratch(), { onDurable: (count) => counts.push(count) });
    for (let i = 1; i <= 1_000; i++) expect(log.post(64, bytes(`${i}`))).toBe(i);
    await log.flush();
    expect(counts.at(-1)).toBe(1_000);
    expect(counts).toEqual([...counts].sort((a, b) => a - b));
    await log.close();
  });

  it("makes appends wait when the queue is full", async () => {
    const directory = await scratch();
    const log = await open(directory, {
      config: { queueEntriesMax: 100, batchEntriesMax: 10, unsyncedEntriesMax: 100 },
    });
    const many = Array.from({ length: 500 }, (_, i) => log.append(TYPE, bytes(`${i}`)));
    expect(log.congested).toBe(true);
    await Promise.all(many);
    expect(log.congested).toBe(false);
    expect(await texts(directory)).toHaveLength(500);
    await log.close();
  });

  it("refuses after close, too large entries and unknown types", async () => {
    const log = await open(await scratch());
    expect(await code(log.append(TYPE, new Uint8Array(70_000)))).toBe("TOO_LARGE");
    expect(await code(log.append(99, bytes("x")))).toBe("WAL_UNKNOWN_TYPE");
    await log.close();
    expect(await code(log.append(TYPE, bytes("x")))).toBe("SHUTDOWN");
  });

  it("is open in one process at a time", async () => {
    const directory = await scratch();
    const log = await open(directory);
    expect(await code(open(directory))).toBe("WAL_LOCKED");
    await log.close();
    await (await open(directory)).close();
  });

  it("compacts whole segments only, oldest first, and continues from what is left (WAL-17)", async () => {
    const directory = await scratch();
    const log = await open(directory);
    for (let i = 0; i < 3_000; i++) void log.append(TYPE, bytes(`entry ${i}`.padEnd(60)));
    await log.flush();
    const files = (await readdir(directory)).filter((name) => name.endsWith(".wal")).sort();
    expect(await log.compact(10)).toBe(0);
    const removed = await log.compact(1_500);
    expect(removed).toBeGreaterThan(0);
    const left = (await readdir(directory)).filter((name) => name.endsWith(".wal")).sort();
    expect(left).toEqual(files.slice(removed));
    expect(await code(texts(directory))).toBe("WAL_COMPACTED");
    await log.close();
    const again = await open(directory);
    expect(again.recovery.firstLsn).toBeGreaterThan(1);
    expect(again.recovery.firstLsn).toBeLessThanOrEqual(1_501);
    await again.append(TYPE, bytes("more"));
    await again.close();
  });

  it("leaves a nearly full last segment at opening, and indexes it as it is", async () => {
    const directory = await scratch();
    const config = { segmentBytes: 4_096 };
    const log = await open(directory, { config });
    await log.append(TYPE, new Uint8Array(3_650));
    await log.close();
    const again = await open(directory, { config });
    await again.append(TYPE, bytes("in the next"));
    await again.close();
    const { segments } = await inspectLog(directory);
    expect(segments.map(({ state, index }) => [state, index])).toEqual([
      ["sealed", "present"],
      ["active", "not needed"],
    ]);
  });

  it("cuts a torn tail once, reports it, and continues", async () => {
    const directory = await scratch();
    const log = await open(directory);
    await log.append(TYPE, bytes("kept"));
    const { offset } = log.status();
    await log.close();
    const path = join(directory, "segment_00000001.wal");
    const image = await readFile(path);
    image.fill(0xaa, offset + 20, offset + 40);
    await writeFile(path, image);
    const events: string[] = [];
    const again = await open(directory, { onEvent: ({ event }) => events.push(event) });
    expect(events).toContain("wal.torn-tail-cut");
    expect(again.recovery.recoveredEntries).toBe(1);
    await again.append(TYPE, bytes("after"));
    await again.close();
    const third = await open(directory);
    expect(third.recovery).toMatchObject({ recoveredEntries: 2, tornTail: null });
    await third.close();
  });
});

describe("reading a log", () => {
  it("three overlapping ranges at once each equal the reference (SR-6)", async () => {
    const directory = await scratch();
    const log = await open(directory);
    const answers = await Promise.all(
      Array.from({ length: 4_000 }, (_, i) => log.append(TYPE, bytes(`entry ${i}`))),
    );
    await log.close();
    const reference = answers.map(({ lsn }, i) => ({ lsn, text: `entry ${i}` }));
    const ranges = [
      { from: 1, to: 2_500 },
      { from: 1_000, to: 3_000 },
      { from: 2_999, to: 5_000 },
    ] as const;
    const found = await Promise.all(ranges.map((range) => texts(directory, range)));
    ranges.forEach(({ from, to }, i) => {
      const wanted = reference.filter(({ lsn }) => lsn >= from && lsn <= to);
      expect(found[i]).toEqual(wanted.map((entry) => entry.text));
    });
  });

  it("reports the byte at which each entry begins, in its own segment (SR-4)", async () => {
    const directory = await scratch();
    const log = await open(directory);
    for (let i = 0; i < 1_000; i++) void log.append(TYPE, bytes("x".repeat(i % 300)));
    await log.close();
    const segments = await listSegments(directory);
    expect(segments.length).toBeGreaterThan(1);
    const images = new Map<number, Uint8Array>();
    for (const { path, segmentId } of segments) images.set(segmentId, await readFile(path));
    let count = 0;
    for await (const found of readRecords(segments, { from: 1 })) {
      const image = images.get(found.segmentId) ?? new Uint8Array(0);
      const there = decodeWalRecord(image, found.offset);
      expect(there).toMatchObject({ ok: true, record: { lsn: found.lsn, type: found.type } });
      count++;
    }
    expect(count).toBeGreaterThan(1_000);
  });

  it("finds entries larger than a chunk, and ends where the last segment is full", async () => {
    const directory = await scratch();
    const config = { segmentBytes: 3_000_000 };
    const log = await open(directory, { config });
    const large = "y".repeat(2_900_000);
    await log.append(TYPE, bytes(large));
    const { offset } = log.status();
    await log.append(TYPE, new Uint8Array(config.segmentBytes - offset - 34 - 58 - 20));
    await log.close();
    const found = await texts(directory);
    expect([found.length, found[0] === large]).toEqual([2, true]);
  });

  // SR-7
  it("stops at damage and skips nothing; a missing index is rebuilt", async () => {
    const directory = await scratch();
    const log = await open(directory);
    for (let i = 0; i < 3_000; i++) void log.append(TYPE, bytes(`entry ${i}`.padEnd(60)));
    await log.close();
    const index = join(directory, "segment_00000001.idx");
    await rm(index);
    await writeFile(join(directory, "segment_00000002.idx"), "rubbish");
    await (await open(directory)).close();
    expect((await stat(index)).size).toBeGreaterThan(0);
    expect((await inspectLog(directory)).segments[1]?.index).toBe("present");
    const path = join(directory, "segment_00000002.wal");
    const image = await readFile(path);
    image[20_000] = (image[20_000] ?? 0) ^ 1;
    await writeFile(path, image);
    let last = 0;
    const reading = (async () => {
      for await (const { lsn } of readRecords(await listSegments(directory), { from: 1 })) {
        expect(lsn).toBe(last + 1);
        last = lsn;
      }
    })();
    expect(await code(reading)).toBe("WAL_CORRUPT");
    expect(last).toBeGreaterThan(0);
    expect(await code(open(directory))).toBe("WAL_CORRUPT");
  });
});
