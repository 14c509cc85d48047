/** `hyperscale cluster up` as a person sees it: where it cannot begin, and how it ends by Ctrl-C. */

import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ended, freePort, LocalCluster, MS_MAX, start, until } from "./local-cluster.ts";

describe("cluster up", () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "hyperscale-up-"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it(
    "reports in one line that its directory cannot be created, in the foreground and in the background",
    async () => {
      const file = join(folder, "file");
      await writeFile(file, "");
      const impossible = [join(file, "inside")];
      // Where the system has nothing to make folders in.
      if (process.platform === "linux") impossible.push("/proc/hyperscale/cluster");
      for (const dir of impossible)
        for (const detach of [[], ["--detach"]]) {
          const { code, stderr } = await ended(start(["cluster", "up", "--dir", dir, ...detach]));
          expect([dir, code]).toEqual([dir, 2]);
          expect(stderr).toContain(`hyperscale cluster up: --dir ${dir}: E`);
          expect(stderr).not.toContain("    at ");
        }
    },
    MS_MAX,
  );

  it(
    "reports on Ctrl-C that it stops, and what has stopped",
    async () => {
      const port = String(await freePort());
      const shape = ["--gates", "0", "--workers", "1", "--port", port];
      const child = start(["cluster", "up", "--dir", join(folder, "first"), ...shape]);
      let said = "";
      child.stdout?.on("data", (text) => {
        said += String(text);
      });
      await until(async () => (said.includes("ready: ") ? true : null));
      expect(said).toContain("Ctrl-C ends the cluster");
      child.kill("SIGINT");
      const [code] = await once(child, "close");
      expect(code).toBe(0);
      const lines = said.trim().split("\n").slice(-4);
      expect(lines).toEqual([
        "ending 2 nodes, workers first; Ctrl-C again ends them at once",
        "w1 ended: exit code 0",
        "m1 ended: exit code 0",
        "the cluster has ended",
      ]);
    },
    MS_MAX,
  );

  it(
    "leaves nodes that cluster down ends when it is killed itself",
    async () => {
      const cluster = await LocalCluster.start("--gates", "0", "--workers", "1");
      cluster.up.kill("SIGKILL");
      await once(cluster.up, "exit");
      expect(cluster.left()).not.toEqual([]);
      const again = await cluster.command("cluster", "up");
      expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining("cluster down") });
      const down = await cluster.command("cluster", "down");
      expect(down, down.stderr).toMatchObject({ code: 0 });
      // The process that inherited them may take a while to notice.
      await until(async () => (cluster.left().length === 0 ? true : null));
      await cluster.stop();
    },
    MS_MAX,
  );

  it(
    "exits at once on the second Ctrl-C, though a node is stalled",
    async () => {
      const cluster = await LocalCluster.start("--gates", "0", "--workers", "1");
      let said = "";
      cluster.up.stdout?.on("data", (text) => {
        said += String(text);
      });
      process.kill(cluster.node("w1").pid, "SIGSTOP");
      cluster.up.kill("SIGINT");
      await until(async () => (said.includes('"ending"') ? true : null));
      await until(async () => {
        cluster.up.kill("SIGINT");
        return said.includes('"killing"') ? true : null;
      });
      await until(async () => (said.includes('"over"') ? true : null));
      expect(said).toContain('{"event":"ended","name":"w1","how":"SIGKILL"}');
      await until(async () => (cluster.left().length === 0 ? true : null));
      await cluster.stop();
    },
    MS_MAX,
  );
});
