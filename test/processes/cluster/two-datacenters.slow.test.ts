/**
 * Jobs in two datacenters with three managers and two workers each, behind one gate: their metrics against the target's
 * own counts, the gate's circuit breaker for a stalled datacenter, and workflows in layers while managers are killed.
 * One cluster, in this order: the last tests kill managers.
 */

import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClusterClient } from "../../../src/client/client.ts";
import type { RunSummary } from "../../../src/core/load/results/model.ts";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { tokenFor } from "../../../src/host/control/token.ts";
import { ended, LocalCluster, MS_MAX, start, until } from "./local-cluster.ts";

let cluster: LocalCluster;

beforeAll(async () => {
  cluster = await LocalCluster.start(
    ...["--gates", "1", "--datacenters", "dc1,dc2", "--managers", "3", "--workers", "2"],
  );
}, MS_MAX);

afterAll(() => cluster?.stop(), MS_MAX);

/** Each iteration sends its measured value to the target. */
const SIZES_FILE = `
  import { trend, workflow } from "hyperscalejs";
  const size = trend("size");
  export default workflow("sizes", { vus: 8, iterations: 400, metrics: [size] }).step(
    "tell",
    async ({ http, user }) => {
      const value = 1 + ((user.id * 7919 + user.iteration * 104729) % 99991) / 97;
      const response = await http.get((process.env["TARGET"] ?? "") + "/" + value);
      size.add(value);
      return response;
    },
  );
`;
const ITERATIONS = 400;
const BOTH = ["--datacenters", "dc1,dc2"];

