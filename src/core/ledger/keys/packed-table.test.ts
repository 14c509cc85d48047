import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fromAscii } from "../../base/bytes.ts";
import { Random } from "../../base/random.ts";
import { PackedTable, RECORD_BYTES_MAX } from "./packed-table.ts";
import { SlotLists } from "./slot-lists.ts";

function body(random: Random, lengthMax: number): Uint8Array {
  return new Uint8Array(random.below(lengthMax + 1)).fill(random.below(256));
}

/** The table and a map that holds the same; both change together. */
class Pair {
  readonly table: PackedTable;
  readonly model = new Map<string, Uint8Array>();

  constructor(seed: number) {
    this.table = new PackedTable(seed);
  }

  put(key: string, content: Uint8Array): void {
    const slot = this.table.find(key);
    if (slot < 0) this.table.insert(key, content);
    else this.table.replace(slot, content);
    this.model.set(key, content);
  }

  remove(key: string): void {
    const slot = this.table.find(key);
    expect(slot >= 0).toBe(this.model.delete(key));
    if (slot >= 0) this.table.remove(slot);
  }

  check(): void {
    expect(this.table.size).toBe(this.model.size);
    for (const [key, content] of this.model) {
      const slot = this.table.find(key);
      expect(fromAscii(this.table.keyBytes(slot))).toBe(key);
      expect(Buffer.compare(this.table.body(slot), content)).toBe(0);
    }
  }
}

describe("the packed table", () => {
  it("holds what a map holds, whatever is put, replaced and removed", () => {
    const step = fc.tuple(fc.boolean(), fc.nat(40), fc.nat(60));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), fc.nat(3), (steps, seed) => {
        const pair = new Pair(seed);
        for (const [put, key, length] of steps) {
          if (put) pair.put(`key-${key}`, new Uint8Array(length).fill(key));
          else pair.remove(`key-${key}`);
        }
        pair.check();
      }),
      { numRuns: 200, seed: 51 },
    );
  });

  it("survives many chunks of records of all sizes, with holes made anywhere", () => {
    const random = new Random("chunks");
    const pair = new Pair(5);
    for (let i = 0; i < 20_000; i++) {
      const key = `key-${random.below(1_500)}`;
      if (random.chance(0.6)) pair.put(key, body(random, random.chance(0.02) ? 8_000 : 200));
      else pair.remove(key);
    }
    pair.check();
  });

  it("releases memory: after many generations it needs at most 1.5 times its content", () => {
    const random = new Random("lives");
    const pair = new Pair(0);
    let content = 0;
    for (let i = 0; i < 30_000; i++) {
      pair.put(`key-${i}`, body(random, 300));
      // Not in the order of arrival: holes everywhere.
      if (i >= 3_000) {
        const key = `key-${i - 3_000 + random.below(2_900)}`;
        if (pair.model.has(key)) pair.remove(key);
        else pair.remove([...pair.model.keys()][0] ?? "");
      }
    }
    for (const [key, value] of pair.model) content += key.length + value.length + 8;
    expect(pair.table.size).toBe(3_000);
    expect(pair.table.bytes).toBeLessThan(content * 1.5 + 200_000);
    pair.check();
  });

  it("accepts records up to its bound and no larger ones", () => {
    const table = new PackedTable();
    const slot = table.insert("k", new Uint8Array(RECORD_BYTES_MAX - 9));
    expect(table.body(slot)).toHaveLength(RECORD_BYTES_MAX - 9);
    expect(() => table.insert("x", new Uint8Array(RECORD_BYTES_MAX - 8))).toThrow("bound");
    expect(() => table.insert("ä", new Uint8Array(1))).toThrow("ASCII");
  });
});

describe("lists of slots", () => {
  it("keep order under appends, moves and removals, like arrays", () => {
    const step = fc.tuple(fc.constantFrom("append", "move", "remove"), fc.nat(20), fc.nat(2));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
        const lists = new SlotLists(3);
        const model: number[][] = [[], [], []];
        for (const [what, slot, list] of steps) {
          const from = model.findIndex((slots) => slots.includes(slot));
          if (from < 0 !== (what === "append")) continue;
          if (what === "append") lists.append(list, slot);
          else if (what === "move") lists.move(list, slot);
          else lists.remove(slot);
          if (from >= 0) model[from] = (model[from] ?? []).filter((held) => held !== slot);
          if (what !== "remove") model[list]?.push(slot);
        }
        model.forEach((slots, list) => {
          const walked: number[] = [];
          for (let at = lists.first(list); at >= 0; at = lists.after(at)) walked.push(at);
          expect(walked).toEqual(slots);
          expect(lists.size(list)).toBe(slots.length);
        });
      }),
      { numRuns: 200, seed: 52 },
    );
  });
});
