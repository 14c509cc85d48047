/**
 * A whole cluster as processes on the loopback, and a file submitted to it: the same files and exit codes as a
 * run, and a target that counts as many requests as the summary says.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const cli = join(root, "bin", "hyperscale.js");
/** A ceiling for a hang, not a judgement. */
const MS_MAX = 240_000;

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function start(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [cli, ...args], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
}

async function command(...args: readonly string[]): Promise<Ended> {
  const child = start(args);
  const [stdout, stderr] = [textOf(child.stdout), textOf(child.stderr)];
  const [code] = (await once(child, "exit")) as [number | null];
  return { code, stdout: stdout(), stderr: stderr() };
}

function textOf(stream: NodeJS.ReadableStream | null): () => string {
  let text = "";
  stream?.on("data", (part) => {
    text += String(part);
  });
  return () => text;
}

/** A port with enough free room above it, as far as can be known. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  const port = typeof address === "object" && address !== null ? address.port : 20_000;
  return 20_000 + (port % 30_000);
}

describe("a cluster of one manager and two workers", () => {
  let dir = "";
  let target: DemoTarget;
  let up: ChildProcess;
  let ready: { readonly processes: readonly { readonly name: string; readonly pid: number }[] };

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "hyperscale-cluster-"));
    target = await startDemoTarget({ port: 0 });
    const port = String(await freePort());
    up = start(["cluster", "up", "--workers", "2", "--dir", dir, "--port", port, "--json"]);
    const errors = textOf(up.stderr);
    const line = await Promise.race([
      once(up.stdout as NodeJS.ReadableStream, "data").then(([text]) => String(text)),
      once(up, "exit").then(() => Promise.reject(new Error(errors()))),
    ]);
    ready = JSON.parse(line);
  }, MS_MAX);

  afterAll(async () => {
    if (up.exitCode === null) {
      up.kill("SIGTERM");
      await once(up, "exit");
    }
    await target.close();
    await rm(dir, { recursive: true, force: true });
  }, MS_MAX);

  it(
    "runs a submitted file, and counts what the target counts",
    async () => {
      const out = join(dir, "out");
      const before = target.stats().requests;
      const submitted = await command(
        ...["submit", "examples/quickstart.ts", "--dir", dir, "--ui", "none", "--out", out],
        ...["--duration", "3s", "--graceful-stop", "60s", "-e", `HYPERSCALE_TARGET=${target.url}`],
        ...["--only", "quickstart"],
      );
      const summary = JSON.parse(await readFile(join(out, "summary.json"), "utf8"));
      expect(summary.totals.requests).toBe(target.stats().requests - before);
      expect(summary.totals.requests).toBeGreaterThan(0);
      expect(summary.lost).toEqual([]);
      expect(summary.environment.cores).toBe(2);
      // A slow machine may miss a threshold of latency; everything else is as by `run`.
      expect([0, 99], submitted.stderr).toContain(submitted.code);
      const { jobs } = JSON.parse((await command("jobs", "list", "--dir", dir, "--json")).stdout);
      expect(jobs).toMatchObject([{ status: "COMPLETED", name: "examples/quickstart.ts" }]);
    },
    MS_MAX,
  );

  it(
    "tells mistakes before anything is sent",
    async () => {
      const missing = await command("submit", "no-such-file.ts", "--dir", dir);
      expect(missing).toMatchObject({ code: 2 });
      expect(missing.stderr).toContain("there is no file no-such-file.ts");
      const threshold = ["--threshold", "latency{step=nowhere}.p95<1s"];
      const unknown = await command("submit", "examples/quickstart.ts", "--dir", dir, ...threshold);
      expect(unknown).toMatchObject({ code: 2 });
    },
    MS_MAX,
  );

  it(
    "ends every process that it started",
    async () => {
      const ended = await command("cluster", "down", "--dir", dir);
      expect(ended).toMatchObject({ code: 0 });
      const left = ready.processes.filter(({ pid }) => isAlive(pid));
      expect(left).toEqual([]);
    },
    MS_MAX,
  );
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
