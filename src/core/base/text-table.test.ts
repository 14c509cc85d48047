import { expect, it } from "vitest";
import { columnWidths, headedTable, paddedRow, tableLines } from "./text-table.ts";

it("columns are as wide as their widest cell, without trailing blanks", () => {
  expect(
    headedTable(
      ["name", "state"],
      [
        ["a", "alive"],
        ["longer", ""],
      ],
    ),
  ).toBe("NAME    STATE\na       alive\nlonger");
});

it("numbers are right-aligned", () => {
  const rows = [
    ["step", "p99"],
    ["home", "1.00 ms"],
  ];
  expect(tableLines(rows, ["left", "right"])).toEqual(["step      p99", "home  1.00 ms"]);
});

it("wide characters take two cells, and escape sequences none", () => {
  expect(
    tableLines([
      ["商店", "x"],
      ["\u001b[31mred\u001b[0m", "y"],
    ]),
  ).toEqual(["商店  x", "red   y"]);
});

it("a row may be shorter than the widest", () => {
  expect(tableLines([["a"], ["b", "c"]])).toEqual(["a", "b  c"]);
});

it("a cell that is wider than its column is cut", () => {
  expect(columnWidths([["abcdef"]])).toEqual([6]);
  expect(paddedRow(["abcdef"], [4], [])).toEqual(["abc…"]);
});
