/**
 * Misfits in a cluster, as processes: a file with machine code, a wrong secret, a node of another version, a value that
 * is too large, a clock that is an hour off, and data from a backup. Each is reported to the person who can fix it, and
 * nothing is left half done.
 */

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { address } from "../../../src/core/base/ids.ts";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { nodeAead } from "../../../src/host/node-aead.ts";
import { KeyRing } from "../../../src/wire/key-ring.ts";
import { PROTOCOL } from "../../../src/wire/version.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { Asker } from "./asker.ts";
import { LocalCluster, MS_MAX, start, until } from "./local-cluster.ts";

/** A process that takes it for an hour later, and so do those that it starts. */
const HOUR_AHEAD = {
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(
    `const now = Date.now; const Real = Date;
     globalThis.Date = class extends Real {
       constructor(...args) { if (args.length === 0) super(now() + 3600000); else super(...args); }
       static now() { return now() + 3600000; }
     };`,
  )}`,
};
const ANOTHER_SECRET = "quite-Another-secret-0815";

describe("a cluster of a gate, three managers and a worker", () => {
  let cluster: LocalCluster;
  let target: DemoTarget;
  const started: ChildProcess[] = [];

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
    const shape = ["--gates", "1", "--managers", "3", "--workers", "1", "--profile", "local"];
    cluster = await LocalCluster.start(...shape);
  }, MS_MAX);

  afterAll(async () => {
    for (const child of started) if (child.exitCode === null) child.kill("SIGKILL");
    await cluster?.stop();
    await target.close();
  }, MS_MAX);

  /** Starts a process and collects its log. */
  function begin(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const child = start(args, env);
    started.push(child);
    const said = { text: "" };
    child.stderr?.on("data", (text) => {
      said.text += String(text);
    });
    return { child, said };
  }

  async function worker(name: string, changes: Readonly<Record<string, unknown>>): Promise<string> {
    const { api: _, ...w1 } = JSON.parse(await readFile(join(cluster.dir, "w1.json"), "utf8"));
    const file = join(cluster.dir, `${name}.json`);
    await writeFile(file, JSON.stringify({ ...w1, name, dataDir: name, ...changes }));
    return file;
  }

  async function file(name: string, text: string): Promise<string> {
    const path = join(cluster.dir, name);
    await writeFile(path, text);
    return path;
  }

  const load = (path: string, ...flags: readonly string[]) =>
    cluster.command(
      ...["submit", path, "--graceful-stop", "60s", ...flags],
      ...["-e", `HYPERSCALE_TARGET=${target.url}`],
    );

  async function endedGently(pid: number): Promise<void> {
    process.kill(pid, "SIGTERM");
    await until(async () => (cluster.left().every((node) => node.pid !== pid) ? true : null));
  }

  it(
    "is sent no machine code: the client names the file",
    async () => {
      await file("fast.node", "\u007fELF");
      const path = await file(
        "addon.ts",
        `import fast from "./fast.node";
         import { flow } from "hyperscalejs";
         export default flow("addon", { vus: 1, iterations: 1 }, async () => fast.run());`,
      );
      const { code, stderr } = await load(path, "--ui", "none");
      expect(code, stderr).toBe(2);
      expect(stderr).toContain("fast.node is a native addon: a cluster cannot run it");
      const client = await cluster.client();
      expect(await client.jobs()).toEqual([]);
      await client.close();
    },
    MS_MAX,
  );

  it(
    "rejects a client or a node with another secret, and both learn why",
    async () => {
      const wrong = await file("wrong.key", `${ANOTHER_SECRET}\n`);
      const { gates } = cluster.ready;
      const gate = ["--gate", gates.join(","), "--credentials", wrong];
      const listed = start(["jobs", "list", ...gate]);
      let said = "";
      listed.stderr?.on("data", (text) => {
        said += String(text);
      });
      const [code] = await once(listed, "close");
      expect(code, said).not.toBe(0);
      expect(said).toContain("this client is not taken in");
      expect(said).toContain("another secret");
      const stranger = begin([
        ...["worker", "start", "--config", await worker("w7", { secretFile: wrong })],
      ]);
      await until(async () => (stranger.said.text.includes("another secret") ? true : null));
      stranger.child.kill("SIGKILL");
      const client = await cluster.client();
      expect((await client.nodes()).map(({ name }) => name)).not.toContain("w7");
      await client.close();
    },
    MS_MAX,
  );

  it(
    "rejects a node of another major version, and names its own",
    async () => {
      const config = JSON.parse(await readFile(join(cluster.dir, "m1.json"), "utf8"));
      const secret = await readFile(join(cluster.dir, config.secretFile), "utf8");
      const made = KeyRing.create(nodeAead, [secret.trim()], "hyperscale/default");
      if (!made.ok) throw new Error(made.problem);
      const asker = await Asker.open({
        ...{ host: "127.0.9.9", role: "worker", ring: made.ring },
        hello: {
          ...{ cluster: "hyperscale", environment: "default", node: "old" },
          versionMajor: PROTOCOL.major - 1,
        },
      });
      const to = address(cluster.node("m1").address ?? "");
      const request = { name: "ledgerBatch", correlation: 0, value: new Uint8Array(10) } as const;
      const result = await asker.ask(to, request, PATIENCE_MS);
      await asker.close();
      expect(result.ok).toBe(false);
      expect(JSON.stringify([result, asker.problems])).toMatch(
        /protocol \d+\.\d+ is not spoken here.*majors must be equal/,
      );
    },
    MS_MAX,
  );

  it(
    "passes on no value above its limit: the job reports its size",
    async () => {
      // More than fits into an entry of the job's log; what no run hands on at all is in data.test.ts.
      const path = await file(
        "provides.ts",
        `import { workflow } from "hyperscalejs";
         const home = ({ http }: any) => http.get(process.env["HYPERSCALE_TARGET"] ?? "");
         export const first = workflow("first", { vus: 1, iterations: 1 })
           .step("home", home)
           .provide("tokens", { to: ["second"] }, () => "x".repeat(600_000));
         export const second = workflow("second", { vus: 1, iterations: 1 })
           .dependsOn(first)
           .use("session", { from: ["first"], keys: { tokens: "none" } })
           .step("home", home);`,
      );
      const { code, stderr, stdout } = await load(path, "--ui", "ci");
      expect(code, stdout + stderr).toBe(1);
      expect(stdout + stderr).toContain("at most 458752 are handed on");
    },
    MS_MAX,
  );

  it(
    "does not let a manager return with data from a backup",
    async () => {
      const [data, copy, newer] = ["m3", "m3.backup", "m3.newer"].map((name) =>
        join(cluster.dir, name),
      ) as [string, string, string];
      const args = ["manager", "start", "--config", join(cluster.dir, "m3.json")];
      await endedGently(cluster.node("m3").pid);
      await cp(data, copy, { recursive: true });
      const between = begin(args);
      await once(between.child.stdout as NodeJS.ReadableStream, "data");
      const short = ["--only", "quickstart", "--duration", "1s", "--ui", "none"];
      const done = await load("examples/quickstart.ts", ...short);
      expect([0, 99], done.stderr).toContain(done.code);
      between.child.kill("SIGTERM");
      await once(between.child, "exit");
      await rename(data, newer);
      await cp(copy, data, { recursive: true });
      const restored = begin(args);
      const [code] = await once(restored.child, "exit");
      expect(code, restored.said.text).toBe(70);
      expect(restored.said.text).toContain("OLD_LOG: the log of m3 ends at record");
      // As the operator's page says: the newer one is brought back.
      await rm(data, { recursive: true });
      await rename(newer, data);
      await once(begin(args).child.stdout as NodeJS.ReadableStream, "data");
    },
    MS_MAX,
  );

  it(
    "counts every request of a worker, and under a manager, whose clocks are an hour ahead",
    async () => {
      const ahead = begin(["worker", "start", "--config", await worker("w8", {})], HOUR_AHEAD);
      await once(ahead.child.stdout as NodeJS.ReadableStream, "data");
      await endedGently(cluster.node("m1").pid);
      const config = join(cluster.dir, "m1.json");
      const manager = begin(["manager", "start", "--config", config], HOUR_AHEAD);
      await once(manager.child.stdout as NodeJS.ReadableStream, "data");
      const client = await cluster.client();
      await until(async () =>
        (await client.nodes()).filter(({ role, status }) => role === "worker" && status === "alive")
          .length === 2
          ? true
          : null,
      );
      const out = join(cluster.dir, "out-clock");
      const before = target.stats().requests;
      const submitted = await load(
        ...["examples/quickstart.ts", "--only", "quickstart", "--duration", "4s", "--cores", "2"],
        ...["--out", out, "--vus", "4", "--ui", "none"],
      );
      const summary = JSON.parse(await readFile(join(out, "summary.json"), "utf8"));
      expect([0, 99], submitted.stderr).toContain(submitted.code);
      expect(summary.totals.requests).toBe(target.stats().requests - before);
      expect(summary.lost).toEqual([]);
      expect(summary.cluster.datacenters[0].workers).toBe(2);
      const said = /"at":"([^"]+)"/.exec(ahead.said.text)?.[1] ?? "";
      expect(Date.parse(said) - Date.now()).toBeGreaterThan(1_800_000);
      // Half the hour: neither the start nor the end is reckoned by a clock that is off.
      expect(summary.cluster.startSkewMs).toBeLessThan(1_800_000);
      expect(summary.durationSeconds).toBeLessThan(1_800);
      await client.close();
    },
    MS_MAX,
  );
});
