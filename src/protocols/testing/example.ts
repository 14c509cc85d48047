/** Runs the example of a protocol as a reader would, against its real server, and returns its summary. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import type { RunSummary, StepSummary } from "../../core/load/results/model.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));

/** Returns its steps by name; each must have succeeded at least once, and nothing else may be printed. */
export async function runExample(
  file: string,
  environment: Readonly<Record<string, string>>,
  duration = "2s",
): Promise<ReadonlyMap<string, StepSummary>> {
  await ran(["--help"], {}); // Rebuilds a stale build first, so that its output is not mixed with the example's.
  const out = mkdtempSync(join(tmpdir(), "hyperscale-example-"));
  const args = ["run", join("examples", "protocols", file), "--duration", duration, "--cores", "2"];
  const { code, output } = await ran([...args, "--ui", "none", "--out", out], environment);
  try {
    expect(output).toBe("");
    expect(code).toBe(0);
    const summary = JSON.parse(readFileSync(join(out, "summary.json"), "utf8")) as RunSummary;
    const steps = summary.workflows.flatMap((workflow) => workflow.steps);
    for (const step of steps) expect(step.ok, step.name).toBeGreaterThan(0);
    return new Map(steps.map((step) => [step.name, step]));
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

async function ran(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(process.execPath, [join(root, "bin", "hyperscale.js"), ...args], {
    cwd: root,
    env: { ...process.env, ...environment },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (text) => {
      output += String(text);
    });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}
