import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inflateRawSync } from "node:zlib";
import { Command } from "commander";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { summaryJson } from "../../reporters/file/summary-json.ts";
import { registerReport } from "./report.ts";
import { registerTrends } from "./trends.ts";

let place = "";
const at = (...path: string[]) => join(place, ...path);
/** `npm run build` builds the pages; without them the commands say so. */
const built = existsSync(new URL("../../../dist/web/trends.html", import.meta.url));

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), "hyperscale-report-"));
  for (const [day, slowdown] of [1, 1.1, 1.4].entries()) {
    const folder = at(`run-${day}`);
    await mkdir(folder);
    const run = syntheticRun({ seconds: 5, seed: day, healthy: true, slowdown });
    const startedAt = `2026-03-1${day}T09:00:00.000Z`;
    await writeFile(join(folder, "summary.json"), summaryJson({ ...run, startedAt }));
    await utimes(join(folder, "summary.json"), 1_000 + day, 1_000 + day);
  }
});
afterAll(() => rm(place, { recursive: true, force: true }));

async function run(...args: string[]): Promise<{ code: unknown; out: string; err: string }> {
  let [out, err] = ["", ""];
  const stdout = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    out += String(text);
    return true;
  });
  const stderr = vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    err += String(text);
    return true;
  });
  const program = new Command().exitOverride();
  registerReport(program);
  registerTrends(program);
  try {
    await program.parseAsync(args, { from: "user" });
    return { code: process.exitCode, out, err };
  } finally {
    process.exitCode = undefined;
    stdout.mockRestore();
    stderr.mockRestore();
  }
}

async function dataOf(file: string): Promise<string> {
  const [, data = ""] = /id="data">([^<]*)</.exec(await readFile(file, "utf8")) ?? [];
  return inflateRawSync(Buffer.from(data, "base64")).toString("utf8");
}

describe.skipIf(!built)("hyperscale report", () => {
  it("writes the page again beside the summary, and with a baseline its comparison", async () => {
    const { code, out } = await run("report", at("run-0"));
    expect({ code, out }).toEqual({ code: 0, out: `${at("run-0", "report.html")}\n` });
    expect(JSON.parse(await dataOf(at("run-0", "report.html")))).toMatchObject({ baseline: null });
    await run("report", at("run-2"), "--baseline", at("run-0"), "--out", at("both.html"));
    const { baseline } = JSON.parse(await dataOf(at("both.html")));
    expect(baseline.file).toBe(at("run-0"));
    expect(baseline.comparison.rows.length).toBeGreaterThan(20);
  });

  it("reports what cannot be read", async () => {
    const { code, err } = await run("report", at("nothing"), "--baseline", at("nowhere"));
    expect(code).toBe(2);
    expect(err).toMatch(/nothing: there is no such file[\s\S]*nowhere: there is no such file/);
  });
});

describe.skipIf(!built)("hyperscale trends", () => {
  it("prints the last runs, the newest last, and writes their page", async () => {
    const { code, out } = await run("trends", place, "--last", "2");
    expect(code).toBe(0);
    expect(out).toContain("examples/shop.ts: the last 2 runs");
    const folders = out.split("\n").flatMap((line) => /run-\d$/.exec(line)?.[0] ?? []);
    expect(folders).toEqual(["run-1", "run-2"]);
    expect(out).toMatch(/\+2\d\.\d %/);
    expect(await dataOf(at("trends-examples-shop.html"))).toContain('"folder":"run-2"');
  });

  it("lists the available results when the requested ones are missing", async () => {
    const { code, err } = await run("trends", place, "--of", "other.ts");
    expect(code).toBe(2);
    expect(err).toContain('no result of "other.ts"; there are results of examples/shop.ts');
    expect((await run("trends", at("run-0", "x"))).err).toContain("there is no such folder");
  });
});
