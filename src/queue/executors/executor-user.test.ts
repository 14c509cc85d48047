/** Executors and load tests of a node that was started as root: what their user can read, and what not. */

import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isRoot, needs } from "../../../test/needs.ts";
import { findUser } from "../../host/executor-user.ts";
import { isolateExecutors } from "../isolation/isolate.ts";
import type { ExecutionContext } from "../worker/executor.ts";
import { commandExecutor } from "./command.ts";
import { loadtestExecutor } from "./loadtest.ts";
import { readResult } from "./loadtest-folder.ts";

const user = findUser("65534", "");
const UID = 65_534;
const [WORKFLOW, WORDS] = ["a".repeat(64), "b".repeat(64)];
let folder: string;
let token: string;
let server: Server;
let url: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "hyperscale-executor-user-"));
  token = join(folder, "token");
  writeFileSync(token, "s3cret", { mode: 0o600 });
  server = createServer((_, response) => response.end("ok"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const attempt = (file: string) =>
  `(() => { try { return readFileSync(${JSON.stringify(file)}, "utf8"); } catch (e) { return e.code; } })()`;

function context(files: Readonly<Record<string, string>> = {}): ExecutionContext {
  return {
    ...{ taskId: "1", attempt: 1, idempotencyKey: "key" },
    ...{ dependencies: {}, dependenciesMissing: {}, signal: new AbortController().signal },
    log: () => undefined,
    progress: () => undefined,
    history: async () => ({ submitted_at: "then", progress: null }),
    file: async (hash) => Buffer.from(files[hash] ?? ""),
    attach: async () => undefined,
  };
}

describe("executors as another user", needs(isRoot, "not root"), () => {
  it("run a file of executors that cannot read the token or change its own code", async () => {
    const file = join(folder, "executors.ts");
    writeFileSync(
      file,
      `import { accessSync, constants, readFileSync } from "node:fs";
       const mayWrite = () => { try { accessSync(new URL(import.meta.url), constants.W_OK); return true; }
         catch { return false; } };
       export const look = () => [process.getuid(), ${attempt(token)}, mayWrite()];`,
      { mode: 0o600 },
    );
    const isolated = await isolateExecutors(file, { user });
    try {
      const looked = (await isolated.executors["look"]?.({}, context())) as { json: string };
      expect(JSON.stringify(looked)).toContain(`[${UID},\\"EACCES\\",false]`);
    } finally {
      await isolated.close();
    }
  });

  it("start programs that cannot read the token", async () => {
    const command = commandExecutor({ allow: ["cat", "id"], user });
    await expect(command({ command: "cat", args: [token] }, context())).rejects.toThrow(/denied/);
    expect(await command({ command: "id", args: ["-u"] }, context())).toMatchObject({
      stdout: `${UID}\n`,
    });
  });

  it("run load tests that read their own files, cannot change them or read the token", async () => {
    const workflow = `import { accessSync, constants, readFileSync } from "node:fs";
      import { flow, http } from "hyperscalejs";
      const words = readFileSync(new URL("words.csv", import.meta.url), "utf8").trim();
      const writable = ["words.csv", "."].filter((path) => {
        try { accessSync(new URL(path, import.meta.url), constants.W_OK); return true; } catch { return false; }
      });
      const name = [process.getuid(), words, ${attempt(token)}, ...writable].join(" ");
      export default flow(name, { vus: 1, iterations: 2 }, async ({ step }) => {
        await step("home", http.target(${JSON.stringify(url)}).get("/"));
      });`;
    const resultsDirectory = join(folder, "results");
    const policy = { resultsDirectory, workflows: undefined, bundles: true, user };
    const input = { bundle: WORKFLOW, entry: "w.mjs", files: [{ path: "words.csv", hash: WORDS }] };
    const args = ["--cores", "1", "--no-require-trusted"];
    const files = { [WORKFLOW]: workflow, [WORDS]: "hats" };
    const before = readdirSync(tmpdir()).filter((name) => name.startsWith("hyperscale-loadtest-"));
    expect(await loadtestExecutor(policy)({ ...input, args }, context(files))).toMatchObject({
      files: expect.arrayContaining(["summary.json", "report.html"]),
      summary: { workflows: [{ name: `${UID} hats EACCES`, totals: { requests: 2 } }] },
    });
    const after = readdirSync(tmpdir()).filter((name) => name.startsWith("hyperscale-loadtest-"));
    expect(after).toEqual(before);
  });

  it("reject a link to the token as a result", () => {
    const link = join(folder, "summary.json");
    symlinkSync(token, link);
    expect(() => readResult(link, user)).toThrow(/ELOOP/);
    expect(() => readResult(token, user)).toThrow(/is not a file of user 65534/);
  });
});
