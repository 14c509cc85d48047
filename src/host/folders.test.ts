import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { makeFolder } from "./folders.ts";

let place: string;

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), "hyperscale-folders-"));
});
afterAll(() => rm(place, { recursive: true, force: true }));

it("creates missing folders, returns the outermost, and keeps existing ones", async () => {
  const deep = join(place, "a", "b", "c");
  expect(await makeFolder(deep, { mode: 0o700 })).toBe(join(place, "a"));
  expect((await stat(deep)).mode & 0o777).toBe(0o700);
  expect(await makeFolder(deep)).toBeUndefined();
  expect((await Promise.all([1, 2, 3].map(() => makeFolder(join(place, "x", "y"))))).length).toBe(
    3,
  );
});

it("rejects a file in the way", async () => {
  const file = join(place, "file");
  await writeFile(file, "");
  await expect(makeFolder(file)).rejects.toThrow("EEXIST");
  await expect(makeFolder(join(file, "inside"))).rejects.toThrow("ENOTDIR");
});

it.skipIf(process.platform !== "linux")("fails where no folder can be created", async () => {
  await expect(makeFolder("/proc/hyperscale/logs")).rejects.toThrow("ENOENT");
});
