/** The log on real files, in a directory of its own per test. */

import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { RECORD_TYPES } from "../../core/ledger/log/record-types.ts";
import { identityOf } from "../../core/ledger/log/segment.ts";
import { Checkpoints } from "./checkpoints.ts";
import { WalError } from "./errors.ts";
import { inspectLog, readOnlySegments } from "./inspect.ts";
import { WalReader } from "./reader.ts";
import { Wal, type WalOptions } from "./wal.ts";

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

async function texts(records: AsyncIterable<{ readonly payload: Uint8Array }>): Promise<string[]> {
  const found: string[] = [];
  for await (const { payload } of records) found.push(text(payload));
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
    expect(await texts(log.readRange(1))).toEqual(wanted);
    await log.close();
    expect(
      (await readdir(directory)).filter((name) => name.endsWith(".wal")).length,
    ).toBeGreaterThan(5);
    const again = await open(directory);
    expect(await texts(again.readRange(1))).toEqual(wanted);
    await again.close();
  });

  it("tells how many posted entries are durable, always a prefix", async () => {
    const counts: number[] = [];
    const log = await open(await scratch(), { onDurable: (count) => counts.push(count) });
    for (let i = 1; i <= 1_000; i++) expect(log.post(64, bytes(`${i}`))).toBe(i);
    await log.flush();
    expect(counts.at(-1)).toBe(1_000);
    expect(counts).toEqual([...counts].sort((a, b) => a - b));
    await log.close();
  });

  it("makes appends wait when the queue is full, or refuses them at once", async () => {
    const log = await open(await scratch(), {
      config: { queueEntriesMax: 100, batchEntriesMax: 10, unsyncedEntriesMax: 100 },
    });
    const many = Array.from({ length: 500 }, (_, i) => log.append(TYPE, bytes(`${i}`)));
    expect(log.congested).toBe(true);
    expect(await code(log.append(TYPE, bytes("now"), { waitMs: 0 }))).toBe("QUEUE_FULL");
    await Promise.all(many);
    expect(log.congested).toBe(false);
    expect(await texts(log.readRange(1))).toHaveLength(500);
    await log.close();
  });

  it("answers NONE at once, FLUSH after the write, and flush() makes both durable", async () => {
    const log = await open(await scratch(), { config: { durability: "NONE" } });
    expect((await log.append(TYPE, bytes("none"))).lsn).toBe(null);
    expect((await log.append(TYPE, bytes("flush"), { durability: "FLUSH" })).lsn).toBe(2);
    expect(log.status().syncs).toBe(0);
    await log.flush();
    expect(log.durableLsn).toBeGreaterThanOrEqual(2);
    expect(log.status().syncs).toBe(1);
    expect(log.syncMsP99()).toBeGreaterThan(0);
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

  it("compacts whole segments only, oldest first, and goes on from what is left (WAL-17)", async () => {
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
    expect(await code(texts(log.readRange(1)))).toBe("WAL_COMPACTED");
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

  it("cuts a torn tail once, says so, and goes on", async () => {
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

describe("readers", () => {
  it("three overlapping ranges at once each equal the reference (SR-6)", async () => {
    const log = await open(await scratch());
    const answers = await Promise.all(
      Array.from({ length: 4_000 }, (_, i) => log.append(TYPE, bytes(`entry ${i}`))),
    );
    const reference = answers.map(({ lsn }, i) => ({ lsn: lsn ?? 0, text: `entry ${i}` }));
    const ranges = [
      [1, 2_500],
      [1_000, 3_000],
      [2_999, 5_000],
    ] as const;
    const found = await Promise.all(ranges.map(([a, b]) => texts(log.readRange(a, b))));
    ranges.forEach(([a, b], i) => {
      const wanted = reference.filter(({ lsn }) => lsn >= a && lsn <= b).map((entry) => entry.text);
      expect(found[i]).toEqual(wanted);
    });
    await log.close();
  });

  // SR-8
  it("a tailing reader sees each entry once it is durable, and ends when the log closes", async () => {
    const log = await open(await scratch());
    const reader = log.reader({ from: 1, tail: true });
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { type, payload } of reader) {
        if (type === TYPE) seen.push(text(payload));
        if (seen.length === 300) break;
      }
    })();
    const idle = log.reader({ from: 1_000_000, tail: true });
    const waiting = idle.read();
    for (let i = 0; i < 300; i++) await log.append(TYPE, bytes(`${i}`));
    await reading;
    await log.close();
    expect(await waiting).toEqual({ status: "SHUTDOWN" });
    expect(seen).toEqual(Array.from({ length: 300 }, (_, i) => `${i}`));
  });

  it("shares entries among consumers and tells all of them the end (SR-5)", async () => {
    const log = await open(await scratch());
    for (let i = 0; i < 50; i++) void log.append(TYPE, bytes(`${i}`));
    await log.flush();
    const reader = log.reader({ from: 1, to: log.durableLsn });
    const consume = async (): Promise<number> => {
      for (let count = 0; ; count++) if ((await reader.read()).status !== "SUCCESS") return count;
    };
    const counts = await Promise.all([consume(), consume(), consume(), consume()]);
    expect(counts.reduce((a, b) => a + b)).toBe(log.durableLsn);
    expect((await reader.read()).status).toBe("EOF");
    await log.close();
  });

  it("times out without losing an entry, and reads entries larger than a chunk", async () => {
    const log = await open(await scratch(), { config: { segmentBytes: 1_048_576 } });
    const reader = log.reader({ from: 1, tail: true });
    expect(await reader.readWithTimeout(5)).toBe(null);
    expect(reader.tryRead()).toBe(null);
    const large = "y".repeat(200_000);
    await log.append(TYPE, bytes(large));
    const result = await reader.read();
    expect(result.status === "SUCCESS" && text(result.entry.payload)).toBe(large);
    await log.close();
    expect((await reader.read()).status).not.toBe("EOF");
  });

  // SR-7
  it("reports damage once and skips nothing; the index is made again when it is gone", async () => {
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
    const reader = new WalReader(await readOnlySegments(directory), { from: 1 });
    let last = 0;
    for (;;) {
      const result = await reader.read();
      if (result.status !== "SUCCESS") {
        expect(result.status).toBe("CORRUPTION");
        break;
      }
      expect(result.entry.lsn).toBe(last + 1);
      last = result.entry.lsn;
    }
    await reader.close();
    expect(await code(open(directory))).toBe("WAL_CORRUPT");
  });
});

describe("checkpoints", () => {
  const snapshot = (localLsn: number) => ({
    localLsn,
    regionalLsn: localLsn,
    globalLsn: localLsn - 5,
    payload: bytes(`state at ${localLsn}`),
  });

  it("keeps the newest three, and the log behind the oldest of them (CKPT-4, CKPT-5)", async () => {
    const directory = await scratch();
    const { checkpoints, latest } = await Checkpoints.open({ directory, identity });
    expect([latest, checkpoints.safeLsn]).toEqual([null, 0]);
    for (const lsn of [100, 200, 300, 400]) await checkpoints.write(snapshot(lsn));
    expect(checkpoints.safeLsn).toBe(195);
    const again = await Checkpoints.open({ directory, identity });
    expect(again.latest && text(again.latest.payload)).toBe("state at 400");
    expect(again.checkpoints.kept.map(({ localLsn }) => localLsn)).toEqual([400, 300, 200]);
  });

  it("passes over a damaged one and a stranger's, with a warning", async () => {
    const directory = await scratch();
    const { checkpoints } = await Checkpoints.open({ directory, identity });
    await checkpoints.write(snapshot(100));
    const { id } = await checkpoints.write(snapshot(200));
    const path = join(directory, `checkpoint_${id}.ckpt`);
    const image = await readFile(path);
    image[image.length - 1] = 0;
    await writeFile(path, image);
    const warned: string[] = [];
    const options = { directory, identity, onDamaged: (name: string) => void warned.push(name) };
    const again = await Checkpoints.open(options);
    expect(again.latest?.header.localLsn).toBe(100);
    expect(warned).toEqual([`checkpoint_${id}.ckpt`]);
    const other = await Checkpoints.open({ ...options, identity: identityOf("test", "other") });
    expect(other.latest).toBe(null);
  });
});
