/**
 * A picture of the terminal: one code point and one style per cell. Drawing beyond the border is clipped, never an
 * error. A wide character takes two cells, the second marked TAIL; overwriting half of one blanks the other half, so a
 * grid never contains half a character.
 */

import { assert } from "../core/base/assert.ts";
import { charWidth, shorten, textWidth } from "../core/base/terminal-text.ts";
import { Style, type StyleId } from "./style.ts";

export const TAIL = 0;
const SPACE = 0x20;

export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export class Grid {
  readonly columns: number;
  readonly rows: number;
  readonly codes: Uint32Array;
  readonly styles: Uint8Array;
  readonly #codeRows: readonly Buffer[];
  readonly #styleRows: readonly Buffer[];

  constructor(columns: number, rows: number) {
    assert(columns >= 1 && rows >= 1, "a grid has at least one cell");
    this.columns = columns;
    this.rows = rows;
    this.codes = new Uint32Array(columns * rows).fill(SPACE);
    this.styles = new Uint8Array(columns * rows);
    const width = this.codes.BYTES_PER_ELEMENT * columns;
    const each = Array.from({ length: rows }, (_, row) => row);
    this.#codeRows = each.map((row) => Buffer.from(this.codes.buffer, row * width, width));
    this.#styleRows = each.map((row) => Buffer.from(this.styles.buffer, row * columns, columns));
  }

  clear(): void {
    this.codes.fill(SPACE);
    this.styles.fill(Style.text);
  }

  clearRows(y: number, count: number): void {
    const from = y * this.columns;
    const to = Math.min(this.rows, y + count) * this.columns;
    this.codes.fill(SPACE, from, to);
    this.styles.fill(Style.text, from, to);
  }

  copyFrom(other: Grid): void {
    assert(other.columns === this.columns && other.rows === this.rows, "copies have one size");
    this.codes.set(other.codes);
    this.styles.set(other.styles);
  }

  /** Whether a row is the same in both, cell by cell; compared as memory, since it is called often. */
  sameRow(other: Grid, row: number): boolean {
    const codes = this.#codeRows[row];
    const styles = this.#styleRows[row];
    const otherCodes = other.#codeRows[row];
    const otherStyles = other.#styleRows[row];
    if (!codes || !styles || !otherCodes || !otherStyles) return false;
    return codes.equals(otherCodes) && styles.equals(otherStyles);
  }

  /** One narrow character. */
  set(x: number, y: number, code: number, style: StyleId): void {
    if (x < 0 || y < 0 || x >= this.columns || y >= this.rows) return;
    const at = y * this.columns + x;
    this.#breakWide(x, at);
    this.codes[at] = code;
    this.styles[at] = style;
  }

  /** Draws at most `width` cells of text; returns the cells drawn. Cuts end in "…". */
  text(x: number, y: number, text: string, style: StyleId = Style.text, width = Infinity): number {
    if (y < 0 || y >= this.rows) return 0;
    const limit = Math.min(x + width, this.columns);
    const room = limit - x;
    if (room <= 0) return 0;
    const shown = shorten(text, room);
    let column = x;
    for (let index = 0; index < shown.length; index++) {
      const code = shown.codePointAt(index) ?? SPACE;
      if (code > 0xffff) index += 1;
      const cells = charWidth(code);
      if (cells === 0) continue;
      if (column + cells > limit) break;
      this.#put(column, y, code, style, cells);
      column += cells;
    }
    return column - x;
  }

  textRight(right: number, y: number, text: string, style: StyleId = Style.text): number {
    const width = textWidth(text);
    return this.text(right - width, y, text, style, width);
  }

  fill({ x, y, width, height }: Rect, code: number, style: StyleId): void {
    for (let row = y; row < y + height; row++) {
      for (let column = x; column < x + width; column++) this.set(column, row, code, style);
    }
  }

  /** The characters alone, a string per row without trailing blanks. */
  lines(): string[] {
    const lines: string[] = [];
    for (let row = 0; row < this.rows; row++) {
      let line = "";
      for (let column = 0; column < this.columns; column++) {
        const code = this.codes[row * this.columns + column] ?? SPACE;
        if (code !== TAIL) line += String.fromCodePoint(code);
      }
      lines.push(line.trimEnd());
    }
    return lines;
  }

  #put(x: number, y: number, code: number, style: StyleId, cells: number): void {
    if (x < 0) return;
    this.set(x, y, code, style);
    if (cells === 1) return;
    const at = y * this.columns + x + 1;
    this.#breakWide(x + 1, at, true);
    this.codes[at] = TAIL;
    this.styles[at] = style;
  }

  /** The cell is about to be overwritten: blanks the other half of a wide character. */
  #breakWide(x: number, at: number, asTail = false): void {
    if (!asTail && x > 0 && this.codes[at] === TAIL) this.codes[at - 1] = SPACE;
    if (x + 1 < this.columns && this.codes[at + 1] === TAIL && this.codes[at] !== TAIL) {
      this.codes[at + 1] = SPACE;
    }
  }
}
