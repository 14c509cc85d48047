import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assert, assertNever, Defect } from "./assert.ts";
import { ByteReader, ByteWriter, decodeUtf8, encodeUtf8 } from "./bytes.ts";
import { Heap } from "./heap.ts";
import { Random } from "./random.ts";

describe("assertions", () => {
  it("throw a defect that names the violated invariant", () => {
    expect(() => assert(true, "fine")).not.toThrow();
    expect(() => assert(false, "the sky is up")).toThrow(
      new Defect("invariant broken: the sky is up"),
    );
    expect(() => assertNever("x" as never)).toThrow(Defect);
  });
});

describe("bytes", () => {
  const item = fc.oneof(
    fc.record({ kind: fc.constant("varint" as const), value: fc.maxSafeNat() }),
    fc.record({
      kind: fc.constant("signed" as const),
      value: fc.integer({ min: -(2 ** 51), max: 2 ** 51 }),
    }),
    fc.record({ kind: fc.constant("float64" as const), value: fc.double() }),
    fc.record({ kind: fc.constant("uint8" as const), value: fc.nat(255) }),
    fc.record({ kind: fc.constant("bytes" as const), value: fc.uint8Array({ maxLength: 300 }) }),
    fc.record({
      kind: fc.constant("text" as const),
      value: fc.string({ unit: "grapheme", maxLength: 50 }),
    }),
  );

  it("come back as they were written, and a cut is noticed", () => {
    fc.assert(
      fc.property(fc.array(item, { maxLength: 30 }), (items) => {
        const writer = new ByteWriter(1);
        for (const one of items) {
          if (one.kind === "bytes") writer.bytes(one.value);
          else if (one.kind === "text") writer.text(one.value);
          else writer[one.kind](one.value);
        }
        const bytes = writer.take();
        expect(bytes.length).toBe(writer.length);
        const reader = new ByteReader(bytes);
        for (const one of items) expect(reader[one.kind]()).toEqual(one.value);
        expect(reader.remaining).toBe(0);
        expect(reader.failed).toBe(false);
        if (bytes.length === 0) return;
        const cut = new ByteReader(bytes.subarray(0, bytes.length - 1));
        for (const one of items) cut[one.kind]();
        expect(cut.failed).toBe(true);
      }),
    );
  });

  it("turn to zeros, never to an exception, when they are rubbish", () => {
    const calls = fc.array(
      fc.constantFrom("varint", "signed", "float64", "uint8", "bytes", "text"),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), calls, (bytes, methods) => {
        const reader = new ByteReader(bytes);
        for (const method of methods) reader[method]();
        expect(reader.remaining).toBeGreaterThanOrEqual(0);
      }),
    );
    const endless = new ByteReader(new Uint8Array(20).fill(0xff));
    expect(endless.varint()).toBe(0);
    expect(endless.failed).toBe(true);
  });

  it("refuse a text longer than allowed", () => {
    const writer = new ByteWriter();
    writer.text("hello");
    const reader = new ByteReader(writer.take());
    expect(reader.text(4)).toBe("");
    expect(reader.failed).toBe(true);
  });

  it("encode and decode UTF-8 like the host", () => {
    // Lone surrogates included.
    const codes = fc.array(fc.integer({ min: 0, max: 0x10ffff }), { maxLength: 40 });
    const anyText = codes.map((list) => String.fromCodePoint(...list));
    const [encoder, decoder] = [new TextEncoder(), new TextDecoder("utf-8", { ignoreBOM: true })];
    fc.assert(
      fc.property(anyText, (text) => {
        const bytes = encodeUtf8(text);
        expect([...bytes]).toEqual([...encoder.encode(text)]);
        expect(decodeUtf8(bytes)).toBe(decoder.decode(bytes));
      }),
    );
    expect(encodeUtf8("\ud800x")).toEqual(new Uint8Array([0xef, 0xbf, 0xbd, 0x78]));
    expect(decodeUtf8(new Uint8Array([0xc0, 0x80, 0x41, 0xed, 0xa0, 0x80]))).toContain("A");
  });
});

