/** Runs the built command line as a user does, in its own folder. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { inflateRawSync } from "node:zlib";
import type { RunSummary, StepSummary } from "../../src/core/load/results/model.ts";

const bin = fileURLToPath(new URL("../../bin/hyperscale.js", import.meta.url));

interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Running {
  readonly child: ChildProcess;
  readonly done: Promise<Finished>;
  /** Everything printed so far. */
  text(): string;
}

/** A scratch folder with the given files; removed with `remove`. */
export class Scratch {
  readonly path = mkdtempSync(join(tmpdir(), "hyperscale-e2e-"));

  write(name: string, text: string): string {
    writeFileSync(join(this.path, name), text);
    return name;
  }

  files(name = "out"): string[] {
    return readdirSync(join(this.path, name)).sort();
  }

  read(name: string): string {
    return readFileSync(join(this.path, name), "utf8");
  }

  summary(folder = "out"): RunSummary {
    return JSON.parse(this.read(join(folder, "summary.json"))) as RunSummary;
  }

  /** Data of a run's report page, as JSON. */
  pageData(folder = "out"): string {
    const html = this.read(join(folder, "report.html"));
    const [, data = ""] = /id="data">([^<]*)</.exec(html) ?? [];
    return inflateRawSync(Buffer.from(data, "base64")).toString("utf8");
  }

  start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Running {
    const child = spawn(process.execPath, [bin, ...args], {
      cwd: this.path,
      env: { ...process.env, NO_COLOR: "1", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (data) => {
      stdout += String(data);
    });
    child.stderr.on("data", (data) => {
      stderr += String(data);
    });
    const done = new Promise<Finished>((resolve) => {
      child.on("close", (code) => resolve({ code, stdout, stderr }));
    });
    return { child, done, text: () => stdout + stderr };
  }

  run(...args: readonly string[]): Promise<Finished> {
    return this.start(args).done;
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Ids of the processes that a run has started: its executor cores. None: it is no longer what a test needs. */
export function childrenOf({ child }: Running): readonly [number, ...number[]] {
  const text = execFileSync("ps", ["-o", "pid=", "--ppid", String(child.pid)], {
    encoding: "utf8",
  });
  const [first, ...others] = text.split(/\s+/).filter((id) => id !== "");
  if (first === undefined) throw new Error(`process ${child.pid} has no children`);
  return [Number(first), ...others.map(Number)];
}

export function stepOf(summary: RunSummary, workflow: string, step: string): StepSummary {
  const found = summary.workflows
    .find(({ name }) => name === workflow)
    ?.steps.find(({ name }) => name === step);
  if (found === undefined) throw new Error(`there is no step ${step} in ${workflow}`);
  return found;
}

export const sum = (values: Readonly<Record<string, number>>): number =>
  Object.values(values).reduce((all, one) => all + one, 0);

export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20));
}