describe("a job in two datacenters", () => {
  let server: Server;
  let requested: number[] = [];

  beforeAll(async () => {
    server = createServer((request, response) => {
      requested.push(Number(request.url?.slice(1)));
      response.end("ok");
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    await writeFile(join(cluster.dir, "sizes.ts"), SIZES_FILE);
  }, MS_MAX);

  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  async function summaryOf(command: string, ...flags: readonly string[]): Promise<RunSummary> {
    requested = [];
    const out = join(cluster.dir, `out-${command}-${flags.length}`);
    const { port } = server.address() as AddressInfo;
    const end = await ended(
      start([
        ...[command, join(cluster.dir, "sizes.ts"), "--ui", "none", "--out", out],
        ...["-e", `TARGET=http://127.0.0.1:${port}`, "--graceful-stop", "60s", ...flags],
        ...(command === "submit" ? ["--dir", cluster.dir] : []),
      ]),
    );
    expect([0, 99], end.stderr).toContain(end.code);
    return JSON.parse(await readFile(join(out, "summary.json"), "utf8"));
  }

  it(
    "is the same load as by run, and its percentiles match all raw samples to 0.1 percent",
    async () => {
      const runs = [
        await summaryOf("run"),
        await summaryOf("submit"),
        await summaryOf("submit", ...BOTH),
      ];
      for (const { totals, workflows } of runs) {
        expect(totals).toMatchObject({ requests: ITERATIONS, failed: 0 });
        expect(workflows.map(({ name }) => name)).toEqual(["sizes"]);
      }
      const [, , both] = runs;
      expect(both?.cluster?.datacenters.map(({ requests }) => requests)).toEqual([
        ITERATIONS / 2,
        ITERATIONS / 2,
      ]);
      expect(requested).toHaveLength(ITERATIONS);
      const sorted = requested.toSorted((one, other) => one - other);
      const [size] = both?.workflows[0]?.metrics ?? [];
      for (const share of [50, 90, 95, 99]) {
        const exact = sorted[Math.ceil((share / 100) * ITERATIONS) - 1] ?? 0;
        const merged = size?.values[`p${share}`] ?? 0;
        expect([share, Math.abs(merged - exact) / exact < 0.001]).toEqual([share, true]);
      }
    },
    MS_MAX,
  );

  it(
    "ends everywhere by a threshold that only the merged figure crosses",
    async () => {
      const most = 200;
      const load = ["--rate", "25", "--duration", "5m"];
      const rule = ["--threshold", `requests.count < ${most}`, "--abort-on-fail"];
      const {
        cluster: where,
        thresholds,
        totals,
        verdict,
      } = await summaryOf(...(["submit", ...BOTH, ...load, ...rule] as const));
      expect(verdict).toBe("failed");
      expect(thresholds[0]).toMatchObject({ passed: false, aborted: true });
      expect(totals?.requests).toBe(requested.length);
      expect(requested.length).toBeGreaterThanOrEqual(most);
      const parts = where?.datacenters.map(({ requests }) => requests) ?? [];
      expect(parts).toHaveLength(2);
      expect(Math.max(...parts)).toBeLessThan(most);
    },
    MS_MAX,
  );
});

// CB-1, CB-4, CB-5
/** Longer than the circuit needs to open and to close on a busy machine: the job is cancelled then. */
const LOAD = "20m";
const OPEN = 1;

describe("the circuit of a gate to a datacenter", () => {
  let target: DemoTarget;

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
  }, MS_MAX);

  afterAll(async () => {
    signal("dc2", "SIGCONT");
    await target.close();
  }, MS_MAX);

  function signal(datacenter: string, name: NodeJS.Signals): void {
    for (const { pid, role, name: node } of cluster.left())
      if (role === "manager" && node.startsWith(datacenter)) process.kill(pid, name);
  }

  const gate = async (path: string): Promise<string> => {
    const { api } = cluster.ready.processes.find(({ role }) => role === "gate") ?? {};
    const token = tokenFor({ api: api ?? "", dir: cluster.dir });
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`http://${api}${path}`, { headers })).text();
  };

  async function circuit(client: ClusterClient, datacenter: string) {
    const seen = (await client.datacenters()).find(({ name }) => name === datacenter);
    return { state: seen?.circuit, queued: seen?.operationsQueued ?? 0 };
  }

  /** Events of the job's datacenter part, as its own managers report them. */
  async function eventsIn(client: ClusterClient, job: string, name: string) {
    const part = (await client.status(job)).datacenters.find((one) => one.name === name);
    const manager = await cluster.client(...["m1", "m2", "m3"].map((one) => `${name}${one}`));
    const events = await manager.events(part?.job ?? "");
    await manager.close();
    return events.map(({ kind, text }) => `${kind}: ${text}`);
  }

  const requestsIn = async (client: ClusterClient, job: string, name: string): Promise<number> =>
    (await client.status(job)).datacenters.find((one) => one.name === name)?.requests ?? 0;

  it(
    "opens, keeps what is meant for it, and delivers it when the datacenter returns",
    async () => {
      const out = join(cluster.dir, "out");
      const submitted = ended(
        start([
          ...["submit", "examples/quickstart.ts", "--only", "quickstart", "--vus", "4"],
          ...["--dir", cluster.dir, "--ui", "none", "--out", out, "--graceful-stop", "60s"],
          ...["--duration", LOAD, "--datacenters", "dc1,dc2"],
          ...["-e", `HYPERSCALE_TARGET=${target.url}`],
        ]),
      );
      const client = await cluster.client();
      const { id } = await until(async () => {
        const jobs = await client.jobs();
        return jobs.find(({ status }) => status === "RUNNING") ?? null;
      });
      for (const name of ["dc1", "dc2"])
        await until(async () => ((await requestsIn(client, id, name)) > 0 ? true : null));

      signal("dc2", "SIGSTOP");
      await until(async () => ((await circuit(client, "dc2")).state === "OPEN" ? true : null));
      expect(await circuit(client, "dc1")).toEqual({ state: "CLOSED", queued: 0 });
      expect(await gate("/metrics")).toContain(
        `hyperscale_circuit_state{datacenter="dc2"} ${OPEN}\n`,
      );
      expect(await gate("/v1/debug/datacenters")).toMatch(/"name":"dc2".*"circuit":"OPEN"/);
      const shown = await cluster.command("datacenters");
      expect(shown.stdout).toMatch(/dc2.*circuit OPEN/s);
      await client.control(id, { kind: "scale", factor: 0.5 }, "test");
      await until(async () => ((await circuit(client, "dc2")).queued > 0 ? true : null));
      const before = await requestsIn(client, id, "dc2");

      signal("dc2", "SIGCONT");
      await until(async () => {
        const { queued, state } = await circuit(client, "dc2");
        return state === "CLOSED" && queued === 0 ? true : null;
      });
      await until(async () => ((await requestsIn(client, id, "dc2")) > before ? true : null));
      const events = await until(async () => {
        const all = await eventsIn(client, id, "dc2");
        return all.some((one) => one.startsWith("scale")) ? all : null;
      });
      expect(events).toContain("scale: 0.5 times the plan");

      await client.control(id, { kind: "cancel", reason: "all was seen" }, "test");
      const { code, stderr } = await submitted;
      expect(code, stderr).toBe(130);
      const { lost, totals } = JSON.parse(await readFile(join(out, "summary.json"), "utf8"));
      const notCounted = (lost as readonly { readonly requestsNotCounted: number }[]).reduce(
        (sum, one) => sum + one.requestsNotCounted,
        0,
      );
      const made = target.stats().requests;
      expect(totals.requests).toBeLessThanOrEqual(made);
      expect(made).toBeLessThanOrEqual(totals.requests + notCounted);
      await client.close();
    },
    2 * MS_MAX,
  );
});

const LAYERS_FILE = `
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

/** Count in one datacenter; with both and `--each-datacenter` twice as many. */
const BROWSED = 40;

describe("workflows in layers", () => {
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
    await writeFile(join(cluster.dir, "layers.ts"), LAYERS_FILE);
  }, MS_MAX);

  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

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
