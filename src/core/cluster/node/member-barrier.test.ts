/** A barrier under power cuts and bit rot, on a disk that keeps synced writes and tears others. */

import { describe, expect, it } from "vitest";
import { decodeUtf8, encodeUtf8 } from "../../base/bytes.ts";
import { RECORD_COPY_BYTES } from "../../base/durable-record.ts";
import {
  BARRIER_RULES,
  type BarrierRules,
  type RegionEffect,
  WriteBarrier,
} from "./member-barrier.ts";

/** Cuts the power at the write of that number, counted from now: ten of its bytes arrive. */
class CuttableDisk {
  bytes: Uint8Array | null = null;
  writesLeft = Number.POSITIVE_INFINITY;
  offsets: number[] = [];

  write(at: number, bytes: Uint8Array): boolean {
    this.offsets.push(at);
    const cut = --this.writesLeft === 0;
    const part = cut ? bytes.subarray(0, 10) : bytes;
    const length = Math.max(this.bytes?.length ?? 0, at + part.length);
    const grown = new Uint8Array(length);
    grown.set(this.bytes ?? []);
    grown.set(part, at);
    if (cut) grown.fill(0xff, at + part.length, Math.min(length, at + bytes.length));
    this.bytes = grown;
    return !cut;
  }

  rot(at: number): void {
    if (this.bytes !== null) this.bytes[at] = (this.bytes[at] ?? 0) ^ 1;
  }
}

/** One process with its barrier on a disk, until the power is cut. Effects that begin with "save" are saved. */
class BarrierProcess {
  readonly #disk: CuttableDisk;
  readonly barrier: WriteBarrier<string>;
  readonly executed: string[] = [];
  found: string | null = null;
  problem: string | null = null;
  #requests: RegionEffect[] = [];

  constructor(disk: CuttableDisk, rules: BarrierRules = BARRIER_RULES) {
    this.#disk = disk;
    this.barrier = new WriteBarrier<string>({
      region: "vote",
      rules,
      run: (effect) => {
        this.executed.push(effect);
        if (effect.startsWith("save ")) this.barrier.persist(encodeUtf8(effect.slice(5)));
      },
      ask: (effect) => this.#requests.push(effect),
      onOpened: (found) => {
        this.found = found === null ? null : decodeUtf8(found);
      },
      onUnreadable: () => {
        this.problem = "unreadable";
      },
      onBroken: (problem) => {
        this.problem = problem;
      },
    });
  }

  /** Answers requests until the power cut, or until that many answers were given. */
  work(answers = Number.POSITIVE_INFINITY): this {
    for (let left = answers; left > 0; left--) {
      const effect = this.#requests.shift();
      if (effect === undefined) break;
      if (effect.kind === "readRegion") {
        this.barrier.onResult({ kind: "contents", region: this.#disk.bytes?.slice() ?? null });
      } else if (effect.kind === "syncRegion") this.barrier.onResult({ kind: "synced" });
      else if (this.#disk.write(effect.at, effect.bytes))
        this.barrier.onResult({ kind: "written" });
      else break;
    }
    this.#disk.writesLeft = Number.POSITIVE_INFINITY;
    return this;
  }

  push(...effects: string[]): this {
    for (const effect of effects) this.barrier.push(effect);
    return this;
  }
}

function open(disk: CuttableDisk, rules?: BarrierRules): BarrierProcess {
  const incarnation = new BarrierProcess(disk, rules);
  incarnation.barrier.open();
  return incarnation.work();
}

describe("a barrier", () => {
  it("lets no effect pass a write that is not durable, and keeps their order", () => {
    const incarnation = open(new CuttableDisk()).push(
      "before",
      "save term 7",
      "after 1",
      "after 2",
    );
    // Read, write, sync, write: the second copy is not synced yet.
    incarnation.work(4);
    expect(incarnation.executed).toEqual(["before", "save term 7"]);
    incarnation.push("after 3").work();
    expect(incarnation.executed).toEqual([
      "before",
      "save term 7",
      "after 1",
      "after 2",
      "after 3",
    ]);
  });

  it("releases effects behind a second write only after that write", () => {
    const incarnation = open(new CuttableDisk()).push(
      "save term 7",
      "seven",
      "save term 8",
      "eight",
    );
    incarnation.work(5);
    expect(incarnation.executed).toEqual(["save term 7", "seven", "save term 8"]);
    expect(incarnation.work().executed.at(-1)).toBe("eight");
  });

  it("terminates the process when the disk fails or never answers", () => {
    const failed = open(new CuttableDisk()).push("save term 7", "after");
    failed.barrier.onResult({ kind: "failed", problem: "EIO" });
    expect([failed.problem, failed.executed]).toEqual(["EIO", ["save term 7"]]);
    const silent = open(new CuttableDisk()).push("save term 7");
    for (let i = 0; i < 20_000 && silent.problem === null; i++) silent.push("after");
    expect(silent.problem).toBe("it does not answer");
  });
});

describe("the record of a barrier", () => {
  it("survives two power cuts, each after a copy has rotted", () => {
    for (const rotten of [0, RECORD_COPY_BYTES]) {
      const disk = new CuttableDisk();
      open(disk).push("save term 7").work();
      disk.rot(rotten + 20);
      // Cuts the power while the rotten copy is repaired, and again while the next record is saved.
      disk.writesLeft = 1;
      expect(open(disk).found).toBeNull();
      const second = open(disk);
      expect(second.found).toBe("term 7");
      disk.rot(rotten + 20);
      disk.writesLeft = 1;
      second.push("save term 8").work();
      expect(open(disk).found).toBe("term 7");
    }
  });

  it("is written first to the copy that rotted while the process ran", () => {
    const disk = new CuttableDisk();
    const incarnation = open(disk).push("save term 7").work();
    disk.rot(RECORD_COPY_BYTES + 20);
    disk.offsets = [];
    disk.writesLeft = 1;
    incarnation.push("save term 8").work();
    expect(disk.offsets).toEqual([RECORD_COPY_BYTES]);
    expect(open(disk).found).toBe("term 7");
  });

  it("is lost when copy 0 is always written first", () => {
    const disk = new CuttableDisk();
    const rules = { ...BARRIER_RULES, spoiledFirst: false };
    const incarnation = open(disk, rules).push("save term 7").work();
    disk.rot(RECORD_COPY_BYTES + 20);
    disk.writesLeft = 1;
    incarnation.push("save term 8").work();
    expect(open(disk).problem).toBe("unreadable");
  });

  it("has two intact copies before any caller relies on it", () => {
    const disk = new CuttableDisk();
    const incarnation = open(disk).push("save term 7").work();
    disk.writesLeft = 2;
    incarnation.push("save term 8").work();
    expect(open(disk).found).toBe("term 8");
    // Whichever copy rots now, the other has the record.
    disk.rot(20);
    expect(open(disk).found).toBe("term 8");
  });

  it("counts as fresh after a torn first save, which no peer can have relied on", () => {
    const disk = new CuttableDisk();
    const incarnation = open(disk);
    disk.writesLeft = 1;
    incarnation.push("save term 1").work();
    disk.bytes = disk.bytes?.slice(0, 10) ?? null;
    expect(open(disk)).toMatchObject({ found: null, problem: null });
    disk.bytes = new Uint8Array(30);
    expect(open(disk)).toMatchObject({ found: null, problem: null });
  });
});
