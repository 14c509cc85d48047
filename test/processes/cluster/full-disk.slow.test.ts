/** A manager whose disk stores no results, as seen by operators in `/readyz`, metrics and `hyperscale nodes`. */

import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { LocalCluster, MS_MAX, until } from "./local-cluster.ts";

let cluster: LocalCluster;
let target: DemoTarget;

beforeAll(async () => {
  target = await startDemoTarget({ port: 0 });
  const shape = ["--gates", "1", "--managers", "3", "--workers", "1", "--profile", "local"];
  cluster = await LocalCluster.start(...shape);
}, MS_MAX);

afterAll(async () => {
  await cluster?.stop();
  await target.close();
}, MS_MAX);

async function metrics(manager: string): Promise<string> {
  return (await fetch(`http://${cluster.node(manager).api}/metrics`)).text();
}

it(
  "is not ready, reports it in its metrics, and is shown by nodes until there is space again",
  async () => {
    const client = await cluster.client();
    const { stdout: id } = await cluster.command(
      ...["submit", "examples/quickstart.ts", "--detach", "--only", "quickstart"],
      ...["--duration", "20m", "--vus", "2", "-e", `HYPERSCALE_TARGET=${target.url}`],
    );
    const job = await client.jobId(id.trim());
    const { name } = await until(async () => {
      const nodes = await client.nodes();
      return nodes.find(({ leads, role }) => role === "manager" && leads > 0) ?? null;
    });
    await until(async () => ((await client.status(job)).status === "RUNNING" ? true : null));
    expect(await metrics(name)).toContain("hyperscale_manager_disk_failed 0");
    // Nothing can be stored because a file replaces the folder.
    const blobs = join(cluster.dir, name, "blobs");
    await rename(blobs, `${blobs}.away`);
    await writeFile(blobs, "");
    await client.control(job, { kind: "cancel", reason: "seen enough" }, "test");
    await until(async () =>
      (await client.progress(job, 0, false)).summary === null ? null : true,
    );
    const [code, body] = await cluster.readiness(name);
    expect(code).toBe(503);
    const why = expect.stringContaining("results cannot be stored here: cannot be kept: ENOTDIR");
    expect(body).toMatchObject({ ready: false, why });
    expect(await metrics(name)).toContain("hyperscale_manager_disk_failed 1");
    const problemOf = async (): Promise<string | undefined> =>
      (await client.nodes()).find((one) => one.name === name)?.diskProblem;
    await until(async () => ((await problemOf())?.includes("ENOTDIR") ? true : null));
    const shown = await cluster.command("nodes");
    expect(shown.stdout).toMatch(new RegExp(`^${name} .* disk: cannot be kept: ENOTDIR`, "m"));
    const rights = process.getuid?.() === 0 ? "runs as nobody" : "has the worker's rights";
    expect(shown.stdout).toContain(`job code ${rights}`);
    await rm(blobs);
    await rename(`${blobs}.away`, blobs);
    await until(async () => ((await cluster.readiness(name))[0] === 200 ? true : null));
    expect(await metrics(name)).toContain("hyperscale_manager_disk_failed 0");
    await until(async () => ((await problemOf()) === "" ? true : null));
  },
  MS_MAX,
);
