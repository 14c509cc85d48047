/**
 * Turns one picture into the next with few bytes: only cells that differ are written, styles are set only when they
 * change, and short equal stretches are rewritten rather than skipped (a cursor move costs six bytes or more). Wrapped
 * in a synchronised update, which terminals that support it show in one piece and others ignore.
 */

import { assert } from "../core/base/assert.ts";
import { charWidth } from "../core/base/terminal-text.ts";
import { type Grid, TAIL } from "./grid.ts";

const SYNC_BEGIN = "\x1b[?2026h";
const SYNC_END = "\x1b[?2026l";
/** Equal cells up to this many are cheaper to rewrite than to skip. */
const JUMP_CELLS_MIN = 5;

/** Returns the bytes that turn `before` into `after`; everything when `before` is null. Empty when equal. */
export function paint(before: Grid | null, after: Grid, sgr: readonly string[]): string {
  assert(
    before === null || (before.columns === after.columns && before.rows === after.rows),
    "pictures that are compared have one size",
  );
  const out: string[] = [];
  let style = -1;
  for (let row = 0; row < after.rows; row++) {
    if (before?.sameRow(after, row)) continue;
    style = paintRow(before, after, row, { sgr, out, style });
  }
  if (out.length === 0) return "";
  return `${SYNC_BEGIN}${out.join("")}\x1b[0m${SYNC_END}`;
}

interface Brush {
  readonly sgr: readonly string[];
  readonly out: string[];
  readonly style: number;
}

function paintRow(before: Grid | null, after: Grid, row: number, brush: Brush): number {
  const { sgr, out } = brush;
  const { codes, styles, columns } = after;
  const base = row * columns;
  let style = brush.style;
  /** Column the terminal's cursor is in; -1 when unknown. */
  let cursor = -1;
  for (let column = 0; column < columns; column++) {
    const at = base + column;
    const code = codes[at] ?? 0;
    if (code === TAIL || !changed(before, after, at)) continue;
    if (cursor >= 0 && column - cursor > 0 && column - cursor < JUMP_CELLS_MIN) {
      column = cursor;
    } else if (column !== cursor) {
      out.push(`\x1b[${row + 1};${column + 1}H`);
      cursor = column;
    }
    const here = base + column;
    const hereStyle = styles[here] ?? 0;
    if (hereStyle !== style) {
      style = hereStyle;
      out.push(sgr[style] ?? "\x1b[0m");
    }
    const hereCode = codes[here] ?? 0x20;
    if (charWidth(hereCode) === 2) {
      // Terminals disagree on which characters are wide: blank both cells first, then place the cursor again.
      const place = `\x1b[${row + 1};${column + 1}H`;
      out.push(`  ${place}${String.fromCodePoint(hereCode)}`);
      column += 1;
      cursor = -1;
    } else {
      out.push(String.fromCodePoint(hereCode));
      cursor = column + 1;
    }
  }
  return style;
}

function changed(before: Grid | null, after: Grid, at: number): boolean {
  if (before === null) return true;
  if (before.codes[at] !== after.codes[at] || before.styles[at] !== after.styles[at]) return true;
  // A wide character is redrawn completely when its second half used to be something else.
  return after.codes[at + 1] === TAIL && before.codes[at + 1] !== TAIL;
}
