import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { JOB_FILES_MAX } from "../core/cluster/messages.ts";
import { jobFiles } from "./job-files.ts";

describe("files of a job", () => {
  let place = "";
  const said: string[] = [];
  const bytes = Buffer.from("code");
  const module = (...folder: string[]) => ({
    ...{ name: "shop.mjs", bytes, folder: join(place, ...folder) },
  });
  const made = (paths: readonly string[], ...folder: string[]) =>
    jobFiles(module(...folder), paths, (line) => said.push(line));

  beforeAll(async () => {
    place = await mkdtemp(join(tmpdir(), "hyperscale-files-"));
    await mkdir(join(place, "team", "flows"), { recursive: true });
    await writeFile(join(place, "team", "flows", "near.csv"), "near");
    await writeFile(join(place, "far.csv"), "far");
  });

  afterAll(() => rm(place, { recursive: true }));

  it("consist of the module alone where it reads none", async () => {
    const { contents, entry, files } = await made([], "team", "flows");
    expect(entry).toBe("shop.mjs");
    expect(files.map(({ path }) => path)).toEqual(["shop.mjs"]);
    expect([...contents.values()]).toEqual([bytes]);
  });

  it("keep their relative paths, and are each sent once", async () => {
    const named = ["near.csv", "./near.csv", "../../far.csv"];
    const { contents, entry, files } = await made(named, "team", "flows");
    expect(entry).toBe("team/flows/.shop.mjs");
    expect(files.map(({ path, bytes }) => [path, bytes])).toEqual([
      ["team/flows/.shop.mjs", 4],
      ["team/flows/near.csv", 4],
      ["far.csv", 3],
    ]);
    const hash = createHash("sha256").update("far").digest("hex");
    const read = contents.get(hash);
    expect(typeof read === "function" && String(await read())).toBe("far");
  });

  it("report what is not sent", async () => {
    const { files } = await made([join(place, "far.csv")]);
    expect(files).toHaveLength(1);
    expect(said).toEqual([
      `${join(place, "far.csv")} is not sent, because its path is absolute: workers have to have it`,
    ]);
  });

  it("reject a missing file, and too many", async () => {
    await expect(made(["absent.csv"])).rejects.toThrow(
      `cannot send the data file ${join(place, "absent.csv")}`,
    );
    const many = Array.from({ length: JOB_FILES_MAX }, (_, index) => `${index}.csv`);
    await expect(made(many)).rejects.toThrow("the job has 4096 data files; at most 4095");
  });
});
