/** Planted examples: each rule of tidy refuses what it is there for, and nothing else. */

import { describe, expect, it } from "vitest";
import {
  deadExports,
  fileCircles,
  type Problem,
  reachedPlans,
  roomCircles,
  unreachedFiles,
  unusedDependencies,
  unusedEdges,
} from "./graph-checks.ts";
import { languageProblems } from "./language.ts";
import { circles, readModules } from "./modules.ts";
import type { NamedRoom } from "./rooms.ts";
import { functionProblems, ownerlessWork, purityProblems, textProblems } from "./text-checks.ts";

const rooms: readonly NamedRoom[] = [
  { name: "a", path: "src/a/", imports: ["b"], pure: false },
  { name: "b", path: "src/b/", imports: ["a"], pure: false },
];
const roomOf = (file: string): NamedRoom | undefined =>
  rooms.find(({ path }) => file.startsWith(path));
const said = (problems: readonly Problem[]): string[] =>
  problems.map(({ file, rule, message }) => `${file} [${rule}] ${message}`);
const nothing = (): boolean => false;

function tree(files: Readonly<Record<string, string>>): ReturnType<typeof readModules> {
  return readModules(new Map(Object.entries(files)));
}

describe("language", () => {
  it("reports how a comment opens and words with a better one", () => {
    const lines = [
      "/** It ends. */",
      "// The worker",
      "// is told of it.",
      'it("is dealt again", () => {',
      "/**",
      " * Whose turn",
      " * is next.",
      " */",
      "const told = 1; // a name, not a comment",
      'const text = "It is told";',
    ];
    expect(
      languageProblems("a.ts", lines).map(({ line, message }) => `${line} ${message}`),
    ).toEqual([
      '1 a comment opens with "It": name its subject',
      '2 "told": write reported, notified',
      '4 "dealt": write assigned',
      '5 a comment opens with "Whose": name its subject',
    ]);
  });
});

describe("what is reached", () => {
  const modules = tree({
    "src/a/main.ts":
      'import { one } from "./one.ts";\nnew URL("./thread.js", import.meta.url);\none();\n',
    "src/a/one.ts": "export function one(): void {}\n",
    "src/a/thread.ts": 'export {};\nimport "./deep.ts";\n',
    "src/a/deep.ts": "export {};\n",
    "src/a/lost.ts": "export {};\n",
    "src/a/lost.test.ts": 'import "./lost.ts";\n',
    "src/a/later.ts": "export {};\n",
  });
  const isPlanned = (file: string): boolean => file === "src/a/later.ts";

  it("is followed through imports and addresses, not from tests", () => {
    expect(said(unreachedFiles(modules, ["src/a/main.ts"], isPlanned))).toEqual([
      "src/a/lost.ts [unreached] no entry point reaches it",
    ]);
  });

  it("is not planned any more", () => {
    expect(reachedPlans(modules, ["src/a/main.ts"], isPlanned)).toEqual([]);
    expect(reachedPlans(modules, ["src/a/later.ts"], isPlanned)).toHaveLength(1);
  });
});

describe("exports", () => {
  it("that nobody imports are dead, whatever form they have", () => {
    const modules = tree({
      "src/a/x.ts":
        "export const used = 1;\nexport type Dead = 1;\nexport interface Taken {}\nexport { inner as renamed };\n",
      "src/a/y.ts":
        'import {\n  type Taken,\n  used as own,\n} from "./x.ts";\nexport async function lonely(): Promise<void> {}\n',
      "src/a/all.ts": "export class Any {}\n",
      "src/b/z.ts": 'import * as all from "../a/all.ts";\nexport * from "./more.ts";\n',
      "src/b/more.ts": "export const more = 1;\n",
    });
    expect(said(deadExports(modules, [], nothing))).toEqual([
      "src/a/x.ts [dead-export] nobody imports Dead",
      "src/a/x.ts [dead-export] nobody imports renamed",
      "src/a/y.ts [dead-export] nobody imports lonely",
    ]);
  });

  it("of a file are not kept alive by what a comment quotes", () => {
    const modules = tree({
      "src/a/x.ts": "export const one = 1;\n",
      "src/a/y.ts": '/*\nimport { one } from "./x.ts";\n*/\n',
    });
    expect(said(deadExports(modules, [], nothing))).toHaveLength(1);
  });

  it("of entries and planned files are for others", () => {
    const modules = tree({ "src/a/x.ts": "export const one = 1;\n" });
    expect(deadExports(modules, ["src/a/x.ts"], nothing)).toEqual([]);
    expect(deadExports(modules, [], () => true)).toEqual([]);
  });
});

