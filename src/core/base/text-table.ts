/**
 * Columns for people: each as wide as its widest cell, two spaces apart. Every table that goes to a
 * terminal is laid out here. Cells are names that users and servers gave, so they are cleaned of
 * escape sequences and measured in terminal cells, not characters.
 */

import { clean, padded, textWidth } from "./terminal-text.ts";

export type Align = "left" | "right";
type Row = readonly string[];

export const COLUMN_GAP = 2;

export function columnWidths(rows: readonly Row[]): number[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, textWidth(clean(cell)));
    });
  }
  return widths;
}

/** One cell per width: cut or padded to it. */
export function paddedRow(row: Row, widths: readonly number[], aligns: readonly Align[]): string[] {
  return widths.map((width, column) => padded(clean(row[column] ?? ""), width, aligns[column]));
}

/** One line per row, without trailing blanks. Columns without an alignment are left-aligned. */
export function tableLines(rows: readonly Row[], aligns: readonly Align[] = []): string[] {
  const widths = columnWidths(rows);
  const gap = " ".repeat(COLUMN_GAP);
  return rows.map((row) => paddedRow(row, widths, aligns).join(gap).trimEnd());
}

/** Under a head in capitals, as the commands print their lists. */
export function headedTable(head: Row, rows: readonly Row[]): string {
  return tableLines([head.map((name) => name.toUpperCase()), ...rows]).join("\n");
}
