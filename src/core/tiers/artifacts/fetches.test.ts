import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import type { Artifact } from "../messages.ts";
import { Fetches } from "./fetches.ts";

const HASH = "ab".repeat(32);
const FILE: Artifact = { path: "bundle.mjs", hash: HASH, bytes: 3 };
const BYTES = Uint8Array.of(1, 2, 3);
const KEPT = { job: "job", hash: HASH, problem: null, isDamaged: false } as const;
const DAMAGED = { ...KEPT, problem: "what came is not what its hash says", isDamaged: true };

describe("files of a job", () => {
  function wanting(): Fetches {
    const fetches = new Fetches(["m1", "m2", "m3"]);
    expect(fetches.want("job", "m2", [FILE])).toEqual([
      { kind: "lookUp", job: "job", files: [FILE] },
    ]);
    expect(fetches.lookedUp("job", [FILE])).toMatchObject([{ kind: "get", from: "m2", offset: 0 }]);
    return fetches;
  }

  it("come from whoever ordered them", () => {
    const fetches = wanting();
    expect(fetches.part("job", HASH, BYTES.subarray(0, 2), millis(0))).toMatchObject([
      { kind: "get", from: "m2", offset: 2 },
    ]);
    const last = fetches.part("job", HASH, BYTES.subarray(2), millis(0));
    expect(last).toEqual([{ kind: "keep", job: "job", hash: HASH, bytes: BYTES }]);
    expect(fetches.kept(KEPT, millis(0))).toEqual([{ kind: "ready", job: "job" }]);
    expect(fetches.size).toBe(0);
  });

  it("come from another manager when the one that ordered them is gone", () => {
    const fetches = wanting();
    const get = (from: string) => [{ kind: "get", from, offset: 0 }];
    expect(fetches.part("job", HASH, null, millis(0))).toMatchObject(get("m1"));
    expect(fetches.part("job", HASH, null, millis(0))).toMatchObject(get("m3"));
    // All were asked: they are asked again later.
    expect(fetches.part("job", HASH, null, millis(0))).toEqual([]);
    expect(fetches.nextDeadline()).toBe(500);
    expect(fetches.tick(millis(500))).toMatchObject(get("m2"));
  });

  it("come from another manager when a copy is damaged, from the first byte on", () => {
    const fetches = wanting();
    fetches.part("job", HASH, BYTES, millis(0));
    const next = fetches.kept(DAMAGED, millis(0));
    expect(next).toMatchObject([{ kind: "get", from: "m1", offset: 0 }]);
    fetches.part("job", HASH, BYTES, millis(0));
    expect(fetches.kept(KEPT, millis(0))).toEqual([{ kind: "ready", job: "job" }]);
  });

  it("that are damaged everywhere fail the job, and so does a full disk at once", () => {
    const damaged = wanting();
    let effects: ReturnType<typeof damaged.kept> = [];
    for (let copies = 0; effects[0]?.kind !== "failed"; copies++) {
      expect(copies).toBeLessThan(10);
      damaged.tick(millis(copies * 500));
      damaged.part("job", HASH, BYTES, millis(copies * 500));
      effects = damaged.kept(DAMAGED, millis(copies * 500));
    }
    const problem = "bundle.mjs: what came is not what its hash says";
    expect([effects, damaged.size]).toMatchObject([[{ kind: "failed", problem }], 0]);
    const full = wanting();
    full.part("job", HASH, BYTES, millis(0));
    expect(full.kept({ ...KEPT, problem: "no room" }, millis(0))).toMatchObject([
      { kind: "failed", problem: "bundle.mjs: no room" },
    ]);
  });

  it("are asked of the new leader when the job has one", () => {
    const fetches = wanting();
    fetches.follow("job", "m3");
    expect(fetches.part("job", HASH, BYTES.subarray(0, 1), millis(0))).toMatchObject([
      { kind: "get", from: "m3", offset: 1 },
    ]);
  });

  it("that nobody has fail the job with a word", () => {
    const fetches = wanting();
    let effects = fetches.part("job", HASH, null, millis(0));
    for (let now = 0; effects[0]?.kind !== "failed"; now += 500) {
      expect(now).toBeLessThan(60_000);
      effects = fetches.part("job", HASH, null, millis(now));
      if (effects.length === 0) fetches.tick(millis(now + 500));
    }
    expect(effects).toMatchObject([
      { kind: "failed", problem: expect.stringContaining("did not come") },
    ]);
    expect(fetches.size).toBe(0);
    expect(fetches.nextDeadline()).toBe(null);
  });
});
