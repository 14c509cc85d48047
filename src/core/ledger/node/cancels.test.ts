import { describe, expect, it } from "vitest";
import { CANCELS_KEPT_MAX, PASS_ON_AFTER_MS } from "./cancels.ts";
import { TestCluster } from "./testing/cluster.ts";
import {
  accepted,
  cancel,
  event,
  jobOf,
  primaryIndex,
  read,
  statusOf,
  submit,
  THREE,
} from "./testing/requests.ts";

function started(): { readonly cluster: TestCluster; readonly jobId: string } {
  const cluster = new TestCluster(THREE);
  const jobId = jobOf(cluster.ask(0, submit()));
  cluster.ask(0, event(jobId, "a", accepted));
  return { cluster, jobId };
}

/** Every node for itself. */
function cutAll(cluster: TestCluster, cut = true): void {
  for (const node of cluster.nodes) node.cut = cut;
}

describe("a cancel (G-18)", () => {
  it("confirmed by a quorum are answered as committed and send no early stop", () => {
    const { cluster, jobId } = started();
    const scope = { kind: "jobs", prefix: "" } as const;
    const watch = cluster.watch(1, { scope, after: [], since: "now" });
    const done = cluster.ask(0, event(jobId, "x", cancel));
    expect(done).toMatchObject({ kind: "committed", outcome: "applied" });
    cluster.run(2 * PASS_ON_AFTER_MS);
    const received = cluster.watched.get(watch)?.map(({ kind }) => kind) ?? [];
    expect(received.at(-1)).toBe("event");
    expect(received).not.toContain("stop");
  });

  it.each([
    ["its primary", 0],
    ["a replica", 1],
  ])("without a quorum is passed on by %s, and commits when there is one", (_, further) => {
    const { cluster, jobId } = started();
    const taker = (primaryIndex(cluster, jobId) + further) % 3;
    const scope = { kind: "jobs", prefix: "" } as const;
    const watch = cluster.watch(taker, { scope, after: [], since: "now" });
    cutAll(cluster);
    const token = cluster.request(taker, event(jobId, "x", cancel));
    cluster.run(PASS_ON_AFTER_MS + 100);
    expect(cluster.answers.get(token)).toMatchObject({ kind: "passedOn", jobId, eventId: "x" });
    expect(cluster.watched.get(watch)).toContainEqual(
      expect.objectContaining({ kind: "stop", jobId }),
    );
    // Longer than any request waits, and than any primary leads.
    cluster.run(60_000);
    cutAll(cluster, false);
    cluster.run(20_000);
    expect(statusOf(cluster.ask(0, read(jobId)))).toBe("CANCELLING");
    expect(cluster.ask(2, event(jobId, "x", cancel))).toMatchObject({ duplicate: true });
  });

  it("reaches watchers at another reachable node", () => {
    const { cluster, jobId } = started();
    const primary = primaryIndex(cluster, jobId);
    const watch = cluster.watch((primary + 1) % 3, {
      ...{ scope: { kind: "jobs", prefix: jobId }, after: [], since: "now" },
    });
    cluster.isLost = ({ kind }) => kind === "vsr";
    cluster.request(primary, event(jobId, "x", cancel));
    cluster.run(PASS_ON_AFTER_MS + 100);
    expect(cluster.watched.get(watch)?.map(({ kind }) => kind)).toEqual(["from", "stop"]);
  });

  it("with a condition is never passed on, because it may have no effect", () => {
    const { cluster, jobId } = started();
    cutAll(cluster);
    const token = cluster.request(0, event(jobId, "x", cancel, { ifSeq: 1 }));
    cluster.run(20_000);
    expect(cluster.answers.get(token)?.kind).toBe("unknown");
  });

  it("requested again is answered again, and kept once; beyond the bound it is a plain request", () => {
    const { cluster, jobId } = started();
    cutAll(cluster);
    const ask = (id: string): number => cluster.request(1, event(jobId, id, cancel));
    const first = [ask("x"), ask("x")];
    cluster.run(PASS_ON_AFTER_MS + 100);
    for (let i = 1; i < CANCELS_KEPT_MAX; i++) ask(`y${i}`);
    const beyond = ask("z");
    const again = ask("x");
    cluster.run(6_000);
    const kinds = [...first, again, beyond].map((token) => cluster.answers.get(token)?.kind);
    expect(kinds).toEqual(["passedOn", "passedOn", "passedOn", "unknown"]);
  });
});
