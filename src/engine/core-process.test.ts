import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CoreProcess } from "./core-process.ts";

describe.skipIf(process.platform === "win32")("programs started by code of a core", () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "hyperscale-core-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it("are killed with a core that leads a process group", async () => {
    const note = join(folder, "pid");
    const bundle = join(folder, "w.mjs");
    writeFileSync(
      bundle,
      `import { spawn } from "node:child_process";
       import { writeFileSync } from "node:fs";
       const program = spawn("sleep", ["1000"], { stdio: "ignore" });
       writeFileSync(${JSON.stringify(note)}, String(program.pid));`,
    );
    const handlers = { onEvent: () => undefined, onLost: () => undefined };
    const as = { detached: true };
    const core = new CoreProcess({ number: 0, inspect: false, as, ...handlers });
    const load = { kind: "load", bundle: pathToFileURL(bundle).href, folder, overrides: {} };
    core.send({ ...load, core: {} } as unknown as Parameters<CoreProcess["send"]>[0]);
    const pid = (): number => Number(readFileSync(note, { encoding: "utf8", flag: "a+" }));
    await expect.poll(pid, { timeout: 30_000 }).toBeGreaterThan(0);
    await core.end();
    await expect.poll(() => isRunning(pid()), { timeout: 30_000 }).toBe(false);
  });
});

/** A zombie does not run: init may not have reaped it yet. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !stat.slice(stat.lastIndexOf(")")).startsWith(") Z");
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH" && process.platform !== "linux";
  }
}
