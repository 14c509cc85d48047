import { describe, expect, it } from "vitest";
import { TestCluster } from "./testing/cluster.ts";
import {
  accepted,
  cancel,
  completed,
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

describe("a job with too many events under way", () => {
  it("takes a cancel when it takes nothing else any more (G-12)", () => {
    const { cluster, jobId } = started();
    const primary = primaryIndex(cluster, jobId);
    for (const node of cluster.nodes) node.cut = node !== cluster.at(primary);
    const ask = (id: string, body: typeof accepted | typeof cancel): number =>
      cluster.request(primary, event(jobId, id, body));
    let refused: number | null = null;
    for (let i = 0; i < 12_000 && refused === null; i++) {
      const token = ask(`e${i}`, accepted);
      if (cluster.answers.get(token)?.kind === "retry") refused = i;
    }
    expect(refused).not.toBe(null);
    expect(cluster.answers.has(ask("stop", cancel))).toBe(false);
    for (const node of cluster.nodes) node.cut = false;
    cluster.run(20_000);
    expect(statusOf(cluster.ask(primary, read(jobId)))).toBe("CANCELLING");
  });
});

describe("an event with a condition", () => {
  it("is applied when nothing has changed since the place its writer saw", () => {
    const { cluster, jobId } = started();
    const done = cluster.ask(2, event(jobId, "c", completed, { ifSeq: 1 }));
    expect(done).toMatchObject({ kind: "committed", outcome: "applied", seq: 2 });
  });

  it("changes nothing when another event came first, and its writer learns the current index", () => {
    const { cluster, jobId } = started();
    cluster.ask(1, event(jobId, "x", cancel));
    const late = cluster.ask(2, event(jobId, "c", completed, { ifSeq: 1 }));
    expect(late).toEqual({
      ...{ kind: "conflict", jobId, eventId: "c", reason: "SEQ_MOVED", seq: 2, fence: 1 },
    });
    expect(statusOf(cluster.ask(0, read(jobId)))).toBe("CANCELLING");
  });

  it("lets one of two conflicting events win, for any requestor and within one turn", () => {
    const { cluster, jobId } = started();
    const primary = primaryIndex(cluster, jobId);
    cluster.at(primary).slowDisk = true;
    const tokens = ["c1", "c2"].map((id) =>
      cluster.request(primary, event(jobId, id, completed, { ifSeq: 1 })),
    );
    cluster.at(primary).slowDisk = false;
    cluster.run(1_000);
    const answers = tokens.map((token) => cluster.answers.get(token));
    expect(answers.map((answer) => answer?.kind)).toEqual(["committed", "conflict"]);
    const again = cluster.ask(1, event(jobId, "c2", completed, { ifSeq: 1 }));
    expect(again).toMatchObject({ kind: "conflict", reason: "SEQ_MOVED" });
  });

  it("holds over places without an event: a take-over is no change", () => {
    const { cluster, jobId } = started();
    const lost = primaryIndex(cluster, jobId);
    cluster.kill(cluster.at(lost));
    cluster.run(13_000);
    const other = (lost + 1) % 3;
    const state = cluster.ask(other, read(jobId));
    expect(state).toMatchObject({ state: { changedSeq: 1 } });
    const answer = cluster.ask(other, event(jobId, "c", completed, { ifSeq: 1 }));
    expect(answer).toMatchObject({ kind: "committed", outcome: "applied" });
  });

  it("of a deposed owner is rejected, and names the current owner (VSR-32)", () => {
    const { cluster, jobId } = started();
    const owner = primaryIndex(cluster, jobId);
    const fence = { ifFence: 1 };
    expect(cluster.ask(owner, event(jobId, "x", accepted, fence)).kind).toBe("committed");
    cluster.at(owner).cut = true;
    cluster.run(13_000);
    // The isolated node still believes it leads and proposes its events locally.
    const token = cluster.request(owner, event(jobId, "c", completed, fence));
    cluster.at(owner).cut = false;
    cluster.run(13_000);
    expect(cluster.answers.get(token)?.kind).toMatch(/unknown|conflict/);
    const again = cluster.ask(owner, event(jobId, "c", completed, fence));
    expect(again).toMatchObject({ kind: "conflict", reason: "FENCE_MOVED" });
    expect(again.kind === "conflict" && again.fence).toBeGreaterThan(1);
    expect(statusOf(cluster.ask(owner, read(jobId)))).toBe("ACCEPTED");
  });

  it("that names a fence or an index that does not exist is rejected, too", () => {
    const { cluster, jobId } = started();
    const fence = cluster.ask(0, event(jobId, "f", completed, { ifFence: 99 }));
    expect(fence).toMatchObject({ kind: "conflict", reason: "FENCE_MOVED", fence: 1 });
    const place = cluster.ask(0, event(jobId, "s", completed, { ifSeq: 99 }));
    expect(place).toMatchObject({ kind: "conflict", reason: "SEQ_MOVED" });
    const none = cluster.ask(0, event(jobId, "n", completed, {}));
    expect(none).toMatchObject({ kind: "refused", code: "INVALID_EVENT" });
  });

  it("is answered with what it did, however often it is sent", () => {
    const { cluster, jobId } = started();
    cluster.ask(0, event(jobId, "c", cancel, { ifSeq: 1, ifFence: 1 }));
    cluster.ask(0, event(jobId, "a2", accepted));
    const again = cluster.ask(1, event(jobId, "c", cancel, { ifSeq: 1, ifFence: 1 }));
    expect(again).toMatchObject({ kind: "committed", outcome: "applied", seq: 2, duplicate: true });
  });
});
