/** Programs started by executions end with them. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { commandExecutor } from "../executors/command.ts";
import type { ExecutionContext } from "../worker/executor.ts";
import { type IsolatedExecutors, isolateExecutors } from "./isolate.ts";

/** Starts a shell that starts a program; both ignore SIGINT and hold no open pipe. */
const SCRIPT = "trap '' INT; sleep 1000 >/dev/null 2>&1 & echo $! > $0; wait";
const SOURCE = `
import { execSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
const shell = async (path: string) => {
  spawn("sh", ["-c", ${JSON.stringify(SCRIPT)}, path], { stdio: "ignore" });
  while (!existsSync(path)) await new Promise((next) => setTimeout(next, 5));
};
const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
export default {
  ignores: async (path: string) => { await shell(path); await new Promise(() => undefined); },
  stops: async (path: string, { signal }: any) => { await shell(path); await aborted(signal); return "stopped"; },
  returns: async (path: string) => { await shell(path); return process.pid; },
  fails: async (path: string) => {
    execSync("sleep 1000 > /dev/null 2>&1 & echo $! > " + path);
    throw new Error("failed");
  },
  waits: async () => { execSync("true"); return process.pid; },
  crashes: async (path: string) => { await shell(path); process.exit(3); },
  sends: async (_: string, { attempt }: any) => {
    process.send!([null, {}, { kind: "failed", failure: null }, { kind: "call", call: 1, method: "file" }][attempt]);
    await new Promise(() => undefined);
  },
  throws: async () => { throw new Proxy({}, { get() { throw new Error("trap"); } }); },
};
`;

describe.skipIf(process.platform === "win32")("programs started by executions", () => {
  let folder: string;
  let isolated: IsolatedExecutors;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "hyperscale-groups-"));
    writeFileSync(join(folder, "executors.ts"), SOURCE);
    isolated = await isolateExecutors(join(folder, "executors.ts"));
  });
  afterEach(async () => {
    await isolated.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function context(signal: AbortSignal = new AbortController().signal): ExecutionContext {
    return {
      ...{ taskId: "1", attempt: 1, idempotencyKey: "key", dependencies: {}, signal },
      ...{ dependenciesMissing: {}, log: () => undefined, progress: () => undefined },
    } as unknown as ExecutionContext;
  }

  async function run(name: string, signal?: AbortSignal): Promise<unknown> {
    return isolated.executors[name]?.(join(folder, name), context(signal));
  }

  async function pidOf(name: string): Promise<number> {
    return expect
      .poll(() => Number(readFileSync(join(folder, name), { encoding: "utf8", flag: "a+" })))
      .toBeGreaterThan(0)
      .then(() => Number(readFileSync(join(folder, name), "utf8")));
  }

  async function ends(pid: number): Promise<void> {
    await expect.poll(() => isAlive(pid)).toBe(false);
  }

  it("are killed with an execution that ignores its abort, of a file and of a command", async () => {
    const abort = new AbortController();
    const command = commandExecutor({ allow: ["sh"] });
    const input = { command: "sh", args: ["-c", SCRIPT, join(folder, "command")] };
    const ended = Promise.all([
      expect(run("ignores", abort.signal)).rejects.toThrow(/ended with SIGKILL/),
      expect(command(input, context(abort.signal))).rejects.toThrow(/was ended by SIGKILL/),
    ]);
    const pids = [await pidOf("ignores"), await pidOf("command")];
    abort.abort(new Error("it took longer than its limit"));
    await ended;
    for (const pid of pids) await ends(pid);
  });

  it("are killed with an execution that returns after its abort", async () => {
    const abort = new AbortController();
    const running = run("stops", abort.signal);
    const pid = await pidOf("stops");
    expect(isAlive(pid)).toBe(true);
    abort.abort();
    await running;
    await ends(pid);
  });

  it("are killed when an execution leaves them behind", async () => {
    const first = await run("returns");
    await ends(await pidOf("returns"));
    await expect(run("fails")).rejects.toThrow("failed");
    await ends(await pidOf("fails"));
    const next = await run("waits");
    expect(next).not.toEqual(first);
    expect(await run("waits")).toEqual(next);
  });

  it("are killed when a command leaves them behind", async () => {
    const script = "sleep 1000 >/dev/null 2>&1 & sleep 1000 & echo $! > $0";
    const input = { command: "sh", args: ["-c", script, join(folder, "left")] };
    await commandExecutor({ allow: ["sh"] })(input, context());
    await ends(await pidOf("left"));
  });

  it("are killed when the process of their execution exits", async () => {
    await expect(run("crashes")).rejects.toThrow(/exit code 3/);
    await ends(await pidOf("crashes"));
  });

  it("are killed when the node stops", async () => {
    run("ignores").catch(() => undefined);
    const pid = await pidOf("ignores");
    await isolated.close();
    await ends(pid);
  });

  it.each([0, 1, 2, 3])(
    "fail their execution alone when they send what is no event: %d",
    async (attempt) => {
      const sends = isolated.executors["sends"]?.("", { ...context(), attempt });
      await expect(sends).rejects.toThrow(/ended with SIGKILL/);
    },
  );

  it("fail their execution when a thrown value cannot be read", async () => {
    await expect(run("throws")).rejects.toThrow("a value that cannot be read was thrown");
  });
});

/** A zombie is not alive: it may not have been reaped yet. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !stat.slice(stat.lastIndexOf(")")).startsWith(") Z");
  } catch {
    return process.platform !== "linux";
  }
}
