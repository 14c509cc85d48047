/** Workflow files run by one program that uses the built package, as a reader's own program would. */

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import type { RunSummary } from "../src/core/load/results/model.ts";
import type { RunOptions } from "../src/runner/run-options.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Two at a time: they wait more than they compute. */
const PROGRAM = `
import { run } from "hyperscalejs";
const runs = JSON.parse(process.argv[1]);
async function next() {
  for (let one = runs.shift(); one !== undefined; one = runs.shift()) {
    const test = run(one.file, one.options);
    const messages = [];
    for await (const event of test.quiet()) if (event.kind === "message") messages.push(event.line);
    console.log(JSON.stringify({ file: one.file, messages, summary: await test.summary }));
  }
}
await Promise.all([next(), next()]);
`;

interface WantedRun {
  /** Relative to the root of the repository. */
  readonly file: string;
  readonly options: RunOptions;
}

interface Ran {
  readonly messages: readonly string[];
  readonly summary: RunSummary;
}

/** Returns what each file came to, by its name. */
export async function runFiles(runs: readonly WantedRun[]): Promise<ReadonlyMap<string, Ran>> {
  // Builds the package when its sources are newer.
  execFileSync(process.execPath, [join(root, "bin", "hyperscale.js"), "--version"]);
  const args = ["--input-type=module", "-e", PROGRAM, JSON.stringify(runs)];
  const child = spawn(process.execPath, args, { cwd: root });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  const [code] = await once(child, "close");
  expect([code, stderr]).toEqual([0, ""]);
  const lines = stdout.trim().split("\n");
  return new Map(
    lines.map((line) => {
      const { file, ...ran } = JSON.parse(line) as Ran & Pick<WantedRun, "file">;
      return [file, ran];
    }),
  );
}
