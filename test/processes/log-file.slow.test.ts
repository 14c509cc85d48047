/** `--log FILE` of real processes: an agent, a queue node, a ledger node and a run. */

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freshNet } from "../../bench/swim/agents.ts";
import { type DemoTarget, startDemoTarget } from "../../src/demo/server.ts";

const BIN = fileURLToPath(new URL("../../bin/hyperscale.js", import.meta.url));
const directory = mkdtempSync(join(tmpdir(), "hyperscale-log-file-"));
const secret = join(directory, "cluster.key");
let demo: DemoTarget;

beforeAll(async () => {
  writeFileSync(secret, "q7Jm2vXw9ZtKc4Rb-fR3-new\n");
  demo = await startDemoTarget({ port: 0 });
  // A checkout that is not built says on stderr that it builds.
  await hyperscale(["--version"]);
});
afterAll(async () => {
  await demo.close();
  rmSync(directory, { recursive: true, force: true });
});

interface Ended {
  readonly code: number | null;
  readonly stderr: string;
}

/** Runs a command; a node is terminated as soon as it reports that it is ready. */
function hyperscale(args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [BIN, ...args], { cwd: directory });
    let stderr = "";
    child.stderr.on("data", (part) => {
      stderr += part;
    });
    child.stdout.on("data", (part) => {
      if (String(part).includes('"ready"')) child.kill("SIGTERM");
    });
    child.on("exit", (code) => resolve({ code, stderr }));
  });
}

function events(file: string): readonly string[] {
  const lines = readFileSync(join(directory, file), "utf8").trim().split("\n");
  return lines.map((line) => (JSON.parse(line) as { event: string }).event);
}

describe("--log", () => {
  it("has the log of an agent from its start to its last line, and stderr has none of it", async () => {
    const bind = `127.${freshNet()}.1:7946`;
    const { code, stderr } = await hyperscale(
      ["agent", "--name", "a", "--bind", bind, "--secret-file", secret].concat([
        "--log",
        "logs/agent.log",
        "--data-dir",
        "agent",
      ]),
    );
    expect([code, stderr]).toEqual([0, ""]);
    const said = events("logs/agent.log");
    expect(said).toContain("agent.ready");
    expect(said.at(-1)).toBe("agent.stopped");
  });

  it("has the log of a queue node", async () => {
    const listen = ["--listen", "127.0.0.1:0", "--data-dir", "queue"];
    const { code, stderr } = await hyperscale(
      ["queue", "start", "--log", "queue.log", "--grace", "1s"].concat(listen),
    );
    expect([code, stderr]).toEqual([0, ""]);
    expect(events("queue.log")).toContain("role.changed");
    expect(events("queue.log").at(-1)).toBe("queue.stopped");
  });

  it("has the log of a ledger node", async () => {
    const host = `127.${freshNet()}.2`;
    await hyperscale(["ledger", "init", "--nodes", "1", "--dir", "ledger", "--host", host]);
    const { code, stderr } = await hyperscale(
      ["ledger", "start", "--config", "ledger/n1.json"].concat(["--log", "ledger.log"]),
    );
    expect([code, stderr]).toEqual([0, ""]);
    expect(events("ledger.log")).toContain("ledger.ready");
    expect(events("ledger.log").at(-1)).toBe("ledger.stopped");
  });

  it("has the story of a run", async () => {
    const { code } = await hyperscale(
      ["run", demo.url, "--vus", "2", "--duration", "2s", "--cores", "1", "--ui", "none"].concat([
        "--out",
        "out",
        "--log",
        "run.log",
      ]),
    );
    expect(code).toBe(0);
    const said = events("run.log");
    expect(said[0]).toBe("run.started");
    expect(said).toContain("run.phase");
    expect(said).toContain("run.workflow");
    expect(said.at(-1)).toBe("run.ended");
  });

  it.each([
    ["agent", ["agent", "--secret-file", secret]],
    ["queue", ["queue", "start"]],
    ["ledger", ["ledger", "start", "--config", "ledger/n1.json"]],
    ["run", ["run", "http://127.0.0.1:1/"]],
  ])(
    "of %s is refused with 2 when it cannot be opened, before anything begins",
    async (_, args) => {
      // Inside a file, and where no folder can be made.
      for (const log of [join(secret, "x.log"), "/proc/hyperscale/x.log"]) {
        const { code, stderr } = await hyperscale([...args, "--log", log]);
        expect(code).toBe(2);
        expect(stderr).toContain(`--log ${log}: cannot be opened: `);
      }
      expect(existsSync(join(directory, ".hyperscale"))).toBe(false);
      expect(readdirSync(directory)).not.toContain("hyperscale-results");
    },
  );
});
