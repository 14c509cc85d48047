/** Files that an agent must not start from: each ends the start with a sentence. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ByteWriter } from "../../core/base/bytes.ts";
import { COUNTER_MAX, term } from "../../core/base/ids.ts";
import { encodeVote } from "../../core/cluster/election/durable-vote.ts";
import { DurableRegion } from "../../host/durable-region.ts";
import { FileDisk } from "../../host/file-disk.ts";
import { openStored } from "./stored.ts";

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hyperscale-stored-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

async function write(region: string, payload: Uint8Array): Promise<void> {
  const disk = new FileDisk(directory);
  const opened = await DurableRegion.open({ disk, region, holds: "", remedy: "" });
  await opened.save(payload);
  await disk.close();
}

function varint(value: number): Uint8Array {
  const out = new ByteWriter(16);
  out.varint(value);
  out.text("n2");
  return out.take();
}

describe("what an agent keeps", () => {
  it("is nothing on a fresh disk, and what was saved afterwards", async () => {
    const fresh = await openStored(directory, true);
    expect([fresh.ceiling, fresh.vote?.found.term]).toEqual([0, 0]);
    await fresh.vote?.region.save(encodeVote({ term: term(8), votedFor: null }));
    await fresh.disk.close();
    expect((await openStored(directory, true)).vote?.found.term).toBe(8);
  });

  it.each([
    ["vote", "the term and vote of this member"],
    ["swim", "the highest incarnation that this member has told"],
  ])("a damaged %s file ends the start with what, where and what to do", async (region, holds) => {
    await write(region, varint(3));
    const path = join(directory, `${region}.bin`);
    writeFileSync(path, Buffer.alloc(1_024, 1));
    const sentence = `${path} holds ${holds} and cannot be used: both copies are damaged. Restore`;
    await expect(openStored(directory, true)).rejects.toThrow(sentence);
  });

  it("numbers that an earlier version was made to write end the start, not the process later", async () => {
    for (const value of [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER - 41, COUNTER_MAX + 1]) {
      await write("vote", varint(value));
      await expect(openStored(directory, true)).rejects.toThrow(
        `ever reaches term ${value}. Restore`,
      );
      await write("swim", varint(value));
      await expect(openStored(directory, false)).rejects.toThrow(
        `ever reaches incarnation ${value}. Restore`,
      );
      rmSync(join(directory, "swim.bin"));
    }
    await write("swim", Uint8Array.of(0xff, 0xff));
    await expect(openStored(directory, false)).rejects.toThrow("it is no incarnation");
  });
});
