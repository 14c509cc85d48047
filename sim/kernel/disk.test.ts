import { describe, expect, it } from "vitest";
import { encodeRecord, recoverRecord } from "../../src/core/base/durable-record.ts";
import { Random } from "../../src/core/base/random.ts";
import { TwoCopies, type TwoCopiesInput } from "../../src/core/base/two-copies.ts";
import { SimDisk } from "./disk.ts";

const REGION = "vote";

/** Drives the machine on the disk until it requests sync number `syncsMax`, which is not carried out. */
function drive(disk: SimDisk, copies: TwoCopies, first: TwoCopiesInput, syncsMax: number): void {
  let input: TwoCopiesInput = first;
  let syncs = 0;
  for (;;) {
    const effect = copies.step(input);
    if (effect.kind === "read") input = { kind: "contents", region: disk.read(REGION) };
    else if (effect.kind === "write") {
      disk.write(REGION, effect.at, effect.bytes);
      input = { kind: "written" };
    } else if (effect.kind === "sync" && syncs++ < syncsMax) {
      disk.sync(REGION);
      input = { kind: "synced" };
    } else return;
  }
}

describe("the simulated disk", () => {
  it("never rots the only copy that a crash has left whole", () => {
    for (let seed = 0; seed < 3_000; seed++) {
      const disk = new SimDisk(new Random(`rot/${seed}`));
      const copies = new TwoCopies();
      drive(disk, copies, { kind: "open" }, 2);
      drive(disk, copies, { kind: "save", payload: Uint8Array.of(1) }, 2);
      drive(disk, copies, { kind: "save", payload: Uint8Array.of(2) }, seed % 2);
      disk.crash();
      disk.rot();
      disk.rot();
      expect(recoverRecord(disk.read(REGION)), `seed ${seed}`).not.toBeNull();
    }
  });

  it("rots, and invalidates the copy it hits", () => {
    const disk = new SimDisk(new Random("rot"));
    const bytes = encodeRecord({ generation: 1, payload: new Uint8Array(100) });
    disk.write(REGION, 0, bytes);
    disk.write(REGION, 512, bytes);
    disk.sync(REGION);
    const whole = disk.read(REGION)?.slice();
    disk.rot();
    expect(disk.read(REGION)).not.toEqual(whole);
  });
});
