/** Files that an agent must not start from: each ends the start with a sentence. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ByteWriter } from "../../core/base/bytes.ts";
import { encodeRecord, RECORD_COPY_BYTES } from "../../core/base/durable-record.ts";
import { COUNTER_MAX } from "../../core/base/ids.ts";
import { BARRIER_RULES } from "../../core/cluster/node/member-barrier.ts";
import { MemberRecords } from "../../core/cluster/node/member-records.ts";
import { FileDisk } from "../../host/file-disk.ts";
import { carryOut, unusable } from "./stored.ts";

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hyperscale-stored-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

/** Incarnation and term, as a process finds them; rejects with what ends its start. */
function open(votes: boolean): Promise<readonly [number, number]> {
  const disk = new FileDisk(directory);
  const opening = new Promise<readonly [number, number]>((resolve, reject) => {
    const records: MemberRecords = new MemberRecords({
      rules: BARRIER_RULES,
      votes,
      runSwim: () => {},
      runElection: () => {},
      ask: (effect) => carryOut(disk, effect, (result) => records.onResult(effect.region, result)),
      onOpened: ({ ceiling, vote }) => resolve([ceiling, vote.term]),
      onUnusable: (region, detail) => reject(unusable(disk, region, detail)),
      onBroken: (problem) => reject(new Error(problem)),
    });
    records.open();
  });
  return opening.finally(() => disk.close());
}

function write(region: string, payload: Uint8Array): void {
  const copy = Buffer.alloc(RECORD_COPY_BYTES);
  copy.set(encodeRecord({ generation: 2, payload }));
  writeFileSync(join(directory, `${region}.bin`), Buffer.concat([copy, copy]));
}

function varint(value: number): Uint8Array {
  const out = new ByteWriter(16);
  out.varint(value);
  out.text("n2");
  return out.take();
}

describe("what an agent keeps", () => {
  it("is nothing on a fresh disk, and what was saved afterwards", async () => {
    expect(await open(true)).toEqual([0, 0]);
    write("vote", varint(8));
    expect(await open(true)).toEqual([0, 8]);
  });

  it.each([
    ["vote", "the term and vote of this member"],
    ["swim", "the highest incarnation that this member has announced"],
  ])("a damaged %s file ends the start with what, where and what to do", async (region, holds) => {
    write(region, varint(3));
    const path = join(directory, `${region}.bin`);
    const whole = readFileSync(path);
    for (const bytes of [
      Buffer.alloc(1_024, 1),
      Buffer.from(whole.map((byte, at) => (at % RECORD_COPY_BYTES === 0 ? byte ^ 1 : byte))),
      whole.subarray(0, 12),
      Buffer.alloc(whole.length),
      Buffer.from("not a record"),
    ]) {
      writeFileSync(path, bytes);
      const sentence = `${path} holds ${holds} and cannot be used: both copies are damaged. Restore`;
      await expect(open(true)).rejects.toThrow(sentence);
    }
  });

  it("numbers that an earlier version was made to write end the start, not the process later", async () => {
    for (const value of [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER - 41, COUNTER_MAX + 1]) {
      write("vote", varint(value));
      await expect(open(true)).rejects.toThrow(`ever reaches term ${value}. Restore`);
      write("swim", varint(value));
      await expect(open(false)).rejects.toThrow(`ever reaches incarnation ${value}. Restore`);
      rmSync(join(directory, "swim.bin"));
    }
    write("swim", Uint8Array.of(0xff, 0xff));
    await expect(open(false)).rejects.toThrow("it is no incarnation");
  });

  it("a folder that cannot be read ends the start with its name", async () => {
    writeFileSync(join(directory, "file"), "");
    directory = join(directory, "file");
    await expect(open(false)).rejects.toThrow(join(directory, "swim.bin"));
    directory = join(directory, "..");
  });
});
