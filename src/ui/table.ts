/**
 * Tables of the end result: columns as wide as their widest cell, names at the left, figures at the
 * right. A table that would be too wide first cuts its last column when that holds text, then its
 * names, and only then leaves out columns from the right; callers split wide tables into two, so that
 * no figure is lost at 80 columns.
 */

import { type Line, type Span, span } from "./lines.ts";
import { Style } from "./style.ts";
import { clean, padded, textWidth } from "./text.ts";

export interface Column {
  readonly title: string;
  readonly align: "left" | "right";
}

export type Cell = Span | string;

export interface Table {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
}

const GAP = 2;
const INDENT = 2;
const NAME_MIN = 12;

export function tableWidth(table: Table): number {
  return widths(table).reduce((sum, width) => sum + width + GAP, INDENT - GAP);
}

export function tableLines(table: Table, width: number): Line[] {
  const sizes = widths(table);
  const total = (): number => sizes.reduce((sum, size) => sum + size + GAP, INDENT - GAP);
  const narrow = (index: number): void => {
    const size = sizes[index] ?? 0;
    sizes[index] = Math.max(Math.min(NAME_MIN, size), size - Math.max(0, total() - width));
  };
  const last = sizes.length - 1;
  if (last > 0 && table.columns[last]?.align === "left") narrow(last);
  for (let index = 0; index < last; index++) narrow(index);
  while (sizes.length > 2 && total() > width) sizes.pop();
  const head = sizes.map((size, index) => {
    const { title, align } = table.columns[index] ?? { title: "", align: "left" as const };
    return span(cellText(title, size, align, index), Style.dim);
  });
  const body = table.rows.map((row) =>
    sizes.map((size, index) => {
      const cell = row[index] ?? "";
      const { text, style } = typeof cell === "string" ? span(cell) : cell;
      return span(cellText(text, size, table.columns[index]?.align ?? "left", index), style);
    }),
  );
  return [head, ...body];
}

function cellText(text: string, size: number, align: "left" | "right", index: number): string {
  return `${" ".repeat(index === 0 ? INDENT : GAP)}${padded(clean(text), size, align)}`;
}

function widths({ columns, rows }: Table): number[] {
  return columns.map(({ title }, index) => {
    let widest = textWidth(title);
    for (const row of rows) {
      const cell = row[index] ?? "";
      widest = Math.max(widest, textWidth(clean(typeof cell === "string" ? cell : cell.text)));
    }
    return widest;
  });
}
