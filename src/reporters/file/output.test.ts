import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { newResultsFolder, OutputError, probeOutputs, writeOutputs } from "./output.ts";

const run = syntheticRun({ seconds: 2 });
const page = '<title></title><script type="text/plain" id="data"></script>';
let place = "";

beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), "hyperscale-output-"));
});
afterEach(async () => {
  await rm(place, { recursive: true, force: true });
});

describe("writing results", () => {
  it("creates the folder and writes exactly three files", async () => {
    const folder = join(place, "deep", "er");
    const paths = await writeOutputs(run, { folder, page });
    expect(paths).toEqual(["summary.json", "report.html", "junit.xml"].map((f) => join(folder, f)));
    expect((await readdir(folder)).sort()).toEqual(["junit.xml", "report.html", "summary.json"]);
    expect(JSON.parse(await readFile(join(folder, "summary.json"), "utf8"))).toEqual(run);
  });

  it("makes its own folder private and leaves a named one as it is", async () => {
    const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);
    const before = process.cwd();
    const umask = process.umask(0o022);
    process.chdir(place);
    try {
      const [file = ""] = await writeOutputs(run, { page });
      expect([await modeOf(file), await modeOf(dirname(file))]).toEqual(["600", "700"]);
      const [named = ""] = await writeOutputs(run, { folder: "named", page });
      expect([await modeOf(named), await modeOf("named")]).toEqual(["644", "755"]);
    } finally {
      process.chdir(before);
      process.umask(umask);
    }
  });

  it("adds the CSV files on request", async () => {
    await writeOutputs(run, { folder: place, page, csv: true });
    expect((await readdir(place)).sort()).toEqual(
      ["junit.xml", "report.html", "series.csv", "steps.csv", "summary.json"].sort(),
    );
  });

  it("replaces the results of an earlier run in the same folder", async () => {
    await writeOutputs(run, { folder: place, page });
    await writeOutputs({ ...run, name: "later" }, { folder: place, page });
    expect(JSON.parse(await readFile(join(place, "summary.json"), "utf8")).name).toBe("later");
    expect(await readdir(place)).toHaveLength(3);
  });

  it("keeps the results when the report page is unusable, and says so", async () => {
    const failed = writeOutputs(run, { folder: place, page: "<html>" });
    await expect(failed).rejects.toThrow(/wrote .*summary\.json.* but no report\.html/);
    expect((await readdir(place)).sort()).toEqual(["junit.xml", "summary.json"]);
  });

  it("names the obstacle and the remedy, and leaves nothing behind", async () => {
    const file = join(place, "taken");
    await writeFile(file, "mine");
    const failed = writeOutputs(run, { folder: file, page });
    await expect(failed).rejects.toThrow(OutputError);
    await expect(failed).rejects.toThrow(/taken.*file where the folder should be.*--out DIR/);
    const message = await failed.catch(String);
    // The results are kept elsewhere; the message names the place.
    const [, kept = ""] = / they are in (\S+) instead/.exec(String(message)) ?? [];
    expect((await readdir(kept)).sort()).toEqual(["junit.xml", "report.html", "summary.json"]);
    await rm(kept, { recursive: true });
    expect(await readFile(file, "utf8")).toBe("mine");

    await mkdir(join(place, "summary.json"));
    await expect(writeOutputs(run, { folder: place, page })).rejects.toThrow(/--out DIR/);
    expect((await readdir(place)).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });
});

describe("before a run", () => {
  it("rejects a folder that cannot be written, and leaves a writable one as it was", async () => {
    const file = join(place, "taken");
    await writeFile(file, "mine");
    await expect(probeOutputs(join(file, "x"))).rejects.toThrow(/file where the folder should be/);
    if (process.platform === "linux")
      await expect(probeOutputs("/proc/hyperscale/out")).rejects.toThrow(/no folder can be made/);
    await probeOutputs(join(place, "new", "er"));
    await probeOutputs(place);
    expect(await readdir(place)).toEqual(["taken"]);
  });
});

describe("the default folder", () => {
  const named = (name: string) => newResultsFolder({ name, startedAt: run.startedAt }, place);

  it("is named after the time and the run", async () => {
    expect(await named("examples/quick start.ts")).toBe(
      join(place, "2026-03-14T09-26-53Z-quick-start"),
    );
    expect(await named("https://user.example:8080/a/b?token=secret#x")).toBe(
      join(place, "2026-03-14T09-26-53Z-user.example-8080-a-b"),
    );
    expect(await named("../../..")).toBe(join(place, "2026-03-14T09-26-53Z-run"));
  });

  it("is unique per run, also for runs that begin together", async () => {
    const folders = await Promise.all(Array.from({ length: 8 }, () => named("flow.ts")));
    expect(new Set(folders).size).toBe(8);
    expect(await readdir(place)).toHaveLength(8);
  });
});