describe("the import table", () => {
  it("allows nothing that nobody uses", () => {
    const modules = tree({
      "src/a/x.ts": 'import "../b/y.ts";\n',
      "src/b/y.ts": "export {};\n",
      "src/b/y.test.ts": 'import "../a/x.ts";\n',
    });
    expect(said(unusedEdges(modules, rooms, roomOf))).toEqual([
      "tools/rooms.ts [unused-edge] b may import a and does not",
    ]);
    expect(roomCircles(modules, roomOf)).toEqual([]);
  });

  it("allows no circle, between rooms or files, not even of types", () => {
    const modules = tree({
      "src/a/x.ts": 'import type { Y } from "../b/y.ts";\nexport type X = Y;\n',
      "src/b/y.ts": 'import type { X } from "../a/x.ts";\nexport type Y = X;\n',
    });
    expect(said(roomCircles(modules, roomOf))).toEqual([
      "tools/rooms.ts [room-circle] rooms import each other: a, b",
    ]);
    expect(said(fileCircles(modules))).toEqual([
      "src/a/x.ts [file-circle] import each other: src/a/x.ts, src/b/y.ts",
    ]);
  });

  it("finds each circle once, and only circles", () => {
    const edges = new Map([
      ["a", ["b", "c"]],
      ["b", ["c"]],
      ["c", ["d"]],
      ["d", ["b", "e"]],
      ["e", ["f"]],
      ["f", ["e"]],
    ]);
    expect(circles(edges)).toEqual([
      ["b", "c", "d"],
      ["e", "f"],
    ]);
  });
});

describe("dependencies", () => {
  it("without a user are refused, those of tools count by name", () => {
    const files = new Map([
      [
        "package.json",
        JSON.stringify({
          dependencies: { pino: "1", idle: "1", "@scope/part": "1" },
          devDependencies: { tsx: "1", "@types/pino": "1", forgotten: "1" },
          scripts: { go: "tsx main.ts" },
        }),
      ],
      ["src/a/x.ts", 'import { pino } from "pino";\nimport "@scope/part/deep";\n'],
    ]);
    expect(said(unusedDependencies(readModules(files), files))).toEqual([
      "package.json [dependency] idle: no file of src/ imports it",
      "package.json [dependency] forgotten: nothing in the repository names it",
    ]);
  });
});

describe("one file", () => {
  const rules = (problems: readonly Problem[]): string[] => problems.map(({ rule }) => rule);

  it("of a pure room has no clock, in code or otherwise than in words", () => {
    const file = "src/core/base/x.ts";
    expect(rules(purityProblems(file, ["const now = Date.now();"]))).toEqual(["pure"]);
    expect(rules(purityProblems(file, ["// Date.now() is for drivers", '"await"']))).toEqual([]);
  });

  it("of a service has no timer or promise of its own", () => {
    const hidden = [
      'const x = { u: "http://x", t: setTimeout(f, 1) };',
      "globalThis.setTimeout(f, 1);",
    ];
    expect(rules(ownerlessWork("src/queue/x.ts", hidden))).toEqual(["timer", "timer"]);
    expect(ownerlessWork("src/queue/x.ts", ["socket.setTimeout(1);"])).toEqual([]);
    const work = ["setTimeout(() => {}, 1);", "  void this.#load();", "const x = await y;"];
    expect(rules(ownerlessWork("src/queue/x.ts", work))).toEqual(["timer", "floating"]);
    expect(ownerlessWork("src/host/x.ts", work)).toEqual([]);
    expect(ownerlessWork("src/queue/x.test.ts", work)).toEqual([]);
  });

  it("keeps to the limits of lines, columns and functions", () => {
    const long = ["function f(): void {", ...Array<string>(80).fill("  x();"), "}"];
    expect(rules(functionProblems("src/a/x.ts", long))).toEqual(["function"]);
    expect(rules(textProblems("src/a/x.ts", Array<string>(801).fill("")))).toEqual(["length"]);
    expect(textProblems("src/a/x.test.ts", Array<string>(800).fill(""))).toEqual([]);
    expect(rules(textProblems("src/a/x.ts", ["x".repeat(121)]))).toEqual(["columns"]);
  });

  it("has no bare TODO, no focused test, no path of a machine", () => {
    const lines = ["// TODO: later", "it.only(", '"/home/somebody/x"', "// TODO(ann): until #4"];
    expect(rules(textProblems("src/a/x.ts", lines))).toEqual(["todo", "only", "path"]);
  });
});
