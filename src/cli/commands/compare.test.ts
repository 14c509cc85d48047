import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { summaryJson } from "../../reporters/file/summary-json.ts";
import { registerCompare } from "./compare.ts";

let place = "";
const file = (name: string) => join(place, name);

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), "hyperscale-compare-"));
  const healthy = (seed: string, more = {}) =>
    summaryJson(syntheticRun({ seed, healthy: true, seconds: 20, ...more }));
  await writeFile(file("summary.json"), healthy("before"));
  await writeFile(file("same.json"), healthy("same"));
  await writeFile(file("slower.json"), healthy("slower", { slowdown: 1.5 }));
  const limited = { cpu: 1, lagMsP99: 80, limited: true, reason: "its cores were busy", cores: [] };
  const slow = syntheticRun({ seed: "slower", healthy: true, seconds: 20, slowdown: 1.5 });
  await writeFile(file("untrusted.json"), summaryJson({ ...slow, generator: limited }));
  const short = (seed: string) => summaryJson(syntheticRun({ seed, healthy: true, seconds: 1 }));
  await writeFile(file("short.json"), short("short"));
  await writeFile(file("shorter.json"), short("shorter"));
  const [one] = slow.workflows;
  const many = Array.from({ length: 20_000 }, (_, at) => ({ ...one, name: `w${at}`, steps: [] }));
  await writeFile(file("many.json"), JSON.stringify({ ...slow, workflows: many }));
  const url = (host: string, seed: string) => {
    const run = syntheticRun({ seed, healthy: true, seconds: 20 });
    const workflows = run.workflows.slice(0, 1).map((each) => ({ ...each, name: host }));
    return summaryJson({ ...run, name: `http://${host}/`, workflows });
  };
  await writeFile(file("url-a.json"), url("127.0.0.1:8089", "a"));
  await writeFile(file("url-b.json"), url("staging.test", "b"));
  await writeFile(file("other.json"), '{"schema":"hyperscale/summary@2"}');
  await writeFile(file("text.txt"), "hello");
  await writeFile(
    file("empty.json"),
    summaryJson({ ...syntheticRun({ seconds: 1 }), workflows: [] }),
  );
});
afterAll(() => rm(place, { recursive: true, force: true }));

async function run(...args: string[]): Promise<{ code: unknown; out: string; err: string }> {
  let out = "";
  let err = "";
  const stdout = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    out += String(text);
    return true;
  });
  const stderr = vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    err += String(text);
    return true;
  });
  const program = new Command().exitOverride();
  registerCompare(program);
  for (const command of program.commands) command.exitOverride();
  try {
    await program.parseAsync(["compare", ...args], { from: "user" });
    return { code: process.exitCode, out, err };
  } catch (error) {
    return { code: (error as Error).message, out, err };
  } finally {
    process.exitCode = undefined;
    stdout.mockRestore();
    stderr.mockRestore();
  }
}

describe("hyperscale compare", () => {
  it("ends with 0 when nothing became worse", async () => {
    const { code, out } = await run(file("summary.json"), file("same.json"));
    expect(code).toBe(0);
    expect(out).toContain("✓ No significant regression beyond the limit of 5 %");
  });

  it("ends with 99 on a regression, and accepts a results folder for its summary", async () => {
    const { code, out } = await run(place, file("slower.json"));
    expect(code).toBe(99);
    expect(out).toMatch(/✗ \d+ regressions beyond/);
  });

  it("tolerates as much as --limit says, and compares only --metric", async () => {
    const lenient = await run(file("summary.json"), file("slower.json"), "--limit", "200%");
    expect(lenient.code).toBe(0);
    const rate = await run(file("summary.json"), file("slower.json"), "--metric", "rate,errors");
    expect(rate.code).toBe(0);
    expect(rate.out).not.toContain("p95");
  });

  it("reports an inconclusive comparison, and fails on it with --fail-on-unclear", async () => {
    const files = [file("short.json"), file("shorter.json")];
    const { code, out } = await run(...files);
    expect(code).toBe(0);
    expect(out).toMatch(/\? Nothing could be shown: \d+ of 35 rows unclear/);
    expect(out).not.toContain("✓ No significant");
    expect((await run(...files, "--fail-on-unclear")).code).toBe(98);
    const decided = await run(file("summary.json"), file("same.json"), "--fail-on-unclear");
    expect(decided.code).toBe(0);
  });

  it("does not judge an untrusted run, unless --allow-untrusted allows it", async () => {
    const files = [file("summary.json"), file("untrusted.json")];
    const { code, out } = await run(...files);
    expect(code).toBe(98);
    expect(out).toContain("? Not judged: the run after is not to be trusted: ");
    const anyway = await run(...files, "--allow-untrusted");
    expect(anyway.code).toBe(99);
    expect(anyway.out).toContain("! The run after is not to be trusted: ");
  });

  it("compares runs of a URL against different hosts", async () => {
    const { code, out } = await run(file("url-a.json"), file("url-b.json"));
    expect(code).toBe(0);
    expect(out).toContain("! The target changed: 127.0.0.1:8089 before, staging.test after.");
    expect(out).not.toContain("Only before");
  });

  it("prints JSON with --json", async () => {
    const { code, out } = await run(file("summary.json"), file("slower.json"), "--json");
    expect(code).toBe(99);
    const parsed = JSON.parse(out);
    expect(parsed.schema).toBe("hyperscale/compare@1");
    expect(parsed.rows).toHaveLength(35);
    expect(parsed.after.file).toBe(file("slower.json"));
  });

  it.each([
    ["a missing file", ["absent.json"], /cannot read .*absent\.json: there is no such file/],
    ["invalid JSON", ["text.txt"], /text\.txt is not JSON/],
    ["another schema version", ["other.json"], /summary@2.*reads "hyperscale\/summary@1"/],
    ["more workflows than a run can have", ["many.json"], /has 20000 workflows; at most 1024/],
    ["runs without a common step", ["empty.json"], /no step in common/],
  ])("ends with 2 on %s", async (_, [name], message) => {
    const { code, out, err } = await run(file("summary.json"), file(name ?? ""));
    expect(code).toBe(2);
    expect(err).toMatch(message);
    expect(out).toBe("");
  });

  it("rejects an unknown limit or metric", async () => {
    const files = [file("summary.json"), file("same.json")];
    expect((await run(...files, "--limit", "much")).err).toMatch(/percentage such as "5%"/);
    expect((await run(...files, "--metric", "p42")).err).toMatch(/Known metrics are rate, p50/);
  });
});
