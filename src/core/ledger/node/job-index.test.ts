import { describe, expect, it } from "vitest";
import type { JobQuery } from "./job-index.ts";
import { TestCluster } from "./testing/cluster.ts";
import {
  accepted,
  completed,
  event,
  jobOf,
  primaryIndex,
  submit,
  THREE,
} from "./testing/requests.ts";

const ALL: JobQuery = { statuses: [], owner: null, prefix: "", after: "", limit: 100 };

function ids(cluster: TestCluster, index: number, query: Partial<JobQuery> = {}): string[] {
  const page = cluster.at(index).node?.list({ ...ALL, ...query });
  return (page?.jobs ?? []).map(({ jobId }) => jobId);
}

/** Three jobs: created, accepted, completed. */
function three(): { readonly cluster: TestCluster; readonly jobs: readonly string[] } {
  const cluster = new TestCluster(THREE);
  const jobs = [0, 1, 2].map((index) => jobOf(cluster.ask(index, submit())));
  for (const jobId of jobs.slice(1)) cluster.ask(0, event(jobId, "a", accepted));
  cluster.ask(0, event(jobs[2] ?? "", "c", completed));
  cluster.run(500);
  return { cluster, jobs };
}

describe("the jobs of a node", () => {
  it("are listed by status, in the order of their ids, also in pages", () => {
    const { cluster, jobs } = three();
    const [created, running, done] = jobs;
    const sorted = [...jobs].sort();
    for (const index of [0, 1, 2]) {
      expect(ids(cluster, index)).toEqual(sorted);
      expect(ids(cluster, index, { statuses: ["CREATED"] })).toEqual([created]);
      expect(ids(cluster, index, { statuses: ["COMPLETED"] })).toEqual([done]);
      const live = ids(cluster, index, { statuses: ["CREATED", "ACCEPTED"] });
      expect(live).toEqual([created, running].sort());
    }
    const page = cluster.at(0).node?.list({ ...ALL, limit: 2 });
    expect([page?.jobs.map(({ jobId }) => jobId as string), page?.more]).toEqual([
      sorted.slice(0, 2),
      true,
    ]);
    expect(ids(cluster, 0, { after: sorted[1] ?? "" })).toEqual(sorted.slice(2));
    expect(ids(cluster, 0, { prefix: "none" })).toEqual([]);
  });

  it("leaves finished jobs out of the open ones", () => {
    const { cluster, jobs } = three();
    const open = jobs.slice(0, 2).sort();
    for (const { node } of cluster.nodes)
      expect([...(node?.openJobs() ?? [])].sort()).toEqual(open);
    for (const node of cluster.nodes) cluster.kill(node);
    for (const node of cluster.nodes) cluster.start(node);
    cluster.run(5_000);
    for (const { node } of cluster.nodes)
      expect([...(node?.openJobs() ?? [])].sort()).toEqual(open);
  });

  it("are listed by who leads them, on every node", () => {
    const { cluster, jobs } = three();
    for (const index of [0, 1, 2]) {
      for (const { id } of cluster.nodes) {
        const led = jobs.filter((jobId) => cluster.at(primaryIndex(cluster, jobId)).id === id);
        expect(ids(cluster, index, { owner: id })).toEqual(led.sort());
      }
    }
  });

  it("are known again after a restart from a checkpoint and the log after it", () => {
    const { cluster, jobs } = three();
    cluster.checkpoint(cluster.at(1));
    cluster.ask(0, event(jobs[0] ?? "", "late", accepted));
    cluster.run(500);
    cluster.kill(cluster.at(1));
    cluster.start(cluster.at(1));
    cluster.run(15_000);
    expect(ids(cluster, 1)).toEqual([...jobs].sort());
    expect(ids(cluster, 1, { statuses: ["ACCEPTED"] })).toEqual(jobs.slice(0, 2).sort());
    const owners = cluster
      .at(1)
      .node?.list(ALL)
      .jobs.map(({ owner }) => owner);
    expect(owners?.every((owner) => owner !== null)).toBe(true);
  });

  it("leave the list with their group", () => {
    const cluster = new TestCluster(THREE, { retentionMs: 30_000 });
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.ask(0, event(jobId, "a", accepted));
    cluster.ask(0, event(jobId, "c", completed));
    cluster.run(200_000);
    expect(ids(cluster, 0)).toEqual([]);
  });
});