describe("a heap", () => {
  interface Item {
    readonly id: number;
    key: number;
    place: number;
  }
  const first = (a: Item, b: Item): number => a.key - b.key || a.id - b.id;

  it("gives the smallest first, whatever was added, moved and removed", () => {
    const key = fc.nat(20);
    const move = fc.oneof(
      fc.record({ kind: fc.constant("push" as const), key }),
      fc.record({ kind: fc.constant("pop" as const) }),
      fc.record({ kind: fc.constant("move" as const), which: fc.nat(), key }),
      fc.record({ kind: fc.constant("remove" as const), which: fc.nat() }),
    );
    fc.assert(
      fc.property(fc.array(move, { maxLength: 120 }), (moves) => {
        const heap = new Heap<Item>((a, b) => first(a, b) < 0);
        const model: Item[] = [];
        for (const [id, one] of moves.entries()) {
          const item = "which" in one ? model[one.which % model.length] : undefined;
          if (one.kind === "push") {
            model.push({ id, key: one.key, place: -1 });
            heap.push(model.at(-1) as Item);
          } else if (one.kind === "pop") {
            expect(heap.pop()).toBe(model.sort(first).shift());
          } else if (item !== undefined && one.kind === "move") {
            item.key = one.key;
            heap.moved(item);
          } else if (item !== undefined) {
            heap.remove(item);
            model.splice(model.indexOf(item), 1);
            expect(item.place).toBe(-1);
          }
          expect([heap.size, heap.peek()]).toEqual([model.length, [...model].sort(first)[0]]);
        }
      }),
    );
  });

  it("holds an item once", () => {
    const heap = new Heap<Item>((a, b) => first(a, b) < 0);
    const item = { id: 1, key: 1, place: -1 };
    heap.push(item);
    expect(() => heap.push(item)).toThrow(Defect);
  });
});

describe("random numbers", () => {
  it("repeat for the same seed and label, and differ for others", () => {
    const draw = (random: Random) => Array.from({ length: 5 }, () => random.uint32());
    expect(draw(new Random("a"))).toEqual(draw(new Random("a")));
    expect(draw(new Random("a"))).not.toEqual(draw(new Random("b")));
    expect(draw(new Random(7).fork("x"))).toEqual(draw(new Random(7).fork("x")));
    expect(draw(new Random(7).fork("x"))).not.toEqual(draw(new Random(7).fork("y")));
    const parent = new Random(7);
    const forked = parent.fork("x");
    forked.uint32();
    expect(draw(parent)).toEqual(draw(new Random(7)));
  });

  it("are uniform enough: each of ten values comes about a tenth of the time", () => {
    const random = new Random("uniform");
    const counts = new Array<number>(10).fill(0);
    for (let i = 0; i < 100_000; i++) {
      const at = random.below(10);
      counts[at] = (counts[at] ?? 0) + 1;
    }
    // Chi square with 9 degrees of freedom: 27.9 is one in a thousand, and the seed is fixed.
    const chi = counts.reduce((sum, n) => sum + (n - 10_000) ** 2 / 10_000, 0);
    expect(chi).toBeLessThan(27.9);
  });

  it("stay in their bounds, and a shuffle keeps every item", () => {
    fc.assert(
      fc.property(
        fc.integer(),
        fc.integer({ min: 1, max: 2 ** 40 }),
        fc.array(fc.nat()),
        (seed, bound, items) => {
          const random = new Random(seed);
          const below = random.below(bound);
          expect(below >= 0 && below < bound && Number.isInteger(below)).toBe(true);
          const float = random.float();
          expect(float >= 0 && float < 1).toBe(true);
          expect(random.between(3, 4)).toBeLessThan(4);
          expect(random.shuffle([...items]).sort()).toEqual([...items].sort());
          if (items.length > 0) expect(items).toContain(random.pick(items));
        },
      ),
    );
    expect(() => new Random(1).below(0)).toThrow(Defect);
  });
});
