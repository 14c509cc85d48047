import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { checkRequirements, idsIn, Requirements, type SourceFile } from "./requirements.ts";

const page = (rows: string): string =>
  `# Requirements\n\n## SW: the queue\n\n| id | requirement | implemented in | shown by |
| --- | --- | --- | --- |\n${rows}`;
const source = (path: string, text: string): SourceFile => ({ path, text });
const writer = source("src/core/writer.ts", "/** Counts from the first entry. (SW-3) */\n");
const test = source("src/core/writer.test.ts", 'it("counts from the first entry (SW-3)");\n');
const CURRENT = "| SW-3 | A sentence. | `core/writer.ts` | `core/writer.test.ts` |\n";

const messages = (text: string, ...files: SourceFile[]): string[] =>
  new Requirements(text, files).problems().map(({ message }) => message);

describe("ids", () => {
  it.each([
    ["(SW-3, AD-28.10)", ["SW-3", "AD-28.10"]],
    ["SW-3..5", ["SW-3", "SW-4", "SW-5"]],
    ["AD-28.1..3.", ["AD-28.1", "AD-28.2", "AD-28.3"]],
    ["B-52a and AD-33a.8", ["B-52a", "AD-33a.8"]],
    ["W1 holds; eu-west-1, X-Forwarded-2x", []],
  ])("in %j are found", (text, ids) => {
    expect(idsIn(text)).toEqual(ids);
  });
});

describe("the page of requirements", () => {
  it("agrees with the sources of this repository", () => {
    expect(checkRequirements(fileURLToPath(new URL("..", import.meta.url)))).toEqual([]);
  });

  it("is accepted when every id has a row and the columns are current", () => {
    expect(messages(page(CURRENT), writer, test)).toEqual([]);
  });

  it("must have a row for an id in a comment, in a test and in a document", () => {
    const others = ["src/a.ts", "test/b.test.ts", "docs/c.md"].map((path) =>
      source(path, path === "src/a.ts" ? "// Why. (SW-4)\n" : "(SW-4)\n"),
    );
    expect(messages(page(CURRENT), writer, test, ...others)).toEqual(
      Array(3).fill("SW-4 has no row in docs/requirements.md"),
    );
  });

  it("does not take code and names of standards for ids", () => {
    const code = source("src/a.ts", 'const zone = "ZONE-4";\n// Bytes are UTF-8, sums SHA-256.\n');
    expect(messages(page(CURRENT), writer, test, code)).toEqual([]);
    expect(
      messages(page(CURRENT), writer, test, source("src/a.ts", "// As ZONE-4 says.\n")),
    ).toEqual(["ZONE-4 has no row in docs/requirements.md"]);
  });

  it("may not keep a row that only documents name, nor two of one id", () => {
    const vanished = "| SW-9 | Gone. |  |  |\n";
    const found = messages(
      page(CURRENT + CURRENT + vanished),
      writer,
      test,
      source("docs/a.md", "SW-9"),
    );
    expect(found).toEqual(["SW-3 has two rows", "nothing in the sources names SW-9"]);
  });

  it("is out of date when a file has moved, and is written again with its sentences", () => {
    const moved = source("src/core/log/writer.ts", writer.text);
    expect(messages(page(CURRENT), moved, test)).toEqual([
      "is out of date: npx tsx tools/requirements.ts --write",
    ]);
    const rows = `${CURRENT}| SW-9 | Gone. |  |  |\n`;
    const written = new Requirements(page(rows), [moved, test]).written();
    expect(written).toBe(page(CURRENT.replace("core/writer.ts", "core/log/writer.ts")));
  });

  it("names three files and counts the rest, and drops a family without rows", () => {
    const files = [1, 2, 3, 4, 5].map((n) => source(`src/${n}.ts`, "// (SW-3)\n"));
    const text = `${page(CURRENT)}\n## CW: gone\n\n| id | requirement | implemented in | shown by |
| --- | --- | --- | --- |\n| CW-1 | Gone. |  |  |\n`;
    expect(new Requirements(text, files).written()).toBe(
      page("| SW-3 | A sentence. | `1.ts`, `2.ts`, `3.ts` +2 |  |\n"),
    );
  });

  it("asks for lists and ranges that can be searched for", () => {
    for (const short of ["SW-3, 4", "SW-3 to SW-5", "SW-3 to 5"]) {
      const found = messages(page(CURRENT), writer, test, source("src/a.ts", `// Why. (${short})`));
      expect(found).toContain("write each id in full, or a range as SW-3..5");
    }
  });
});
