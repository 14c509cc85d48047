/**
 * A manager whose disk is lost is replaced by one of another name, as documented for operators, while the others serve:
 * the new one knows earlier jobs, and accepts jobs.
 */

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { ended, LocalCluster, MS_MAX, start, until } from "./local-cluster.ts";

interface ManagerFile {
  readonly bind: string;
  readonly api: string;
  readonly peers: readonly { readonly name: string; readonly address: string }[];
}

describe("a manager that lost its disk", () => {
  let cluster: LocalCluster;
  let target: DemoTarget;
  const started: ChildProcess[] = [];

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
    cluster = await LocalCluster.start("--gates", "0", "--managers", "3", "--workers", "1");
  }, MS_MAX);

  afterAll(async () => {
    for (const child of started) if (child.exitCode === null) child.kill("SIGKILL");
    await cluster?.stop();
    await target.close();
  }, MS_MAX);

  const fileOf = (name: string): string => join(cluster.dir, `${name}.json`);
  const read = async (name: string): Promise<ManagerFile> =>
    JSON.parse(await readFile(fileOf(name), "utf8"));

  async function run(role: string, name: string): Promise<void> {
    const child = start([role, "start", "--config", fileOf(name)]);
    started.push(child);
    child.stderr?.resume();
    await once(child.stdout as NodeJS.ReadableStream, "data");
  }

  async function restart(role: string, name: string): Promise<void> {
    const { pid } = cluster.node(name);
    process.kill(pid, "SIGTERM");
    await until(async () => (cluster.left().some((one) => one.pid === pid) ? null : true));
    await run(role, name);
  }

  async function submitAt(manager: string, credentials: string): Promise<string> {
    const { code, stderr, stdout } = await ended(
      start([
        ...["submit", "examples/quickstart.ts", "--only", "quickstart", "--ui", "none"],
        ...["--duration", "1s", "--graceful-stop", "60s", "--cores", "1"],
        ...["-e", `HYPERSCALE_TARGET=${target.url}`],
        ...["--manager", manager, "--credentials", credentials],
      ]),
    );
    expect([0, 99], stderr).toContain(code);
    return stdout;
  }

  it(
    "is replaced by another",
    async () => {
      const credentials = join(cluster.dir, "client.key");
      await submitAt((await read("m1")).bind, credentials);
      const lost = await read("m3");
      process.kill(cluster.node("m3").pid, "SIGKILL");
      await rm(join(cluster.dir, "m3"), { recursive: true });

      // The replacement runs on this machine in place of the old one, whose address is no longer used.
      const [host, port] = lost.bind.split(":");
      const bind = `${host}:${Number(port) + 50}`;
      const added = { name: "m4", address: bind };
      const api = `${host}:${Number(port) + 51}`;
      const old = await read("m1");
      const peers = [...old.peers, { name: "m1", address: old.bind }];
      await writeFile(
        fileOf("m4"),
        JSON.stringify({ ...lost, name: "m4", dataDir: "m4", bind, api, peers }),
      );
      for (const name of ["m1", "m2"]) {
        const config = await read(name);
        await writeFile(
          fileOf(name),
          JSON.stringify({ ...config, peers: [...config.peers, added] }),
        );
        await restart("manager", name);
      }
      const allowed = await ended(start(["manager", "join", "--config", fileOf("m4")]));
      expect(allowed).toMatchObject({ code: 0, stdout: expect.stringContaining("may join") });
      await run("manager", "m4");
      for (const name of ["m1", "m2"]) {
        const moving = ["ledger", "replace", "--leaving", "m3", "--joining", "m4"];
        const where = ["--api", (await read(name)).api, "--dir", cluster.dir];
        await until(async () => {
          const { stdout } = await ended(start([...moving, ...where, "--json"]));
          return /"replaced":0\b/.test(stdout.replaceAll(" ", "")) ? true : null;
        });
      }

      const worker = JSON.parse(await readFile(fileOf("w1"), "utf8"));
      const managers = [...worker.managers, added];
      await writeFile(fileOf("w1"), JSON.stringify({ ...worker, managers }));
      await restart("worker", "w1");
      await submitAt(bind, credentials);
      const at = ["--manager", bind, "--credentials", credentials, "--json"];
      const listed = await ended(start(["jobs", "list", ...at]));
      const { jobs } = JSON.parse(listed.stdout) as { jobs: { status: string }[] };
      expect(jobs.map(({ status }) => status)).toEqual(["COMPLETED", "COMPLETED"]);
    },
    2 * MS_MAX,
  );
});
