/**
 * Three workflows in two layers, as processes: what the first layer provides and what a set-up returns reach every
 * worker, in one datacenter and in each of two, and set-up runs once, also when the manager that leads the job is
 * killed between the layers. The target tells what it was asked.
 */

import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ended, LocalCluster, MS_MAX, start, until } from "./local-cluster.ts";

const FILE = `
  import { workflow } from "hyperscalejs";
  const target = process.env["TARGET"] ?? "";
  const get = (path: string) => ({ http }: any) => http.get(target + path);
  export const login = workflow("login", { vus: 1, iterations: 2 })
    .step("login", get("/login"))
    .provide("token", { to: ["browse"] }, ({ last }) => last.login?.text());
  export const stock = workflow("stock", { vus: 1, iterations: 2 })
    .step("stock", get("/stock"))
    .provide("item", { to: ["browse"] }, ({ last }) => last.stock?.text());
  export const browse = workflow("browse", { vus: 8, iterations: 40, think: "50ms" })
    .dependsOn(login, stock)
    .setup(async ({ http }) => (await http.get(target + "/setup")).text())
    .use("session", { from: ["login"], keys: { token: "none" } })
    .use("goods", { from: ["stock"], keys: { item: "none" } })
    .step("browse", ({ http, used, setup }) =>
      http.get(target + "/browse/" + used.session.token + "/" + used.goods.item + "/" + setup),
    );
`;

/** Of one datacenter; with both and `--each-datacenter` twice as many. */
const BROWSED = 40;

describe("workflows in layers", () => {
  let cluster: LocalCluster;
  let server: Server;
  let asked: string[] = [];
  /** Called for each request of the first layer, before it is answered. */
  let onStock = async (): Promise<void> => undefined;

  beforeAll(async () => {
    server = createServer(async (request, response) => {
      const path = request.url ?? "";
      asked.push(path);
      if (path === "/stock") await onStock();
      const answers: Record<string, string> = { "/login": "t7", "/stock": "i3", "/setup": "s5" };
      response.end(answers[path] ?? "ok");
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    cluster = await LocalCluster.start(
      ...["--gates", "1", "--datacenters", "dc1,dc2", "--managers", "3", "--workers", "2"],
    );
    await writeFile(join(cluster.dir, "layers.ts"), FILE);
  }, MS_MAX);

  afterAll(async () => {
    await cluster?.stop();
    server.closeAllConnections();
    server.close();
  }, MS_MAX);

  async function submitted(name: string, ...flags: readonly string[]) {
    asked = [];
    const out = join(cluster.dir, name);
    const { port } = server.address() as AddressInfo;
    const end = await ended(
      start([
        ...["submit", join(cluster.dir, "layers.ts"), "--dir", cluster.dir, "--ui", "none"],
        ...["--out", out, "-e", `TARGET=http://127.0.0.1:${port}`, "--graceful-stop", "60s"],
        ...flags,
      ]),
    );
    expect(end, end.stderr).toMatchObject({ code: 0 });
    return JSON.parse(await readFile(join(out, "summary.json"), "utf8"));
  }

  const counted = (): Record<string, number> => {
    const counts: Record<string, number> = {};
    for (const path of asked) counts[path] = (counts[path] ?? 0) + 1;
    return counts;
  };

  it(
    "hand their values to every worker of a datacenter",
    async () => {
      const { lost } = await submitted("one", "--cores", "2");
      expect(lost).toEqual([]);
      expect(counted()).toEqual({
        ...{ "/login": 2, "/stock": 2, "/setup": 1 },
        "/browse/t7/i3/s5": BROWSED,
      });
    },
    MS_MAX,
  );

  it(
    "do so in each of two datacenters, with one set-up over both",
    async () => {
      const { lost } = await submitted("each", "--datacenters", "dc1,dc2", "--each-datacenter");
      expect(lost).toEqual([]);
      expect(counted()).toEqual({
        ...{ "/login": 4, "/stock": 4, "/setup": 1 },
        "/browse/t7/i3/s5": 2 * BROWSED,
      });
    },
    MS_MAX,
  );

  it.each([
    ["of one datacenter", "dc1", ["--datacenters", "dc1"], 1],
    ["of one of two", "dc2", ["--datacenters", "dc1,dc2", "--each-datacenter"], 2],
  ])(
    "do so when the manager that leads the job is killed between the layers, %s",
    async (_what, datacenter, flags, times) => {
      const client = await cluster.client();
      let killed: string | null = null;
      onStock = async () => {
        if (killed !== null) return;
        killed = "";
        const leader = await until(async () => {
          const nodes = await client.nodes();
          return (
            nodes.find(
              (one) => one.role === "manager" && one.leads > 0 && one.datacenter === datacenter,
            ) ?? null
          );
        });
        killed = leader.name;
        process.kill(cluster.node(leader.name).pid, "SIGKILL");
      };
      await submitted(`killed in ${datacenter}`, ...flags);
      await client.close();
      expect(killed).toContain(datacenter);
      expect(counted()).toEqual({
        ...{ "/login": 2 * times, "/stock": 2 * times, "/setup": 1 },
        "/browse/t7/i3/s5": times * BROWSED,
      });
    },
    MS_MAX,
  );
});
