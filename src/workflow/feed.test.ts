/** Where rows come from, and what is said when they cannot be had. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { feed } from "./feed.ts";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "feeds-"));
  const files = {
    "users.csv": '\uFEFFname,note\nada,"hi, there"\n\nbob,"two\nlines"\n',
    "users.tsv": "name\tage\nada\t36\n",
    "broken.csv": 'name\n"ada\n',
    "empty.csv": "name\n",
    "rows.json": '[{"id":1},{"id":2}]',
    "rows.ndjson": '{"id":1}\n\n{"id":2}\n',
    "object.json": "{}",
    "broken.json": "[1,",
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
});
afterAll(() => rm(folder, { recursive: true }));

it("reads CSV with quotes, line ends inside them, a byte order mark and other delimiters", async () => {
  const rows = await feed.csv("users.csv").load(folder);
  expect([rows.length, rows.row(0), rows.row(1)]).toEqual([
    2,
    { name: "ada", note: "hi, there" },
    { name: "bob", note: "two\nlines" },
  ]);
  const tabs = await feed.csv("users.tsv", { delimiter: "\t" }).load(folder);
  expect(tabs.row(0)).toEqual({ name: "ada", age: "36" });
});

it("reads JSON arrays and lines of JSON, and begins again at the end", async () => {
  for (const file of ["rows.json", "rows.ndjson"]) {
    const rows = await feed.json<{ id: number }>(file).load(folder);
    expect([0, 1, 2].map((index) => rows.row(index).id)).toEqual([1, 2, 1]);
  }
});

it("makes rows without end", async () => {
  const rows = await feed.generate((index) => ({ id: index * 2 })).load(folder);
  expect([rows.length, rows.row(1_000_000).id]).toEqual([Number.POSITIVE_INFINITY, 2_000_000]);
});

it.each([
  ["a missing file", () => feed.csv("nowhere.csv"), /cannot read the data file .*nowhere\.csv/],
  ["broken CSV", () => feed.csv("broken.csv"), /broken\.csv is not proper CSV/],
  ["CSV without rows", () => feed.csv("empty.csv"), /^feed\.csv\("empty\.csv"\) has no rows/],
  ["broken JSON", () => feed.json("broken.json"), /broken\.json is not proper JSON/],
  ["JSON that is no list", () => feed.json("object.json"), /must hold a JSON array/],
  ["no rows", () => feed.rows([]), /has no rows/],
])("refuses %s by name", async (_name, make, message) => {
  await expect((make() as ReturnType<typeof feed.json>).load(folder)).rejects.toThrow(message);
});

it("refuses an order that does not exist", () => {
  expect(() => feed.rows([1], { order: "shuffled" as never })).toThrow(/order is "shuffled"/);
});
