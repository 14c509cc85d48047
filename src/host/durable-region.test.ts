/** A durable record through power cuts and rot, on a disk that keeps what was written and tears what was not. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { decodeUtf8, encodeUtf8 } from "../core/base/bytes.ts";
import { RECORD_COPY_BYTES } from "../core/base/durable-record.ts";
import { DurableRegion } from "./durable-region.ts";
import { FileDisk } from "./file-disk.ts";
import type { DiskPort } from "./ports/disk.ts";

/** Loses power at the write of that number, counted from now: ten of its bytes arrive. */
class CuttableDisk implements DiskPort {
  bytes: Uint8Array | null = null;
  writesLeft = Number.POSITIVE_INFINITY;
  offsets: number[] = [];
  onCut: () => void = () => {};

  read(_region: string, done: (bytes: Uint8Array | null, error: string | null) => void): void {
    done(this.bytes?.slice() ?? null, null);
  }

  write(_region: string, at: number, bytes: Uint8Array, done: (error: string | null) => void) {
    this.offsets.push(at);
    const cut = --this.writesLeft === 0;
    const part = cut ? bytes.subarray(0, 10) : bytes;
    const length = Math.max(this.bytes?.length ?? 0, at + part.length);
    const grown = new Uint8Array(length);
    grown.set(this.bytes ?? []);
    grown.set(part, at);
    if (cut) grown.fill(0xff, at + part.length, Math.min(length, at + bytes.length));
    this.bytes = grown;
    if (cut) this.onCut();
    else done(null);
  }

  sync(_region: string, done: (error: string | null) => void): void {
    done(null);
  }

  nameOf(region: string): string {
    return `disk/${region}`;
  }

  /** Saves, and comes back when the power is gone. */
  async cutDuring(region: DurableRegion, text: string, write: number): Promise<void> {
    this.writesLeft = write;
    await new Promise<void>((resolve) => {
      this.onCut = resolve;
      void region.save(encodeUtf8(text));
    });
    this.writesLeft = Number.POSITIVE_INFINITY;
  }

  rot(at: number): void {
    if (this.bytes !== null) this.bytes[at] = (this.bytes[at] ?? 0) ^ 1;
  }
}

const about = { region: "vote", holds: "the vote", remedy: "Restore it." };
const open = (disk: DiskPort) => DurableRegion.open({ disk, ...about });
const textOf = ({ found }: DurableRegion) => (found === null ? null : decodeUtf8(found));

describe("a durable region", () => {
  it("survives two power cuts, each after a copy has rotted", async () => {
    for (const rotten of [0, RECORD_COPY_BYTES]) {
      const disk = new CuttableDisk();
      await (await open(disk)).save(encodeUtf8("term 7"));
      disk.rot(rotten + 20);
      // Power goes while the rotten copy is mended, and again while the next record is saved.
      disk.writesLeft = 1;
      await new Promise<void>((resolve) => {
        disk.onCut = resolve;
        void open(disk);
      });
      disk.writesLeft = Number.POSITIVE_INFINITY;
      const second = await open(disk);
      expect(textOf(second)).toBe("term 7");
      disk.rot(rotten + 20);
      await disk.cutDuring(second, "term 8", 1);
      expect(textOf(await open(disk))).toBe("term 7");
    }
  });

  it("writes the copy that rotted while it ran before the whole one", async () => {
    const disk = new CuttableDisk();
    const region = await open(disk);
    await region.save(encodeUtf8("term 7"));
    disk.rot(RECORD_COPY_BYTES + 20);
    disk.offsets = [];
    await disk.cutDuring(region, "term 8", 1);
    expect(disk.offsets).toEqual([RECORD_COPY_BYTES]);
    expect(textOf(await open(disk))).toBe("term 7");
  });

  it("has two whole copies of what it found before anyone relies on it", async () => {
    const disk = new CuttableDisk();
    const region = await open(disk);
    await region.save(encodeUtf8("term 7"));
    await disk.cutDuring(region, "term 8", 2);
    expect(textOf(await open(disk))).toBe("term 8");
    // Whichever copy rots now, the other holds it.
    disk.rot(20);
    expect(textOf(await open(disk))).toBe("term 8");
  });

  it("takes a first save that was torn for a fresh disk: nobody can have relied on it", async () => {
    const disk = new CuttableDisk();
    await disk.cutDuring(await open(disk), "term 1", 1);
    disk.bytes = disk.bytes?.slice(0, 10) ?? null;
    expect((await open(disk)).found).toBeNull();
    disk.bytes = new Uint8Array(30);
    expect((await open(disk)).found).toBeNull();
  });

  it("refuses a region with no whole copy, and says what, where and what to do", async () => {
    const directory = mkdtempSync(join(tmpdir(), "hyperscale-region-"));
    const disk = new FileDisk(directory);
    const region = await open(disk);
    await region.save(encodeUtf8("term 1"));
    await region.save(encodeUtf8("term 2"));
    const path = join(directory, "vote.bin");
    const whole = readFileSync(path);
    const bad = [
      Buffer.from(whole.map((byte, at) => (at % RECORD_COPY_BYTES === 0 ? byte ^ 1 : byte))),
      whole.subarray(0, 12),
      Buffer.alloc(whole.length),
      Buffer.from("not a record"),
    ];
    for (const bytes of bad) {
      writeFileSync(path, bytes);
      await expect(open(disk)).rejects.toThrow(
        `${path} holds the vote and cannot be used: both copies are damaged. Restore it.`,
      );
    }
    await disk.close();
    rmSync(directory, { recursive: true });
  });
});
