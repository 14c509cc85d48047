/** The built-in executors against real servers and real processes. */

import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ExecutionContext, NotRetryable } from "../worker/executor.ts";
import { commandExecutor } from "./command.ts";
import { httpExecutor as httpExecutorOf } from "./http.ts";
import { loadtestExecutor } from "./loadtest.ts";
import { sleepExecutor } from "./sleep.ts";

function context(
  signal = new AbortController().signal,
): ExecutionContext & { readonly lines: string[]; readonly attached: Map<string, Buffer> } {
  const lines: string[] = [];
  const attached = new Map<string, Buffer>();
  return {
    taskId: "1",
    attempt: 1,
    idempotencyKey: "key",
    dependencies: {},
    dependenciesMissing: {},
    signal,
    log: (line) => void lines.push(line),
    progress: () => undefined,
    history: async () => ({ submitted_at: "then", progress: null }),
    file: (hash) => Promise.reject(new Error(`no file ${hash}`)),
    attach: async (name, content) => void attached.set(name, Buffer.from(content)),
    lines,
    attached,
  };
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "hyperscale-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("sleep", () => {
  it("answers, fails, and ends on abort", async () => {
    expect(await sleepExecutor({ ms: 1, result: [1] }, context())).toEqual([1]);
    await expect(sleepExecutor({ ms: 0, fail: "why" }, context())).rejects.toThrow("why");
    await expect(sleepExecutor({ ms: "soon" }, context())).rejects.toThrow(/input\.ms/);
    const abort = new AbortController();
    const sleeping = sleepExecutor({ ms: 60_000 }, context(abort.signal));
    abort.abort();
    await expect(sleeping).rejects.toThrow(/abort/i);
  });
});

