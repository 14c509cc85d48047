/** Every example runs as a reader would run it, for a second, against the demo target. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunSummary } from "../src/core/run/results/model.ts";
import { type DemoTarget, startDemoTarget } from "../src/demo/server.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "hyperscale-examples-"));
const examples = readdirSync(join(root, "examples")).filter((name) => name.endsWith(".ts"));

/** Whose thresholds count what was done: a busy machine must have the time for it. */
const DURATIONS: Readonly<Record<string, string>> = {
  "data-feed.ts": "30s",
  "metrics-and-thresholds.ts": "10s",
  "mix.ts": "5s",
};

let target: DemoTarget;
beforeAll(async () => {
  target = await startDemoTarget({ port: 0 });
});
afterAll(async () => {
  await target.close();
  rmSync(folder, { recursive: true });
});

async function run(name: string): Promise<{ code: unknown; output: string; out: string }> {
  const out = join(folder, name);
  const flags = [
    "--duration",
    DURATIONS[name] ?? "1s",
    "--cores",
    "2",
    "--ui",
    "none",
    "--out",
    out,
  ];
  const child = spawn(
    process.execPath,
    [join(root, "bin", "hyperscale.js"), "run", join("examples", name), ...flags],
    { cwd: root, env: { ...process.env, HYPERSCALE_TARGET: target.url } },
  );
  let output = "";
  child.stdout.on("data", (text) => {
    output += String(text);
  });
  child.stderr.on("data", (text) => {
    output += String(text);
  });
  const [code] = await once(child, "close");
  return { code, output, out };
}

describe("examples", () => {
  it.each(examples)("%s runs and judges as it says", async (name) => {
    const { code, out, output } = await run(name);
    expect(output).toBe("");
    const summary = JSON.parse(readFileSync(join(out, "summary.json"), "utf8")) as RunSummary;
    // How fast a busy machine is proves nothing: a latency may be over its limit, nothing else may.
    const failed = summary.thresholds.filter(({ passed }) => !passed);
    expect(failed.filter(({ expression }) => !expression.startsWith("latency"))).toEqual([]);
    expect(summary.reasons.length).toBe(failed.length);
    expect(code).toBe(failed.length === 0 ? 0 : 99);
    for (const workflow of summary.workflows) {
      expect(workflow.status, workflow.name).toBe("completed");
      for (const step of workflow.steps) expect(step.ok, step.name).toBeGreaterThan(0);
    }
  });
});
