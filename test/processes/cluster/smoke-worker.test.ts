/** One real cluster: a submitted file runs, and the worker that runs it is killed. The target's count decides. */

import { afterAll, beforeAll, expect, it } from "vitest";
import { LoadedCluster } from "./loaded-cluster.ts";
import { MS_MAX, until } from "./local-cluster.ts";

let loaded: LoadedCluster;

beforeAll(async () => {
  loaded = await LoadedCluster.start(1, 2);
}, MS_MAX);
afterAll(() => loaded?.stop(), MS_MAX);

it(
  "moves the share of a killed worker to the other, and states what was not counted",
  async () => {
    const { client, cluster } = loaded;
    const { end, id } = await loaded.submit("--dir", cluster.dir);
    const workerOf = async () => (await client.status(id)).workflows[0]?.attempts.at(-1)?.worker;
    const worker = await until(async () => (await workerOf()) ?? null);
    await cluster.end(worker, "SIGKILL");
    const other = worker === "w1" ? "w2" : "w1";
    await until(async () => ((await workerOf()) === other ? true : null));
    await loaded.loadGoesOn();
    const { lost, totals } = await end();
    const loss = lost.find((one) => one.worker === worker);
    expect(loss).toMatchObject({ exact: false, dealtAgainTo: other });
    expect(loss?.missingMs).toBeGreaterThan(0);
    // Null: unknown, for a core that was lost before its metrics were reported.
    const uncounted = lost.reduce(
      (sum, one) => sum + (one.requestsNotCounted ?? Number.POSITIVE_INFINITY),
      0,
    );
    expect(totals?.requests).toBeLessThanOrEqual(loaded.requests);
    expect(loaded.requests).toBeLessThanOrEqual((totals?.requests ?? 0) + uncounted);
  },
  MS_MAX,
);
