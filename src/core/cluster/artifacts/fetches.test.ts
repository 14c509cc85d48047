import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import type { Artifact } from "../messages.ts";
import { type FetchEffect, Fetches } from "./fetches.ts";

const HASH = "ab".repeat(32);
const FILE: Artifact = { path: "bundle.mjs", hash: HASH, bytes: 3 };
const BYTES = Uint8Array.of(1, 2, 3);
const KEPT = { job: "job", hash: HASH, problem: null, isDamaged: false } as const;
const DAMAGED = { ...KEPT, problem: "what came is not what its hash says", isDamaged: true };

/** Answers the last request. */
class Fetching extends Fetches {
  #request = 0;

  answer(bytes: Uint8Array | null, now = 0): readonly FetchEffect[] {
    return this.#track(this.part("job", this.#request, bytes, millis(now)));
  }

  override lookedUp(job: string, missing: readonly Artifact[]): readonly FetchEffect[] {
    return this.#track(super.lookedUp(job, missing));
  }

  override kept(...args: Parameters<Fetches["kept"]>): readonly FetchEffect[] {
    return this.#track(super.kept(...args));
  }

  override tick(...args: Parameters<Fetches["tick"]>): readonly FetchEffect[] {
    return this.#track(super.tick(...args));
  }

  #track(effects: readonly FetchEffect[]): readonly FetchEffect[] {
    for (const effect of effects) if (effect.kind === "get") this.#request = effect.request;
    return effects;
  }
}

describe("Fetches", () => {
  function wanting(): Fetching {
    const fetches = new Fetching(["m1", "m2", "m3"]);
    expect(fetches.want("job", "m2", [FILE])).toEqual([
      { kind: "lookUp", job: "job", files: [FILE] },
    ]);
    expect(fetches.lookedUp("job", [FILE])).toMatchObject([{ kind: "get", from: "m2", offset: 0 }]);
    return fetches;
  }

  it("fetches files from the manager that ordered them", () => {
    const fetches = wanting();
    expect(fetches.answer(BYTES.subarray(0, 2))).toMatchObject([
      { kind: "get", from: "m2", offset: 2 },
    ]);
    const last = fetches.answer(BYTES.subarray(2));
    expect(last).toEqual([{ kind: "keep", job: "job", hash: HASH, bytes: BYTES }]);
    expect(fetches.kept(KEPT, millis(0))).toEqual([{ kind: "ready", job: "job" }]);
    expect(fetches.size).toBe(0);
  });

  it("fetches files from another manager when the ordering one is unavailable", () => {
    const fetches = wanting();
    const get = (from: string) => [{ kind: "get", from, offset: 0 }];
    expect(fetches.answer(null)).toMatchObject(get("m1"));
    expect(fetches.answer(null)).toMatchObject(get("m3"));
    // All managers were asked; the next round follows after a pause.
    expect(fetches.answer(null)).toEqual([]);
    expect(fetches.nextDeadline()).toBe(500);
    expect(fetches.tick(millis(500))).toMatchObject(get("m2"));
  });

  it("restarts a file from another manager when a copy is damaged", () => {
    const fetches = wanting();
    fetches.answer(BYTES);
    const next = fetches.kept(DAMAGED, millis(0));
    expect(next).toMatchObject([{ kind: "get", from: "m1", offset: 0 }]);
    fetches.answer(BYTES);
    expect(fetches.kept(KEPT, millis(0))).toEqual([{ kind: "ready", job: "job" }]);
  });

  it("fails the job when every copy is damaged, and at once when the disk is full", () => {
    const damaged = wanting();
    let effects: ReturnType<typeof damaged.kept> = [];
    for (let copies = 0; effects[0]?.kind !== "failed"; copies++) {
      expect(copies).toBeLessThan(10);
      damaged.tick(millis(copies * 500));
      damaged.answer(BYTES, copies * 500);
      effects = damaged.kept(DAMAGED, millis(copies * 500));
    }
    const problem = "bundle.mjs: what came is not what its hash says";
    expect([effects, damaged.size]).toMatchObject([[{ kind: "failed", problem }], 0]);
    const full = wanting();
    full.answer(BYTES);
    expect(full.kept({ ...KEPT, problem: "no room" }, millis(0))).toMatchObject([
      { kind: "failed", problem: "bundle.mjs: no room" },
    ]);
  });

  it("switches to the new leader of the job", () => {
    const fetches = wanting();
    fetches.follow("job", "m3");
    expect(fetches.answer(BYTES.subarray(0, 1))).toMatchObject([
      { kind: "get", from: "m3", offset: 1 },
    ]);
  });

  it("ignores answers to a superseded request (T10)", () => {
    const fetches = wanting();
    const get = { kind: "get", from: "m3", offset: 0 };
    fetches.forget("job");
    fetches.want("job", "m3", [FILE]);
    expect(fetches.lookedUp("job", [FILE])).toMatchObject([{ ...get, request: 2 }]);
    // A late answer to the superseded request must not be mistaken for the current one.
    expect(fetches.part("job", 1, BYTES.subarray(0, 2), millis(0))).toEqual([]);
    expect(fetches.part("job", 2, BYTES.subarray(0, 2), millis(0))).toMatchObject([
      { kind: "get", from: "m3", offset: 2, request: 3 },
    ]);
    expect(fetches.part("job", 2, BYTES.subarray(0, 2), millis(0))).toEqual([]);
    expect(fetches.part("job", 3, BYTES.subarray(2), millis(0))).toMatchObject([{ bytes: BYTES }]);
  });

  it("ignores a late chunk of the previous file while it stores an empty file", () => {
    const empty = { path: "empty", hash: "ee".repeat(32), bytes: 0 };
    const fetches = wanting();
    fetches.part("job", 1, BYTES, millis(0));
    fetches.forget("job");
    fetches.want("job", "m2", [FILE, empty]);
    fetches.lookedUp("job", [FILE, empty]);
    // The disk has stored a file of the superseded request; the answer of the current one comes after it.
    expect(fetches.kept(KEPT, millis(0))).toMatchObject([{ kind: "keep", hash: empty.hash }]);
    expect(fetches.part("job", 2, BYTES, millis(0))).toEqual([]);
    expect(fetches.kept({ ...KEPT, hash: empty.hash }, millis(0))).toMatchObject([
      { kind: "ready" },
    ]);
  });

  it("fails the job with a reason when no manager has a file", () => {
    const fetches = wanting();
    let effects = fetches.answer(null);
    for (let now = 0; effects[0]?.kind !== "failed"; now += 500) {
      expect(now).toBeLessThan(60_000);
      effects = fetches.answer(null, now);
      if (effects.length === 0) fetches.tick(millis(now + 500));
    }
    expect(effects).toMatchObject([
      { kind: "failed", problem: expect.stringContaining("could not be fetched") },
    ]);
    expect(fetches.size).toBe(0);
    expect(fetches.nextDeadline()).toBe(null);
  });
});
