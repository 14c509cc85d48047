import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { type DemoTarget, startDemoTarget } from "../../demo/server.ts";
import { registerRun } from "./run.ts";

/** Workflow code that blocks the event loop most of the time, so the generator is the limit on every machine. */
const BUSY = `
import { flow, http } from "hyperscalejs";
const shop = http.target(process.env["SHOP"] ?? "");
export default flow("busy", { vus: 1, iterations: 3 }, async ({ step }) => {
  for (const until = performance.now() + 400; performance.now() < until; );
  await step("home", shop.get("/"));
});
`;

/** Limited by its own code, or disturbed by other programs: one stall may show both. */
const GENERATOR = expect.stringMatching(/^generator-(limited|noisy)$/);

describe("run --require-trusted", () => {
  let folder = "";
  let target: DemoTarget;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "hyperscale-trust-"));
    target = await startDemoTarget({ port: 0 });
    await writeFile(join(folder, "busy.ts"), BUSY);
  });

  afterAll(async () => {
    await target.close();
    await rm(folder, { recursive: true, force: true });
  });

  afterEach(() => {
    vi.restoreAllMocks();
    process.exitCode = 0;
  });

  async function run(name: string, flag: string) {
    vi.spyOn(process.stderr, "write").mockReturnValue(true);
    const out = join(folder, name);
    const program = new Command();
    registerRun(program);
    const flags = [flag, "--cores", "1", "--ui", "none", "--out", out, "-e", `SHOP=${target.url}`];
    await program.parseAsync(["run", join(folder, "busy.ts"), ...flags], { from: "user" });
    const [junit, summary] = await Promise.all(
      ["junit.xml", "summary.json"].map((file) => readFile(join(out, file), "utf8")),
    );
    return { code: process.exitCode, junit, summary: JSON.parse(summary ?? "") };
  }

  it("turns an untrusted result into exit code 98 and a failure in JUnit", async () => {
    const { code, junit, summary } = await run("required", "--require-trusted");
    expect(summary).toMatchObject({
      verdict: "passed",
      trust: { trusted: false, required: true, reasons: [{ code: GENERATOR }] },
    });
    expect(code).toBe(98);
    expect(junit).toMatch(/<failure/);
  });

  it("adds only a note when trust is not required", async () => {
    const { code, junit, summary } = await run("not-required", "--no-require-trusted");
    expect(summary).toMatchObject({ verdict: "passed", trust: { trusted: false } });
    expect(code).toBe(0);
    expect(junit).not.toMatch(/<failure/);
  });
});
