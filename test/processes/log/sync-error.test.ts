/** EIO from fdatasync, injected by strace into a real process. Real time: the process is a real one. */

import { spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { needs } from "../../needs.ts";
import { checkEntries } from "./entries.ts";
import { buildChild } from "./kill.ts";

const traced = spawnSync("strace", ["-o", "/dev/null", "true"]).status === 0;
const NOT_TRACED = "strace is absent (package strace) or may not trace";

describe("an error of fdatasync", () => {
  it(
    "ends the process, and nothing it had called durable is missing",
    needs(traced, NOT_TRACED),
    async () => {
      const directory = await mkdtemp(join(tmpdir(), "hyperscale-wal-eio-"));
      const strace = ["-f", "-o", "/dev/null", "-e", "trace=fdatasync"];
      const inject = ["-e", "inject=fdatasync:error=EIO:when=12+"];
      const folder = await mkdtemp(join(tmpdir(), "hyperscale-wal-child-"));
      const child = [process.execPath, await buildChild(folder), directory];
      const { code, stdout, stderr } = await run("strace", [...strace, ...inject, ...child]);
      expect(code).not.toBe(0);
      expect(stderr).toContain("sync failed with EIO");
      const lines = stdout.trim().split("\n");
      const durable = Number(
        lines.findLast((line) => line.startsWith("durable"))?.split(" ")[1] ?? 0,
      );
      expect(durable).toBeGreaterThan(0);
      // Eleven syncs succeeded, with at most one durability line for each.
      expect(lines.filter((line) => line.startsWith("durable")).length).toBeLessThanOrEqual(11);
      expect((await checkEntries(directory)).entries).toBeGreaterThanOrEqual(durable);
      await rm(directory, { recursive: true, force: true });
      await rm(folder, { recursive: true, force: true });
    },
  );
});

function run(command: string, args: readonly string[]) {
  // One thread: strace counts the calls of each thread apart.
  const env = { ...process.env, UV_THREADPOOL_SIZE: "1" };
  const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (data) => {
    stdout += String(data);
  });
  child.stderr.on("data", (data) => {
    stderr += String(data);
  });
  return new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
    child.once("close", (code) => resolve({ code, stdout, stderr }));
  });
}
