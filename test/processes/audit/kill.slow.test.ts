/** Real processes and real time: a recording process is killed at random times, and one loses its disk. */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AuditProblem, readAudit } from "../../../src/audit/read.ts";
import { Random } from "../../../src/core/base/random.ts";

const KILLS = 12;
const SEED = 7;
let folder = "";
let script = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "hyperscale-audit-child-"));
  script = join(folder, "child.mjs");
  const entry = fileURLToPath(new URL("./child.ts", import.meta.url));
  await build({
    entryPoints: [entry],
    bundle: true,
    platform: "node",
    format: "esm",
    outfile: script,
  });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

class Child {
  readonly ended: Promise<void>;
  readonly #process: ChildProcess;
  #text = "";
  #heard: () => void = () => {};

  constructor(command: string, args: readonly string[]) {
    // One thread: strace counts the calls of each thread apart.
    const env = { ...process.env, UV_THREADPOOL_SIZE: "1" };
    this.#process = spawn(command, args, { env, stdio: ["ignore", "pipe", "inherit"] });
    this.#process.stdout?.on("data", (data) => {
      this.#text += String(data);
      this.#heard();
    });
    this.ended = new Promise((resolve) => {
      this.#process.once("close", () => {
        resolve();
        this.#heard();
      });
    });
  }

  /** The number behind the last complete line with this word; null if there is none. */
  last(word: string): number | null {
    const lines = this.#text.slice(0, this.#text.lastIndexOf("\n") + 1).split("\n");
    const line = lines.findLast((candidate) => candidate.startsWith(`${word} `));
    return line === undefined ? null : Number(line.slice(word.length + 1));
  }

  async heard(wanted: () => boolean): Promise<void> {
    while (!wanted() && this.alive) {
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
    }
  }

  get text(): string {
    return this.#text;
  }

  get alive(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.ended;
  }
}

async function recorded(directory: string): Promise<readonly string[]> {
  const problems: AuditProblem[] = [];
  const found: string[] = [];
  const onProblem = (problem: AuditProblem): void => void problems.push(problem);
  for await (const { subject } of readAudit(directory, { kind: "member" }, { onProblem })) {
    found.push(subject);
  }
  expect(problems.filter(({ damaged }) => damaged)).toEqual([]);
  return found;
}

describe("a process that records", () => {
  it(`has on disk all that was flushed when it is killed (${KILLS} kills)`, async () => {
    const random = new Random(SEED);
    const directory = join(folder, "killed", "audit");
    let promised = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const child = new Child(process.execPath, [script, directory]);
      await child.heard(() => child.last("ready") !== null);
      await new Promise((resolve) => setTimeout(resolve, random.float() * random.pick([5, 60])));
      await child.kill();
      expect(child.last("ready"), `kill ${kill}`).toBeGreaterThanOrEqual(promised);
      promised = Math.max(promised, child.last("durable") ?? 0);
      const found = await recorded(directory);
      expect(found.length, `kill ${kill}`).toBeGreaterThanOrEqual(promised);
      // In order and without a gap: what was lost is the end.
      expect(found).toEqual(Array.from({ length: found.length }, (_, i) => `n${i}`));
    }
    expect(promised).toBeGreaterThan(0);
  });

  const traced = spawnSync("strace", ["-o", "/dev/null", "true"]).status === 0;
  if (!traced) process.stderr.write("skipped: EIO of an audit log (strace is absent)\n");
  it.skipIf(!traced)(
    "continues when its disk fails, and counts the entries it cannot write",
    async () => {
      const directory = join(folder, "failed", "audit");
      const trace = ["-f", "-o", "/dev/null", "-e", "trace=fdatasync"];
      const inject = ["-e", "inject=fdatasync:error=EIO:when=12+"];
      const child = new Child("strace", [...trace, ...inject, process.execPath, script, directory]);
      await child.ended;
      expect(child.last("dropped")).toBeGreaterThanOrEqual(500);
      expect(child.text).toContain("said audit.failed");
      const durable = child.last("durable") ?? 0;
      expect(durable).toBeGreaterThan(0);
      expect((await recorded(directory)).length).toBeGreaterThanOrEqual(durable);
    },
  );
});
