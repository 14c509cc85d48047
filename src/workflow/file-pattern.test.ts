import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { matchingFiles } from "./file-pattern.ts";

const FILES = [
  "a.png",
  "b.txt",
  ".hidden.png",
  "in/c.png",
  "in/d.PNG",
  "in/deep/e.png",
  "x+y/f.png",
];

describe("files of a pattern", () => {
  let folder = "";

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "hyperscale-pattern-"));
    for (const path of [...FILES, ".secret/g.png"]) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), path);
    }
    await symlink(join(folder, "a.png"), join(folder, "link.png"));
    await symlink(join(folder, "in"), join(folder, "loop.png"));
  });

  afterAll(() => rm(folder, { recursive: true }));

  it.each([
    ["*.png", ["a.png", "link.png"]],
    ["?.*", ["a.png", "b.txt"]],
    ["in", ["in/c.png", "in/d.PNG", "in/deep/e.png"]],
    ["in/*", ["in/c.png", "in/d.PNG"]],
    ["in/**/*.png", ["in/c.png", "in/deep/e.png"]],
    ["**/deep/*", ["in/deep/e.png"]],
    ["*/*.png", ["in/c.png", "x+y/f.png"]],
    ["x+y/*", ["x+y/f.png"]],
    [".hidden*", [".hidden.png"]],
    ["in/../*.txt", ["in/../b.txt"]],
    ["none*", []],
    ["**/**/e.png", ["in/deep/e.png"]],
  ])("%s", async (pattern, files) => {
    expect(await matchingFiles(pattern, folder)).toEqual(files);
  });

  it("names a missing folder", async () => {
    await expect(matchingFiles("absent/*.png", folder)).rejects.toThrow(
      /cannot read the folder .*absent of feed\.files\("absent\/\*\.png"\)/,
    );
  });
});
