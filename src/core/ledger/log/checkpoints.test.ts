import { describe, expect, it } from "vitest";
import { crc32 } from "../../base/crc32.ts";
import { type CheckpointHeader, checkpointName, readCheckpoint } from "./checkpoint.ts";
import { Checkpoints } from "./checkpoints.ts";
import type { FileOperation } from "./files.ts";
import { setUint64, viewOf } from "./record.ts";
import { identityOf } from "./segment.ts";
import { MemoryFiles } from "./testing/memory-files.ts";

const identity = identityOf("test", "unit");
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

class Bench {
  readonly files: MemoryFiles;
  readonly checkpoints: Checkpoints;
  readonly damaged: string[] = [];
  slices: string[] = [];
  readonly latest: CheckpointHeader | null;

  constructor(files = new MemoryFiles(), who = identity) {
    this.files = files;
    this.checkpoints = new Checkpoints({
      directory: "wal",
      identity: who,
      keptMax: 3,
      onDamaged: (name, problem) => this.damaged.push(`${name}: ${problem}`),
    });
    const found = [...files.files].map(([path, { length }]) => {
      return { name: path.slice("wal/".length), bytes: length };
    });
    const restore = () => {
      this.slices = [];
      return ({ lsn, payload }: { lsn: number; payload: Uint8Array }) => {
        this.slices.push(`${lsn} ${text(payload)}`);
      };
    };
    this.latest = files.carryOut(this.checkpoints.look(found, restore));
  }

  write(...lsns: readonly number[]): CheckpointHeader {
    const [first = 0] = lsns;
    const { files, checkpoints } = this;
    expect(files.carryOut(checkpoints.begin(first))).toBeNull();
    for (const lsn of lsns) {
      expect(files.carryOut(checkpoints.add({ lsn, payload: utf8(`state at ${lsn}`) }))).toBeNull();
    }
    const header = files.carryOut(checkpoints.commit(7));
    if ("ok" in header) throw new Error(header.code);
    return header;
  }
}

describe("checkpoints", () => {
  it("keeps the newest three, and the log behind the oldest of them (CKPT-4, CKPT-5)", () => {
    const bench = new Bench();
    expect([bench.latest, bench.checkpoints.safeLsn]).toEqual([null, 0]);
    for (const lsn of [100, 200, 300, 400]) bench.write(lsn, lsn + 10, lsn + 20);
    expect(bench.checkpoints.safeLsn).toBe(200);
    const again = new Bench(bench.files);
    expect(again.latest).toMatchObject({ localLsn: 400, throughLsn: 420, slices: 3, createdAt: 7 });
    expect(again.slices).toEqual(["400 state at 400", "410 state at 410", "420 state at 420"]);
    expect(again.checkpoints.kept.map(({ localLsn }) => localLsn)).toEqual([400, 300, 200]);
    expect(again.damaged).toEqual([]);
  });

  it("names the first of its slices as what the log may be cut to, never a later one (CKPT-3)", () => {
    const bench = new Bench();
    const { localLsn, throughLsn } = bench.write(50, 70, 90);
    expect([localLsn, throughLsn]).toEqual([50, 90]);
    // Records between the slices are needed to bring the first slice up to the last.
    expect(bench.checkpoints.safeLsn).toBe(50);
    bench.write(120);
    expect(bench.checkpoints.safeLsn).toBe(50);
    expect(new Bench(bench.files).checkpoints.safeLsn).toBe(50);
  });

  it("is in place only after it was written and synced aside (CKPT-2)", () => {
    const bench = new Bench();
    bench.write(5, 6);
    const aside = `wal/${checkpointName("5".padStart(32, "0"))}.tmp`;
    const short = ({ kind }: FileOperation): string => kind;
    expect(bench.files.log.map(short)).toEqual([
      ...["create", "write", "write", "write"],
      ...["sync", "release", "rename", "syncDirectory"],
    ]);
    expect(bench.files.log[4]).toEqual({ kind: "sync", path: aside });
  });

  it("passes over a damaged one and a stranger's, with a warning", () => {
    const bench = new Bench();
    bench.write(100);
    const { id } = bench.write(200, 210);
    const file = bench.files.files.get(`wal/${checkpointName(id)}`) ?? new Uint8Array(0);
    const last = file.length - 1;
    file[last] = (file[last] ?? 0) ^ 1;
    const again = new Bench(bench.files);
    expect([again.latest?.localLsn, again.slices]).toEqual([100, ["100 state at 100"]]);
    expect(again.damaged).toEqual([`${checkpointName(id)}: damaged payload`]);
    expect(new Bench(bench.files, identityOf("test", "other")).latest).toBeNull();
  });

  it("leaves nothing behind when it is given up", () => {
    const bench = new Bench();
    const { files, checkpoints } = bench;
    files.carryOut(checkpoints.begin(9));
    files.carryOut(checkpoints.abandon());
    expect([...files.files.keys()]).toEqual([]);
    bench.write(12);
    expect(new Bench(files).latest?.localLsn).toBe(12);
  });

  it("reads a file of version 1: one slice as of its number", () => {
    const payload = utf8("old state");
    const bytes = new Uint8Array(80 + payload.length);
    const view = viewOf(bytes);
    bytes.set(utf8("HSCP"));
    view.setUint16(4, 1, true);
    view.setUint16(6, 80, true);
    bytes.fill(0xab, 8, 24);
    for (const [at, value] of [
      [32, 5],
      [40, 77],
      [48, 77],
      [56, 70],
      [64, payload.length],
    ] as const) {
      setUint64(view, at, value);
    }
    view.setUint32(72, crc32(payload), true);
    view.setUint32(76, crc32(bytes, 0, 76), true);
    bytes.set(payload, 80);
    const files = new MemoryFiles();
    files.files.set("old", bytes);
    const slices: string[] = [];
    const onSlice = ({ lsn, payload: slice }: { lsn: number; payload: Uint8Array }): void => {
      slices.push(`${lsn} ${text(slice)}`);
    };
    const header = files.carryOut(readCheckpoint("old", bytes.length, { onSlice }));
    expect(header).toMatchObject({ localLsn: 77, throughLsn: 77, slices: 1 });
    expect(slices).toEqual(["77 old state"]);
  });
});
