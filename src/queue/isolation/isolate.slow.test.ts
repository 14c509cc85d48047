/** Executors in processes of their own: what each of them can do to its own execution, and to no other. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ExecutionContext } from "../worker/executor.ts";
import { failureOf } from "../worker/failure.ts";
import { type IsolatedExecutors, isolateExecutors } from "./isolate.ts";

const SOURCE = `
import { defineExecutors, NotRetryable, Snooze } from "hyperscalejs/queue";
let runs = 0;
export default defineExecutors({
  pid: () => process.pid,
  echo: (input: unknown, { attempt, taskId }: any) => ({ input, attempt, taskId }),
  say: (_: unknown, { log, progress }: any) => { log("one"); console.log("two %d", 2); progress({ done: 1 }); },
  throws: () => { throw new NotRetryable("no use", { cause: new Error("deeper") }); },
  stray: () => { setTimeout(() => { throw new Error("thrown later"); }, 5); return new Promise(() => undefined); },
  later: Object.assign(() => { throw new Snooze(90); }, { backoff: { base: 7 } }),
  exits: () => process.exit(7),
  crashes: () => process.kill(process.pid, "SIGSEGV"),
  loops: () => { for (;;) runs++; },
  heap: () => { const all: unknown[] = []; for (;;) all.push(new Array(10_000).fill(runs++)); },
  buffers: async () => {
    const all: Buffer[] = [];
    for (;;) { all.push(Buffer.alloc(8 * 1024 * 1024, 1)); await new Promise((next) => setTimeout(next, 1)); }
  },
  waits: (_: unknown, { signal }: any) =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  before: (_: unknown, { history }: any) => history(),
  large: () => "x".repeat(2_000_000),
  file: async (hash: unknown, { file, attach }: any) => {
    const content = await file(String(hash));
    await attach("copy", content, "text/plain");
    return content.toString();
  },
});
`;

let folder: string;
let isolated: IsolatedExecutors;
const said: unknown[] = [];
const attached: unknown[] = [];

function context(signal: AbortSignal = new AbortController().signal): ExecutionContext {
  return {
    ...{
      taskId: "17",
      attempt: 2,
      idempotencyKey: "key",
      dependencies: {},
      dependenciesMissing: {},
      signal,
    },
    log: (text) => said.push(text),
    progress: (value) => said.push(value),
    history: async () => ({ submitted_at: "then", progress: 0.5 }),
    file: async (hash) => Buffer.from(`content of ${hash}`),
    attach: async (...file) => void attached.push(file),
  };
}

async function run(name: string, input: unknown = null, signal?: AbortSignal): Promise<unknown> {
  const result = await isolated.executors[name]?.(input, context(signal));
  return JSON.parse((result as { readonly text: string }).text);
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "hyperscale-isolation-"));
  const file = join(folder, "executors.ts");
  writeFileSync(file, SOURCE);
  isolated = await isolateExecutors(file, { memoryMb: 64 });
});
afterEach(() => {
  said.length = 0;
});
afterAll(async () => {
  await isolated?.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("isolated executors", () => {
  it("run in another process, which is reused, with input, context, logs and files", async () => {
    const pid = await run("pid");
    expect(pid).not.toBe(process.pid);
    expect(await run("pid")).toBe(pid);
    expect(await run("echo", { a: [1] })).toEqual({ input: { a: [1] }, attempt: 2, taskId: "17" });
    await run("say");
    expect(said).toEqual(["one", "two 2", { done: 1 }]);
    expect(await run("file", "abc")).toBe("content of abc");
    expect(await run("before")).toEqual({ submitted_at: "then", progress: 0.5 });
    expect(attached).toEqual([["copy", expect.anything(), "text/plain"]]);
    expect(isolated.executors["pid"]?.runs).toBe("isolated");
  });

  it("fail with name, stack, cause and whether a retry can help", async () => {
    const error: unknown = await run("throws").catch((thrown: unknown) => thrown);
    expect(failureOf(error)).toMatchObject({
      ...{ name: "NotRetryable", message: "no use", cause: "deeper", retryable: false },
      stack: expect.stringContaining("executors.ts"),
    });
    const later: unknown = await run("later").catch((thrown: unknown) => thrown);
    expect(failureOf(later)).toMatchObject({ name: "Snooze", again: 90 });
    expect(isolated.executors["later"]?.backoff).toEqual({ base: 7 });
    await expect(run("large")).rejects.toThrow(/the limit is 1048576/);
  });

  it.each([
    ["stray", /nobody caught: thrown later/],
    ["exits", /ended with exit code 7/],
    ["crashes", /ended with SIGSEGV/],
    ["heap", /more memory than its process may have \(64 MiB\)/],
    ["buffers", /more memory than its process may have \(64 MiB\)/],
  ])("limits the effect of %s to its own execution", async (name, problem) => {
    const other = new AbortController();
    const waits = run("waits", null, other.signal).catch((error: unknown) => String(error));
    await expect(run(name)).rejects.toThrow(problem);
    other.abort(new Error("enough"));
    expect(await waits).toBe("Error: enough");
    expect(await run("echo", 1)).toMatchObject({ input: 1 });
  });

  it("blocks nobody with an endless loop, which is killed after its abort", async () => {
    const cancel = new AbortController();
    const loops = run("loops", null, cancel.signal);
    expect(await Promise.all([run("echo", 1), run("echo", 2)])).toMatchObject([
      { input: 1 },
      { input: 2 },
    ]);
    cancel.abort(new Error("cancelled"));
    await expect(loops).rejects.toThrow(/ended with SIGKILL/);
  });

  it.each([
    ["export const nothing = 1;", /exports no executors/],
    ["export default {", /cannot load executors from/],
    ["throw new Error('at the top');", /at the top/],
    ["process.exit(3);", /ended with exit code 3/],
  ])("rejects %s", async (text, message) => {
    const file = join(folder, "broken.ts");
    writeFileSync(file, text);
    await expect(isolateExecutors(file)).rejects.toThrow(message);
  });
});
