/**
 * A datacenter whose managers stand still while a job runs there: the gate's circuit to it opens and is seen, what
 * was meant for it waits, and when it returns that arrives and the figures are whole. (CB-1, CB-4, CB-5)
 */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ClusterClient } from "../../../src/client/client.ts";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { tokenFor } from "../../../src/host/control/token.ts";
import { ended, LocalCluster, MS_MAX, start, until } from "./local-cluster.ts";

/** Longer than the circuit needs to open and to close on a busy machine: the job is cancelled then. */
const LOAD = "20m";
const OPEN = 1;

describe("the circuit of a gate to a datacenter", () => {
  let cluster: LocalCluster;
  let target: DemoTarget;

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
    cluster = await LocalCluster.start(
      ...["--gates", "1", "--datacenters", "dc1,dc2", "--managers", "1", "--workers", "1"],
    );
  }, MS_MAX);

  afterAll(async () => {
    signal("dc2", "SIGCONT");
    await cluster?.stop();
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

  /** What was told to the part of the job that runs there, as its own manager says. */
  async function toldIn(client: ClusterClient, job: string, name: string) {
    const part = (await client.status(job)).datacenters.find((one) => one.name === name);
    const { address } = cluster.node(`${name}m1`);
    const secret = (await readFile(join(cluster.dir, "client.key"), "utf8")).trim();
    const manager = ClusterClient.open({ managers: [address ?? ""], secret });
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
      const { id } = await until(async () => (await client.jobs())[0] ?? null);
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
      const told = await until(async () => {
        const all = await toldIn(client, id, "dc2");
        return all.some((one) => one.startsWith("scale")) ? all : null;
      });
      expect(told).toContain("scale: 0.5 times the plan");

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