describe("http", () => {
  const httpExecutor = httpExecutorOf({ allow: ["127.0.0.1"] });
  let server: Server;
  let url: string;
  beforeAll(async () => {
    server = createServer((request, response) => {
      let body = "";
      request.on("data", (part) => {
        body += String(part);
      });
      request.on("end", () => {
        const status = Number(request.url?.slice(1));
        response.writeHead(status, { "content-type": "application/json" });
        response.end(JSON.stringify({ body, key: request.headers["idempotency-key"] }));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  });
  afterAll(() => new Promise<void>((resolve) => void server.close(() => resolve())));

  it("lets a task set its own key, says why a connection failed, and sends no body with GET", async () => {
    const own = { url: `${url}/200`, method: "POST", headers: { "Idempotency-Key": "mine" } };
    expect(await httpExecutor(own, context())).toMatchObject({ body: { key: "mine" } });
    const gone = createServer();
    await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
    const { port } = gone.address() as { port: number };
    await new Promise((resolve) => gone.close(resolve));
    await expect(httpExecutor({ url: `http://127.0.0.1:${port}/` }, context())).rejects.toThrow(
      /^GET http:.*: .*ECONNREFUSED/,
    );
    await expect(httpExecutor({ url, body: "x" }, context())).rejects.toThrow(NotRetryable);
  });

  it("sends JSON with the task's key and returns the answer", async () => {
    const result = await httpExecutor(
      { url: `${url}/200`, method: "POST", body: { a: 1 } },
      context(),
    );
    expect(result).toMatchObject({ status: 200, body: { body: '{"a":1}', key: "key" } });
  });

  it.each([
    [503, false],
    [429, false],
    [404, true],
    [400, true],
  ])("treats %i as final: %s", async (status, final) => {
    const answer = Promise.resolve(httpExecutor({ url: `${url}/${status}` }, context()));
    const error = await answer.catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(Error);
    expect(error instanceof NotRetryable).toBe(final);
  });

  it("sets the headers of the connection itself", async () => {
    const headers = {
      "Transfer-Encoding": "chunked",
      "Content-Length": "0",
      Connection: "upgrade",
    };
    const own = { url: `${url}/200`, method: "POST", headers, body: "whole" };
    expect(await httpExecutor(own, context())).toMatchObject({ body: { body: "whole" } });
  });

  it("rejects addresses other than http and https", async () => {
    await expect(httpExecutor({ url: "file:///etc/passwd" }, context())).rejects.toBeInstanceOf(
      NotRetryable,
    );
  });
});

describe("command", () => {
  const run = commandExecutor({ allow: [process.execPath] });

  it("runs allowed programs, without the node's environment, and logs their lines", async () => {
    process.env["QUEUE_TEST_SECRET"] = "secret";
    const recording = context();
    const script =
      "process.stdin.on('data', d => console.log('got ' + d, process.env.QUEUE_TEST_SECRET))";
    const result = await run(
      { command: process.execPath, args: ["-e", script], stdin: "words" },
      recording,
    );
    expect(result).toMatchObject({ code: 0, stdout: "got words undefined\n" });
    expect(recording.lines).toEqual(["got words undefined"]);
  });

  it("rejects anything else permanently", async () => {
    const refused = await Promise.resolve(
      run({ command: "/bin/sh", args: ["-c", "id"] }, context()),
    ).catch((error) => error);
    expect(refused).toBeInstanceOf(NotRetryable);
    expect(String(refused)).toMatch(/not on this node's list/);
  });

  it("ends the program when the task is aborted or times out", async () => {
    const args = ["-e", "setInterval(() => {}, 1000)"];
    const abort = new AbortController();
    const running = run({ command: process.execPath, args }, context(abort.signal));
    setTimeout(() => abort.abort(), 200);
    await expect(running).rejects.toThrow(/SIGINT/);
    await expect(
      run({ command: process.execPath, args, timeout_ms: 200 }, context()),
    ).rejects.toThrow(/longer than 200 ms/);
  });
});

/** A run on a busy machine passes its thresholds and is untrusted. */
const PASSED = expect.stringMatching(/^(passed|untrusted)$/);

describe("loadtest", () => {
  const policy = (workflows?: string) =>
    loadtestExecutor({ resultsDirectory: join(folder, "results"), workflows, bundles: false });

  async function refusalOf(input: object, workflows?: string): Promise<string> {
    const error = await Promise.resolve(policy(workflows)(input, context())).catch(
      (caught) => caught,
    );
    expect(error).toBeInstanceOf(NotRetryable);
    return String(error);
  }

  it("reads nothing from the disk of a node without an allowed folder", async () => {
    const file = join(folder, "evil.ts");
    writeFileSync(file, "throw new Error('it ran')");
    expect(await refusalOf({ file })).toMatch(/runs no workflow files.*--workflows/);
  });

  it("runs files of the allowed folder only, wherever links lead", async () => {
    const allowed = join(folder, "workflows");
    mkdirSync(allowed, { recursive: true });
    const outside = join(folder, "outside.ts");
    writeFileSync(outside, "throw new Error('it ran')");
    symlinkSync(outside, join(allowed, "link.ts"));
    for (const file of [outside, "../outside.ts", "link.ts", "missing.ts", "."])
      expect(await refusalOf({ file }, allowed)).toMatch(
        /not a file of this node's workflow folder/,
      );
  });

  it.each([["--help"], ["--out"], ["--out=elsewhere"], ["--log"], ["--inspect"], ["file.ts"]])(
    "rejects %s from a task",
    async (argument) => {
      const input = { file: "http://127.0.0.1:9/", args: [argument, "x"] };
      expect(await refusalOf(input)).toMatch(/is not taken here/);
    },
  );

  it("passes variables to the code of a file, and to nothing that starts", async () => {
    const server = createServer((_, response) => response.end("ok"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const allowed = join(folder, "with-variables");
    mkdirSync(allowed);
    writeFileSync(
      join(allowed, "shop.ts"),
      'import { flow, http } from "hyperscalejs";\n' +
        'const shop = http.target(process.env["SHOP"] ?? "http://127.0.0.1:9");\n' +
        'export default flow(process.env["CALLED"] ?? "f", { vus: 1, iterations: 3 }, async ({ step }) => {\n' +
        '  await step("home", shop.get("/"));\n});\n',
    );
    const marker = join(folder, "it-ran");
    const code = `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(marker)}, "");`;
    const env = {
      SHOP: `http://127.0.0.1:${port}`,
      CALLED: "a=b, c",
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}`,
    };
    try {
      const done = await policy(allowed)({ file: "shop.ts", env }, context());
      expect(done).toMatchObject({
        verdict: PASSED,
        summary: { workflows: [{ name: "a=b, c", totals: { requests: 3 } }] },
      });
      expect(existsSync(marker)).toBe(false);
    } finally {
      server.closeAllConnections();
      server.close();
    }
    expect(await refusalOf({ file: "http://127.0.0.1:9/", env: { "A B": "x" } })).toMatch(
      /input\.env/,
    );
  });

  it("reports a run whose generator was the limit as untrusted, passed or rejected for it", async () => {
    const server = createServer((_, response) => response.end("ok"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const allowed = join(folder, "standing-still");
    mkdirSync(allowed);
    writeFileSync(
      join(allowed, "busy.ts"),
      'import { flow, http } from "hyperscalejs";\n' +
        'const shop = http.target(process.env["SHOP"] ?? "");\n' +
        'export default flow("busy", { vus: 1, iterations: 3 }, async ({ step }) => {\n' +
        "  for (const until = performance.now() + 300; performance.now() < until; );\n" +
        '  await step("home", shop.get("/"));\n});\n',
    );
    const input = { file: "busy.ts", env: { SHOP: `http://127.0.0.1:${port}` } };
    try {
      const lenient = { ...input, args: ["--no-require-trusted"] };
      expect(await policy(allowed)(lenient, context())).toMatchObject({
        ...{ verdict: "untrusted", exit_code: 0 },
        summary: { verdict: "passed", trust: { trusted: false } },
      });
      const strict = { ...input, args: ["--require-trusted"], on_failed_threshold: "succeed" };
      expect(await policy(allowed)(strict, context())).toMatchObject({
        ...{ verdict: "untrusted", exit_code: 98 },
        summary: { verdict: "passed", trust: { trusted: false, required: true } },
      });
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it("returns the whole summary of a run, and fails a task whose threshold failed", async () => {
    const server = createServer((_, response) => response.end("ok"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const file = `http://127.0.0.1:${port}/`;
    const args = ["--iterations", "20", "--vus", "2", "--cores", "1"];
    try {
      const here = context();
      const done = await policy()({ file, args }, here);
      expect(done).toMatchObject({
        verdict: PASSED,
        omitted: [],
        files: [...here.attached.keys()],
      });
      expect([...here.attached.keys()].sort()).toEqual([
        "junit.xml",
        "report.html",
        "summary.json",
      ]);
      expect(done).toHaveProperty("summary.workflows");
      const strict = [...args, "--threshold", "latency.p99<0.0001ms"];
      expect(await refusalOf({ file, args: strict })).toMatch(/the load test failed: .*latency/);
      const lenient = { file, args: strict, on_failed_threshold: "succeed" };
      expect(await policy()(lenient, context())).toMatchObject({ verdict: "failed" });
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it("keeps variables and headers of a task out of the arguments of processes", async () => {
    const seen = { header: "", commands: "" };
    const server = createServer(({ headers }, response) => {
      seen.header = headers.authorization ?? "";
      seen.commands ||= execFileSync("ps", ["-eo", "args"], { encoding: "utf8" });
      response.end("ok");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const args = ["--iterations", "1", "--vus", "1", "--cores", "1", "--no-require-trusted"];
    const secret = randomUUID();
    const secrets = ["--header", `authorization: Bearer ${secret}`];
    const file = `http://127.0.0.1:${port}/`;
    const input = { file, args: [...args, ...secrets], env: { KEY: secret } };
    try {
      expect(await policy()(input, context())).toMatchObject({ verdict: PASSED });
    } finally {
      server.closeAllConnections();
      server.close();
    }
    expect(seen.header).toBe(`Bearer ${secret}`);
    expect(seen.commands).toContain("hyperscale.js run");
    expect(seen.commands).not.toContain(secret);
  });
});
