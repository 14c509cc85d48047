/**
 * Whole agents as processes on the loopback. Real time is what is tested here: nothing asserts how long
 * anything took, only that it happened within generous bounds.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentCluster, freshNet } from "../../../bench/swim/agents.ts";
import { needs } from "../../needs.ts";
import { killOne, leaveOne, partition, restartAll, stopOne, TwoNetworks } from "./scenarios.ts";

describe("a cluster of agents", () => {
  const cluster = new AgentCluster({ net: freshNet(), size: 5, profile: "dc" });
  beforeAll(() => cluster.startAll());
  afterAll(() => cluster.stop());

  it("reports a killed member everywhere and takes it back", async () => {
    const { agreedMs } = await killOne(cluster, 3);
    expect(agreedMs).toBeGreaterThan(0);
    const rejoined = (await cluster.agents[0]?.members())?.find(({ name }) => name === "n3");
    expect(rejoined?.incarnation).toBeGreaterThan(1);
  });

  it("sees a farewell on SIGTERM, not a failure", async () => {
    await leaveOne(cluster, 4);
  });

  it("agrees again after a member stalled, and the stalled member accuses no other", async () => {
    await stopOne(cluster, 2, 3_000);
  });

  it("finds itself again after all were restarted at once", async () => {
    await restartAll(cluster);
  });
});

const NO_NETWORKS = "network namespaces may not be made here (package iproute2, CAP_SYS_ADMIN)";

describe("in two network namespaces", needs(TwoNetworks.possible(), NO_NETWORKS), () => {
  it("both halves declare the other dead and rejoin when the network heals", async () => {
    await partition(4, "dc", 5_000);
  });
});
