/**
 * Tables of the end result: columns as wide as their widest cell, names left-aligned, numbers right-aligned. A table
 * that would be too wide first cuts its last column when that is text, then its names, and only then drops columns from
 * the right; callers split wide tables into two, so that no value is lost at 80 columns.
 */

import { type Align, COLUMN_GAP, columnWidths, paddedRow } from "../core/base/text-table.ts";
import { type Line, type Span, span } from "./lines.ts";
import { Style, type StyleId } from "./style.ts";

export interface Column {
  readonly title: string;
  readonly align: Align;
}

export type Cell = Span | string;

export interface Table {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
}

const INDENT = 2;
const NAME_MIN = 12;

export function tableWidth(table: Table): number {
  return totalOf(columnWidths(textsOf(table)));
}

export function tableLines(table: Table, width: number): Line[] {
  const texts = textsOf(table);
  const sizes = columnWidths(texts);
  const narrow = (index: number): void => {
    const size = sizes[index] ?? 0;
    sizes[index] = Math.max(Math.min(NAME_MIN, size), size - Math.max(0, totalOf(sizes) - width));
  };
  const last = sizes.length - 1;
  if (last > 0 && table.columns[last]?.align === "left") narrow(last);
  for (let index = 0; index < last; index++) narrow(index);
  while (sizes.length > 2 && totalOf(sizes) > width) sizes.pop();
  const aligns = table.columns.map(({ align }) => align);
  return texts.map((row, at) =>
    paddedRow(row, sizes, aligns).map((text, index) => {
      const gap = " ".repeat(index === 0 ? INDENT : COLUMN_GAP);
      return span(gap + text, at === 0 ? Style.dim : styleOf(table.rows[at - 1]?.[index]));
    }),
  );
}

/** The head, then the rows; cells beyond the columns are dropped. */
function textsOf({ columns, rows }: Table): string[][] {
  const text = (cell: Cell = ""): string => (typeof cell === "string" ? cell : cell.text);
  return [
    columns.map(({ title }) => title),
    ...rows.map((row) => columns.map((_, index) => text(row[index]))),
  ];
}

function styleOf(cell: Cell = ""): StyleId {
  return typeof cell === "string" ? Style.text : cell.style;
}

function totalOf(sizes: readonly number[]): number {
  return sizes.reduce((sum, size) => sum + size + COLUMN_GAP, INDENT - COLUMN_GAP);
}
