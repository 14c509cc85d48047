/**
 * A node whose disk is lost is replaced by one with another name: every group moves, one member at a time, and
 * everything acknowledged before is still there when the old node's peers fail afterwards.
 */

import { randomBytes } from "node:crypto";
import { afterAll, describe, expect, it } from "vitest";
import { LedgerCluster, until } from "../../../bench/ledger/processes.ts";
import type { JsonObject } from "../../../src/ledger/client.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { callPatiently } from "./patient.ts";

let cluster: LedgerCluster | null = null;
afterAll(() => cluster?.stop());

async function ask(
  api: string,
  method: "GET" | "POST",
  path: string,
  body?: unknown,
): Promise<JsonObject> {
  const id = randomBytes(8).toString("hex");
  const call = { method, path, id, ...(body === undefined ? {} : { body }) };
  return (await callPatiently({ api, dir: cluster?.dir }, call)).body;
}

describe("a node that has lost its disk", () => {
  it("is replaced by a node with another name, and nothing acknowledged is missing", async () => {
    const ledger = await LedgerCluster.prepare({ nodes: 4, leaseMs: 1_000 });
    cluster = ledger;
    const peersAmong = (names: readonly string[], self: string): unknown =>
      names
        .filter((name) => name !== self)
        .map((name) => ledger.place(name))
        .map(({ name, region, bind }) => ({ name, region, address: bind }));
    const first = ["n1", "n2", "n3"];
    for (const name of first) {
      ledger.configure(name, { peers: peersAmong(first, name) });
      ledger.start(name);
    }
    for (const name of first) await ledger.ready(name);
    const { api } = ledger.place("n1");
    const jobs: string[] = [];
    for (let i = 0; i < 5; i++) {
      const key = `replace:${i}:${randomBytes(8).toString("hex")}`;
      jobs.push(String((await ask(api, "POST", "/v1/jobs", { key, spec: "work" }))["jobId"]));
    }
    // The node and its disk are lost. The others get the new node in their configuration and restart.
    for (const name of first) {
      ledger.node(name).kill(name === "n3" ? "SIGKILL" : "SIGTERM");
      await ledger.node(name).ended;
    }
    await ledger.allow("n4", "join");
    const all = ["n1", "n2", "n3", "n4"];
    for (const name of ["n1", "n2", "n4"]) {
      ledger.configure(name, { peers: peersAmong(all, name) });
      ledger.start(name);
    }
    for (const name of ["n1", "n2", "n4"]) await ledger.ready(name);
    await until("every group has moved", PATIENCE_MS, async () => {
      const body = { leaving: "n3", joining: "n4" };
      const answer = await ask(api, "POST", "/v1/replace", body);
      return (answer["failed"] as readonly unknown[]).length === 0;
    });
    const groups = (await ask(api, "GET", "/v1/groups?limit=10000"))["groups"] as JsonObject[];
    expect(groups.filter(({ members }) => (members as string[]).includes("n3"))).toEqual([]);
    // A new replica votes once it has the log; until then the old ones must hold. (VSR-27)
    const joined = ledger.place("n4").api;
    await until("the new node has every log", PATIENCE_MS, async () => {
      const path = "/v1/groups?limit=10000";
      const its = (await ask(joined, "GET", path))["groups"] as JsonObject[];
      return its.length === groups.length && its.every(({ status }) => status === "normal");
    });
    // Now it is needed for a quorum.
    const n2 = ledger.node("n2");
    n2.kill("SIGKILL");
    await n2.ended;
    for (const job of jobs) {
      const path = `/v1/jobs/${job}?level=strong`;
      expect(await ask(`${api},${ledger.place("n4").api}`, "GET", path)).toMatchObject({
        answer: "job",
        job: { jobId: job, status: "CREATED" },
      });
    }
  });
});
