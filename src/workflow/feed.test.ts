/** Sources of rows, and the errors for unusable ones. */

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
    "people.csv": "name,age,admin,note\nada, 36 ,true,x\nbob,7.5,false,\n",
    "unsure.csv": "name,age,admin\nada,36,true\nbob,old,yes\n",
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

it("gives CSV rows the requested columns, converted to their kinds", async () => {
  const people = feed.csv("people.csv", { columns: { age: Number, name: String, admin: Boolean } });
  const rows = await people.load(folder);
  expect([rows.row(0), rows.row(1)]).toEqual([
    { age: 36, name: "ada", admin: true },
    { age: 7.5, name: "bob", admin: false },
  ]);
});

it.each([
  [
    feed.csv("people.csv", { columns: { nmae: String } }),
    'people.csv has no column "nmae"; did you mean "name"? (its columns: name, age, admin, note)',
  ],
  [
    feed.csv("empty.csv", { columns: { password: String } }),
    'empty.csv has no column "password" (its columns: name)',
  ],
  [
    feed.csv("unsure.csv", { columns: { age: Number } }),
    'unsure.csv: row 2: age is "old"; it must be a number',
  ],
  [
    feed.csv("unsure.csv", { columns: { admin: Boolean } }),
    'unsure.csv: row 2: admin is "yes"; it must be true or false',
  ],
])("rejects a CSV file without its declared columns", async (source, message) => {
  await expect((source as ReturnType<typeof feed.json>).load(folder)).rejects.toThrow(message);
});

it("rejects meaningless columns", () => {
  for (const columns of [["name"], { name: "string" }, null])
    expect(() => feed.csv("people.csv", { columns: columns as never })).toThrow(
      'feed.csv("people.csv"): columns are names, each with String, Number or Boolean: columns: { user: String }',
    );
});

it("reads JSON arrays and lines of JSON, and begins again at the end", async () => {
  for (const file of ["rows.json", "rows.ndjson"]) {
    const rows = await feed.json<{ id: number }>(file).load(folder);
    expect([0, 1, 2].map((index) => rows.row(index).id)).toEqual([1, 2, 1]);
  }
});

it("generates rows without end", async () => {
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
])("rejects %s by name", async (_name, make, message) => {
  await expect((make() as ReturnType<typeof feed.json>).load(folder)).rejects.toThrow(message);
});

it("rejects an unknown order", () => {
  expect(() => feed.rows([1], { order: "shuffled" as never })).toThrow(/order is "shuffled"/);
});
