import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { charWidth } from "../core/base/terminal-text.ts";
import { Grid, TAIL } from "./grid.ts";
import { paint } from "./paint.ts";
import { STYLE_COUNT, sgrTable } from "./style.ts";
import { TestTerminal } from "./testing/terminal.ts";

const SGR = sgrTable("256");
const COLUMNS = 24;
const ROWS = 5;

interface Stroke {
  readonly x: number;
  readonly y: number;
  readonly text: string;
  readonly style: number;
}

const stroke: fc.Arbitrary<Stroke> = fc.record({
  x: fc.integer({ min: -5, max: COLUMNS + 5 }),
  y: fc.integer({ min: -2, max: ROWS + 2 }),
  text: fc.oneof(
    fc.string({ maxLength: 30 }),
    fc.string({ unit: fc.constantFrom("a", "注", "█", "한", " "), maxLength: 20 }),
  ),
  style: fc.nat(STYLE_COUNT - 1),
});

function draw(grid: Grid, strokes: readonly Stroke[]): Grid {
  for (const { x, y, text, style } of strokes) grid.text(x, y, text, style);
  return grid;
}

describe("a grid", () => {
  it("clips at every border and never holds half a character", () => {
    fc.assert(
      fc.property(fc.array(stroke, { maxLength: 12 }), (strokes) => {
        const grid = draw(new Grid(COLUMNS, ROWS), strokes);
        for (let at = 0; at < COLUMNS * ROWS; at++) {
          const code = grid.codes[at] ?? 0;
          const startsRow = at % COLUMNS === 0;
          if (code === TAIL) {
            expect(startsRow).toBe(false);
            expect(charWidth(grid.codes[at - 1] ?? 0)).toBe(2);
          } else if (charWidth(code) === 2) {
            expect(grid.codes[at + 1]).toBe(TAIL);
            expect((at + 1) % COLUMNS).not.toBe(0);
          }
        }
      }),
    );
  });

  it("draws nothing left of the border, and does not shift the visible part of what starts there", () => {
    const grid = new Grid(4, 1);
    grid.text(-2, 0, "abcdef");
    expect(grid.lines()).toEqual(["cdef"]);
  });
});

describe("painting", () => {
  it("turns any picture into any other on a real terminal", async () => {
    const pictures = fc.array(fc.array(stroke, { maxLength: 8 }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(pictures, async (frames) => {
        const terminal = new TestTerminal(COLUMNS, ROWS);
        let shown: Grid | null = null;
        for (const strokes of frames) {
          const next = draw(new Grid(COLUMNS, ROWS), strokes);
          terminal.write(paint(shown, next, SGR));
          shown = next;
          expect(await terminal.screen()).toEqual(next.lines());
        }
      }),
      { numRuns: 60 },
    );
  });

  it("writes nothing when nothing changed, and little when little changed", () => {
    const before = draw(new Grid(COLUMNS, ROWS), [{ x: 0, y: 0, text: "00:01 running", style: 1 }]);
    const same = draw(new Grid(COLUMNS, ROWS), [{ x: 0, y: 0, text: "00:01 running", style: 1 }]);
    const later = draw(new Grid(COLUMNS, ROWS), [{ x: 0, y: 0, text: "00:02 running", style: 1 }]);
    expect(paint(before, same, SGR)).toBe("");
    expect(paint(before, later, SGR)).toBe(`\x1b[?2026h\x1b[1;5H${SGR[1]}2\x1b[0m\x1b[?2026l`);
  });

  it("redraws a cell whose style alone changed", () => {
    const before = draw(new Grid(2, 1), [{ x: 0, y: 0, text: "ok", style: 1 }]);
    const after = draw(new Grid(2, 1), [{ x: 0, y: 0, text: "ok", style: 2 }]);
    expect(paint(before, after, SGR)).toContain(`${SGR[2]}ok`);
  });
});
