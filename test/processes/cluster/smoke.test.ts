/** A submitted file runs on a real cluster, and the manager that leads its job is killed. */

import { afterAll, beforeAll, expect, it } from "vitest";
import { shortIdOf } from "../../../src/client/job-names.ts";
import { LoadedCluster, REQUESTS } from "./loaded-cluster.ts";
import { MS_MAX, until } from "./local-cluster.ts";

let loaded: LoadedCluster;

beforeAll(async () => {
  loaded = await LoadedCluster.start(3, 1);
}, MS_MAX);
afterAll(() => loaded?.stop(), MS_MAX);

it(
  "counts what the target counts when the manager that leads the job is killed",
  async () => {
    const { client, cluster } = loaded;
    // The client knows one manager, which may be the one that is killed.
    const { end, id, leader } = await loaded.submit(...cluster.placeOf("m1"));
    expect(await client.jobId(shortIdOf(id).slice(0, 6))).toBe(id);
    expect(await client.jobId("last")).toBe(id);
    await cluster.end(leader, "SIGKILL");
    await until(async () => {
      const now = await client.status(id);
      return now.leader !== null && now.leader !== leader ? true : null;
    });
    await loaded.loadGoesOn();
    const { lost, totals, workflows } = await end();
    expect(workflows.map(({ status }) => status)).toEqual(["interrupted"]);
    expect(totals?.requests).toBeGreaterThan(REQUESTS);
    // A machine so busy that a worker was taken for lost has said so.
    if (lost.length === 0) expect(totals?.requests).toBe(loaded.requests);
    else expect(totals?.requests).toBeLessThanOrEqual(loaded.requests);

    for (const name of ["m1", "m2", "m3"].filter((one) => one !== leader)) {
      const one = await cluster.client(name);
      expect((await one.progress(id, 0, false)).summary?.totals).toEqual(totals);
      await one.close();
    }
  },
  MS_MAX,
);
