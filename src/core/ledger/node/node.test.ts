import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import { nodeId } from "../../base/ids.ts";
import type { GroupId } from "../group/messages.ts";
import { decodeEvent } from "../job/event-codec.ts";
import type { EventId } from "../job/events.ts";
import type { JobId } from "../job/job-id.ts";
import { decodeJobState } from "../job/state-codec.ts";
import { LEDGER_NODE_DEFAULTS } from "./config.ts";
import type { LedgerAnswer, LedgerRequest, PeerRequest } from "./messages.ts";
import { TestCluster, WALL } from "./testing/cluster.ts";
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

const KEY = "client:1:0123456789abcdef";

type FoundRequest = Extract<PeerRequest, { kind: "found" }>;

describe("a ledger of three nodes in three regions", () => {
  it("creates a job through any node and reports that it survives a region", () => {
    for (const index of [0, 1, 2]) {
      const cluster = new TestCluster(THREE);
      const answer = cluster.ask(index, submit());
      expect(answer).toMatchObject({ kind: "committed", seq: 0, level: "GLOBAL" });
      expect(statusOf(cluster.ask((index + 1) % 3, read(jobOf(answer))))).toBe("CREATED");
    }
  });

  it("folds events sent to any node in one order (HLC-6)", () => {
    const cluster = new TestCluster(THREE);
    const jobId = jobOf(cluster.ask(0, submit()));
    expect(cluster.ask(1, event(jobId, "a", accepted))).toMatchObject({ seq: 1, level: "GLOBAL" });
    expect(cluster.ask(2, event(jobId, "c", cancel))).toMatchObject({ seq: 2, outcome: "applied" });
    for (const index of [0, 1, 2]) {
      expect(statusOf(cluster.ask(index, read(jobId)))).toBe("CANCELLING");
    }
  });

  it("elects a job leader that is not passed over, unless all are (AD-19.26)", () => {
    const cluster = new TestCluster(THREE);
    const { id } = cluster.at(0);
    const leaders = (passedOver: readonly string[]) => {
      for (const { node } of cluster.nodes)
        node?.take({ kind: "passOver", nodes: passedOver }, millis(cluster.now), WALL);
      const keys = [0, 1, 2, 3, 4].map(
        (one) => `client:${one}:00000000000000${passedOver.length}0`,
      );
      return keys.map((key) => primaryIndex(cluster, jobOf(cluster.ask(0, submit(key)))));
    };
    cluster.run(1_000);
    expect(leaders([])).toContain(0);
    expect(leaders([id])).not.toContain(0);
    expect(leaders(cluster.nodes.map((one) => one.id))).not.toContain(-1);
  });

  it("answers a repeated event with the place of the first", () => {
    const cluster = new TestCluster(THREE);
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.ask(0, event(jobId, "a", accepted));
    const again = cluster.ask(2, event(jobId, "a", accepted));
    expect(again).toMatchObject({ kind: "committed", seq: 1, duplicate: true });
  });

  it("counts the requests that wait, also after repeated events", () => {
    const cluster = new TestCluster(THREE);
    const jobId = jobOf(cluster.ask(0, submit()));
    for (const index of [0, 1, 2]) cluster.ask(index, event(jobId, "a", accepted));
    expect(cluster.nodes.map(({ node }) => node?.status().waiting)).toEqual([0, 0, 0]);
    cluster.at(1).cut = true;
    cluster.at(2).cut = true;
    cluster.request(primaryIndex(cluster, jobId), event(jobId, "b", cancel));
    const waiting = cluster.at(primaryIndex(cluster, jobId)).node?.status().waiting;
    expect(waiting).toBe(1);
  });

  it("makes one job of one key, from any client and any number of retries (IDEM-21)", () => {
    const cluster = new TestCluster(THREE);
    const tokens = Array.from({ length: 30 }, (_, i) => cluster.request(i % 3, submit(KEY)));
    cluster.run(2_000);
    const answers = tokens.map((token) => cluster.answers.get(token));
    const jobs = new Set(answers.map((answer) => jobOf(answer as LedgerAnswer)));
    expect(jobs.size).toBe(1);
    const [jobId = ""] = jobs;
    expect(statusOf(cluster.ask(1, read(jobId)))).toBe("CREATED");
    const firsts = answers.filter(
      (a) => a?.kind === "submitted" && a.answer.kind === "accepted" && !a.answer.duplicate,
    );
    expect(firsts).toHaveLength(1);
  });

  it("refuses a key that belongs to another submission (IDEM-5)", () => {
    const cluster = new TestCluster(THREE);
    cluster.ask(0, submit(KEY, "this"));
    const other = cluster.ask(1, submit(KEY, "that"));
    expect(other).toMatchObject({ kind: "submitted", answer: { kind: "keyReused" } });
  });

  it("refuses what can be seen to be wrong before anything is written", () => {
    const cluster = new TestCluster(THREE);
    expect(cluster.ask(0, submit("nonsense"))).toMatchObject({ code: "INVALID_KEY" });
    const empty = { ...submit(), assignedDcs: [] } as LedgerRequest;
    expect(cluster.ask(0, empty)).toMatchObject({ code: "INVALID_JOB" });
  });

  it.each([
    ["an id longer than any job's", { jobId: "x".repeat(97) as JobId }],
    ["no id", { jobId: "" as JobId }],
    ["a place that no log reaches", { minSeq: Number.MAX_SAFE_INTEGER }],
    ["a place before the first", { minSeq: -2 }],
    ["an age that is none", { staleMs: -1 }],
    ["an age beyond all times", { staleMs: Number.MAX_SAFE_INTEGER }],
    ["no age at all", { staleMs: Number.NaN }],
  ])("refuses a read with %s, and sends nobody anything of it", (_, wrong) => {
    const cluster = new TestCluster(THREE);
    const unknown = { ...read("use1-1600000000000-n0-00077"), ...wrong } as LedgerRequest;
    expect(cluster.ask(0, unknown)).toMatchObject({ code: "INVALID_READ" });
  });

  it("reports a job as absent only with a quorum of the nodes that would know", () => {
    const cluster = new TestCluster(THREE);
    const unknown = "use1-1600000000000-n0-00077";
    expect(cluster.ask(1, read(unknown))).toMatchObject({ kind: "notFound" });
    cluster.at(0).cut = true;
    cluster.at(2).cut = true;
    expect(cluster.ask(1, read(unknown)).kind).toBe("retry");
  });

  it("needs no clock to report a job as absent, however young it would be", () => {
    const cluster = new TestCluster(THREE);
    expect(cluster.ask(1, read(`use1-${WALL}-n9-00001`)).kind).toBe("notFound");
  });

  it("does not deny a job whose group exists and waits for its first entry (IDEM-22)", () => {
    const cluster = new TestCluster(THREE);
    const jobId = `use1-${WALL}-n0-00001` as JobId;
    const members = cluster.nodes.map(({ id }) => id);
    const message = { kind: "found", epoch: 1, members } as const;
    cluster.deliver(0, { kind: "vsr", group: jobId as string as GroupId, message });
    cluster.run(1_000);
    expect(primaryIndex(cluster, jobId)).toBe(0);
    const tokens = [0, 1, 2].map((index) => cluster.request(index, read(jobId)));
    cluster.run(1_000);
    expect(tokens.filter((token) => cluster.answers.has(token))).toEqual([]);
    const hlc = { wallMs: WALL, logical: 0, node: nodeId("n0") };
    const head = { jobId, eventId: `create/${jobId}` as EventId, fenceToken: 1, hlc };
    const spec = new Uint8Array([1]);
    const created = { kind: "JobCreated", ...head, spec, assignedDcs: ["dc1"] } as const;
    cluster.found(0, { kind: "found", members, created, required: "NONE" });
    cluster.run(1_000);
    const answers = tokens.map((token) => cluster.answers.get(token));
    expect(answers.map((answer) => answer && statusOf(answer))).toEqual(Array(3).fill("CREATED"));
  });

  it("keeps progress in its own log and out of the replicated one (EVT-3)", () => {
    const cluster = new TestCluster(THREE);
    const jobId = jobOf(cluster.ask(0, submit()));
    const progress = { kind: "JobProgressReported", dcId: "dc1", completed: 3, failed: 0 } as const;
    const answer = cluster.ask(1, event(jobId, "p", progress));
    expect(answer).toMatchObject({ kind: "committed", level: "LOCAL", seq: -1 });
    expect(cluster.at(1).records.at(-1)?.type).toBe(3);
  });
});

describe("a primary that is lost", () => {
  it("is followed by another after its lease, with everything that was acknowledged", () => {
    const cluster = new TestCluster(THREE);
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.ask(0, event(jobId, "a", accepted));
    const lost = primaryIndex(cluster, jobId);
    cluster.kill(cluster.at(lost));
    cluster.run(13_000);
    const other = (lost + 1) % 3;
    expect(statusOf(cluster.ask(other, read(jobId)))).toBe("ACCEPTED");
    expect(cluster.ask(other, event(jobId, "c", cancel))).toMatchObject({ level: "GLOBAL" });
    cluster.start(cluster.at(lost));
    cluster.run(5_000);
    expect(statusOf(cluster.ask(lost, read(jobId)))).toBe("CANCELLING");
  });

  // PIPE-3
  it("cannot acknowledge anything alone, and reports the outcome as unknown (VSR-11)", () => {
    const cluster = new TestCluster(THREE);
    const jobId = jobOf(cluster.ask(0, submit()));
    const primary = primaryIndex(cluster, jobId);
    for (const node of cluster.nodes) node.cut = node !== cluster.at(primary);
    expect(cluster.ask(primary, event(jobId, "a", accepted))).toMatchObject({ kind: "unknown" });
    expect(cluster.ask(primary, read(jobId)).kind).toBe("retry");
    for (const node of cluster.nodes) node.cut = false;
    cluster.run(15_000);
    const again = cluster.ask(primary, event(jobId, "a", accepted));
    expect(again).toMatchObject({ kind: "committed", outcome: "applied" });
  });

  it("comes back after all nodes died at once with what was durable (CKPT-6, CKPT-7)", () => {
    const cluster = new TestCluster(THREE);
    const jobs = [0, 1, 2].map((index) =>
      jobOf(cluster.ask(index, submit(`c:${index}:0123456789abcdef`))),
    );
    cluster.run(3_000);
    cluster.checkpoint(cluster.at(1));
    for (const jobId of jobs) cluster.ask(0, event(jobId, "a", accepted));
    for (const node of cluster.nodes) cluster.kill(node);
    for (const node of cluster.nodes) cluster.start(node);
    cluster.run(15_000);
    for (const jobId of jobs) expect(statusOf(cluster.ask(1, read(jobId)))).toBe("ACCEPTED");
    const again = cluster.ask(2, submit("c:1:0123456789abcdef"));
    expect(jobOf(again)).toBe(jobs[1]);
  });
});

describe("levels", () => {
  it("are what the copies prove: one region is REGIONAL at best, one node LOCAL (PIPE-5)", () => {
    const regional = new TestCluster(["use1", "use1", "use1"]).ask(0, submit());
    expect(regional).toMatchObject({ level: "REGIONAL", required: "GLOBAL" });
    const alone = new TestCluster(["use1"]).ask(0, submit());
    expect(alone).toMatchObject({ level: "LOCAL", required: "GLOBAL" });
  });

  it("wait for the far region when two replicas of the near one would commit alone (PIPE-2)", () => {
    const cluster = new TestCluster(["use1", "use1", "euw1"]);
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.at(2).slowDisk = true;
    const primary = primaryIndex(cluster, jobId);
    if (primary === 2) return;
    const token = cluster.request(primary, event(jobId, "a", accepted));
    cluster.run(100);
    expect(cluster.answers.get(token)).toMatchObject({ level: "REGIONAL" });
    const raised = event(jobId, "c", cancel);
    const second = cluster.request(primary, raised);
    cluster.run(100);
    expect(cluster.answers.has(second)).toBe(false);
    cluster.at(2).slowDisk = false;
    cluster.run(1_000);
    expect(cluster.answers.get(second)).toMatchObject({ level: "GLOBAL" });
  });
});

describe("what was answered at a lower level", () => {
  const NEAR = ["use1", "use1", "euw1"];
  const seqAt = (cluster: TestCluster, index: number, jobId: string): number =>
    cluster.at(index).node?.groups.get(jobId as GroupId)?.app.appliedSeq ?? -1;

  it.each([false, true])(
    "reaches the far region all the same, over a restart: %s (PIPE-4)",
    (restarts) => {
      const cluster = new TestCluster(NEAR);
      const jobId = jobOf(cluster.ask(0, submit()));
      cluster.run(500);
      cluster.at(2).cut = true;
      cluster.run(15_000);
      const primary = primaryIndex(cluster, jobId);
      const answer = cluster.ask(primary, event(jobId, "a", accepted));
      expect(answer).toMatchObject({ kind: "committed", level: "REGIONAL" });
      const seq = answer.kind === "committed" ? answer.seq : -1;
      cluster.run(60_000);
      if (restarts)
        for (const index of [0, 1]) {
          cluster.kill(cluster.at(index));
          cluster.start(cluster.at(index));
          cluster.run(15_000);
        }
      expect(seqAt(cluster, 2, jobId)).toBeLessThan(seq);
      cluster.at(2).cut = false;
      cluster.run(15_000);
      expect(seqAt(cluster, 2, jobId)).toBeGreaterThanOrEqual(seq);
    },
  );

  it("answers every waiter: after success, after its deadline, and after the node gave up (PIPE-7)", () => {
    const cluster = new TestCluster(THREE);
    const jobId = jobOf(cluster.ask(0, submit()));
    const waiting = () => cluster.nodes.map(({ node }) => node?.status().waiting);
    cluster.ask(1, event(jobId, "a", accepted));
    expect(waiting()).toEqual([0, 0, 0]);
    const primary = primaryIndex(cluster, jobId);
    for (const node of cluster.nodes) node.cut = node !== cluster.at(primary);
    const late = cluster.request(primary, event(jobId, "b", completed));
    expect(waiting()[primary]).toBe(1);
    cluster.run(LEDGER_NODE_DEFAULTS.requestTimeoutMs + 1_000);
    expect([cluster.answers.get(late)?.kind, waiting()]).toEqual(["unknown", [0, 0, 0]]);
    for (const node of cluster.nodes) node.cut = false;
    cluster.run(15_000);
    const next = primaryIndex(cluster, jobId);
    for (const node of cluster.nodes) node.slowDisk = true;
    cluster.request(next, event(jobId, "c", cancel));
    expect(waiting()[next]).toBe(1);
    for (const node of cluster.nodes) node.slowDisk = false;
    cluster.giveUp(cluster.at(next));
    cluster.run(LEDGER_NODE_DEFAULTS.requestTimeoutMs + 1_000);
    expect(waiting()).toEqual([0, 0, 0]);
  });
});

describe("the log of a job", () => {
  /** As the node has it on disk. */
  const eventsOf = (cluster: TestCluster, jobId: string) => {
    const group = cluster.at(primaryIndex(cluster, jobId)).node?.groups.get(jobId as GroupId);
    return (group?.replica.state.entries ?? []).flatMap(({ data, kind, view }) => {
      const decoded = kind === "op" ? decodeEvent(data) : null;
      return decoded?.ok === true ? [{ view, event: decoded.value }] : [];
    });
  };

  it("names the requestor of a cancel, over a failover (G-19)", () => {
    const cluster = new TestCluster(THREE);
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.ask(0, event(jobId, "stop it", { ...cancel, reason: "enough", requestor: "ada" }));
    cluster.kill(cluster.at(primaryIndex(cluster, jobId)));
    cluster.run(15_000);
    const asked = { kind: "JobCancellationRequested", eventId: "stop it", requestor: "ada" };
    expect(eventsOf(cluster, jobId).map((one) => one.event)).toContainEqual(
      expect.objectContaining({ ...asked, reason: "enough" }),
    );
  });

  it("has the view for its fence token, whatever its writer put there (C50-26)", () => {
    const cluster = new TestCluster(THREE);
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.ask(0, event(jobId, "a", { ...accepted, fenceToken: 99 }));
    cluster.kill(cluster.at(primaryIndex(cluster, jobId)));
    cluster.run(15_000);
    cluster.ask(primaryIndex(cluster, jobId), event(jobId, "b", { ...cancel, fenceToken: 0 }));
    const events = eventsOf(cluster, jobId).filter(({ event: one }) => one.kind !== "JobCreated");
    expect(events.map(({ event: one, view }) => [one.eventId, one.fenceToken === view])).toEqual([
      ["a", true],
      ["b", true],
    ]);
    expect(new Set(events.map(({ view }) => view)).size).toBe(2);
  });

  it("is read, looked up, recorded and only then answered, each key once (IDEM-29)", () => {
    const cluster = new TestCluster(THREE);
    const records = () => cluster.nodes.reduce((sum, one) => sum + one.records.length, 0);
    cluster.run(1_000);
    const before = records();
    expect(cluster.ask(0, submit("nonsense"))).toMatchObject({ code: "INVALID_KEY" });
    expect(records()).toBe(before);
    for (const node of cluster.nodes) node.slowDisk = true;
    const first = cluster.request(0, submit(KEY));
    cluster.run(500);
    expect(cluster.answers.has(first)).toBe(false);
    for (const node of cluster.nodes) node.slowDisk = false;
    cluster.run(1_000);
    const answered = cluster.answers.get(first) as LedgerAnswer;
    const kept = records();
    expect(kept).toBeGreaterThan(before);
    // Known: nothing more is written for it.
    const again = cluster.request(0, submit(KEY));
    expect(jobOf(cluster.answers.get(again) as LedgerAnswer)).toBe(jobOf(answered));
    expect(records()).toBe(kept);
    // Without a key every submission is a new job.
    expect(jobOf(cluster.ask(0, submit("")))).not.toBe(jobOf(cluster.ask(0, submit(""))));
  });
});

describe("reads of a lagging replica", () => {
  it("are served at the requested level (SESS-1..4)", () => {
    const cluster = new TestCluster(THREE);
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.run(500);
    const primary = primaryIndex(cluster, jobId);
    const lagging = (primary + 1) % 3;
    cluster.at(lagging).cut = true;
    cluster.ask(primary, event(jobId, "a", accepted));
    expect(statusOf(cluster.ask(lagging, read(jobId, "EVENTUAL")))).toBe("CREATED");
    expect(statusOf(cluster.ask(lagging, read(jobId, "SESSION", 0)))).toBe("CREATED");
    expect(cluster.ask(lagging, read(jobId, "SESSION", 1)).kind).toBe("retry");
    expect(cluster.ask(lagging, read(jobId, "BOUNDED_STALENESS")).kind).toBe("retry");
    cluster.at(lagging).cut = false;
    expect(statusOf(cluster.ask(lagging, read(jobId, "SESSION", 1)))).toBe("ACCEPTED");
  });
});

describe("a replica that is replaced", () => {
  it("hands over to a replica that has the whole log before it votes (VSR-27)", () => {
    const cluster = new TestCluster(["use1", "euw1", "apse1", "use2"]);
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.ask(0, event(jobId, "a", accepted));
    const group = jobId as GroupId;
    const primary = primaryIndex(cluster, jobId);
    const members = cluster.at(primary).node?.groups.get(group)?.replica.state.members ?? [];
    const leaving = members.find((id) => id !== cluster.at(primary).id) ?? nodeId("none");
    const joining = cluster.nodes.find(({ id }) => !members.includes(id))?.id ?? nodeId("none");
    const replace = { kind: "replace", group, eventId: "r1", leaving, joining } as const;
    expect(cluster.ask(primary, replace)).toMatchObject({ kind: "committed" });
    cluster.run(3_000);
    const joined = cluster.nodes.find(({ id }) => id === joining)?.node?.groups.get(group);
    expect(joined?.replica.state).toMatchObject({ epoch: 2, learner: false });
    const left = cluster.nodes.find(({ id }) => id === leaving)?.node?.groups.get(group);
    expect(left?.replica.state.status).toBe("retired");
    expect(
      statusOf(
        cluster.ask(
          cluster.nodes.findIndex(({ id }) => id === leaving),
          read(jobId),
        ),
      ),
    ).toBe("ACCEPTED");
  });
});

describe("an event that comes again after more than a job remembers (EVT-2)", () => {
  it("is refused by name, over snapshots and restarts too, and does not act a second time", () => {
    const cluster = new TestCluster(THREE);
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.ask(0, event(jobId, "first", accepted));
    for (let at = 0; at < 1_100; at++) {
      cluster.request(0, event(jobId, `e${at}`, { ...accepted, workerCount: at }));
    }
    cluster.run(1_000);
    expect(cluster.ask(1, event(jobId, "e1099", accepted))).toMatchObject({ duplicate: true });
    const repeated = { kind: "refused", code: "EVENT_REPEATED" };
    expect(cluster.ask(1, event(jobId, "first", accepted))).toMatchObject(repeated);
    for (const test of cluster.nodes) {
      cluster.checkpoint(test);
      cluster.kill(test);
      cluster.start(test);
    }
    cluster.run(15_000);
    expect(cluster.ask(2, event(jobId, "first", accepted))).toMatchObject(repeated);
    const answer = cluster.ask(0, read(jobId));
    expect(answer.kind === "job" && answer.state.accepted[0]?.workerCount).toBe(1_099);
  });
});

describe("a ledger whose list of nodes has grown (VSR-26, LEDG-2)", () => {
  it("finds every job and key, through old nodes and new ones", () => {
    const five = [...THREE, "use1", "euw1"];
    const cluster = new TestCluster(five, {}, null, 3);
    cluster.run(1_000);
    const keys = Array.from({ length: 30 }, (_, at) => `grown:${at}:0123456789abcdef`);
    const jobs = keys.map((key, at) => jobOf(cluster.ask(at % 3, submit(key))));
    cluster.run(1_000);
    cluster.grow();
    cluster.run(15_000);
    for (const [at, jobId] of jobs.entries()) {
      for (const index of [at % 3, 3, 4]) {
        expect(statusOf(cluster.ask(index, read(jobId)))).toBe("CREATED");
      }
      expect(jobOf(cluster.ask(3 + (at % 2), submit(keys[at])))).toBe(jobId);
    }
    expect(cluster.ask(4, submit()).kind).toBe("committed");
  });
});

describe("a node that gives up what it leads (VSR-16)", () => {
  it("is followed by others at once, and requests in hand are answered by them", () => {
    const cluster = new TestCluster(THREE);
    cluster.run(1_000);
    const jobs = [0, 1, 2].map((index) => jobOf(cluster.ask(index, submit())));
    const test = cluster.at(0);
    const token = cluster.request(0, event(jobs[0] ?? "", "a", accepted));
    expect(test.node?.status().leading).toBeGreaterThan(1);
    cluster.giveUp(test);
    expect(test.node?.handingOver).toBe(0);
    expect(test.node?.status().leading).toBe(0);
    cluster.kill(test);
    expect(cluster.answers.get(token)).toMatchObject({ kind: "committed", outcome: "applied" });
    for (const jobId of jobs) {
      // Far less than a lease.
      expect(cluster.ask(1, event(jobId, "b", accepted), 500).kind).toBe("committed");
    }
  });
});

describe("a node that goes (VSR-16)", () => {
  const vsr = { ...LEDGER_NODE_DEFAULTS.vsr, leaseMs: 600_000 };

  it("is succeeded in groups that have not sent anything yet", () => {
    const cluster = new TestCluster(THREE, { vsr });
    const test = cluster.at(0);
    expect(test.node?.status().leading).toBeGreaterThan(1);
    cluster.giveUp(test);
    expect(test.node?.status().leading).toBe(0);
  });

  it("lets others lead a job whose founding was on its way to the disk", () => {
    const cluster = new TestCluster(THREE, { vsr });
    cluster.run(1_000);
    const test = cluster.at(0);
    test.slowDisk = true;
    const token = cluster.request(0, submit());
    cluster.giveUp(test);
    expect(test.node?.handingOver).toBeGreaterThan(0);
    test.slowDisk = false;
    cluster.run(1_000);
    expect(test.node?.handingOver).toBe(0);
    cluster.kill(test);
    const answer = cluster.answers.get(token);
    if (answer === undefined) throw new Error("a job was submitted");
    expect(cluster.ask(1, event(jobOf(answer), "a", accepted), 500).kind).toBe("committed");
  });

  it("repeats its resignation when it is lost", () => {
    const cluster = new TestCluster(THREE, { vsr });
    cluster.run(1_000);
    const test = cluster.at(0);
    cluster.isLost = (message) => message.kind === "vsr" && message.message.kind === "resign";
    cluster.giveUp(test);
    expect(test.node?.handingOver).toBeGreaterThan(0);
    cluster.isLost = () => false;
    cluster.run(1_000);
    expect(test.node?.handingOver).toBe(0);
    expect(test.node?.status().leading).toBe(0);
    // The others know for a while that it goes, and need not wait for it when they go as well.
    const { node } = cluster.at(1);
    expect([test.id, cluster.at(2).id].map((id) => node?.isLeaving(id))).toEqual([true, false]);
    cluster.run(40_000);
    expect(node?.isLeaving(test.id)).toBe(false);
  });
});

describe("nodes that compare what they have (AE-3)", () => {
  it("report nothing about equal histories, also with some jobs behind", () => {
    const cluster = new TestCluster(THREE);
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.at(2).cut = true;
    cluster.ask(primaryIndex(cluster, jobId) === 2 ? 1 : 0, event(jobId, "a", accepted));
    cluster.at(2).cut = false;
    cluster.run(150_000);
    expect(cluster.alarms).toEqual([]);
  });

  it("stop the group of a job with two committed histories, and report it", () => {
    const cluster = new TestCluster(THREE);
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.run(500);
    const { node } = cluster.at(1);
    const group = node?.groups.get(jobId as GroupId);
    if (group?.app.kind !== "job") throw new Error("no job");
    group.app.state = { ...group.app.state, chain: new Uint8Array(32).fill(1) };
    cluster.ask(0, event(jobId, "a", accepted));
    cluster.run(150_000);
    expect(cluster.alarms.join()).toContain("two committed histories");
  });

  it.each(["a restart", "a restart from a checkpoint"])("keep it stopped over %s", (way) => {
    const cluster = new TestCluster(THREE);
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.run(500);
    const test = cluster.at(1);
    const group = test.node?.groups.get(jobId as GroupId);
    if (group?.app.kind !== "job") throw new Error("no job");
    group.app.state = { ...group.app.state, chain: new Uint8Array(32).fill(1) };
    cluster.ask(0, event(jobId, "a", accepted));
    cluster.run(150_000);
    const stopped = cluster.nodes.filter(
      ({ node }) => node?.groups.get(jobId as GroupId)?.replica.state.status === "broken",
    );
    expect(stopped).not.toEqual([]);
    for (const one of stopped) {
      if (way !== "a restart") cluster.checkpoint(one);
      cluster.kill(one);
      cluster.alarms.length = 0;
      cluster.start(one);
      cluster.run(30_000);
      expect(one.node?.groups.get(jobId as GroupId)?.replica.state.status).toBe("broken");
      expect(cluster.alarms.join()).toContain("two committed histories");
    }
  });
});

describe("a job that is promised and not founded yet (IDEM-22)", () => {
  const five = ["use1", "euw1", "apse1", "use1", "euw1"];
  const keys = Array.from({ length: 12 }, (_, index) => `late:${index}:0123456789abcdef`);

  it("is never reported as absent, however long its founding takes", () => {
    const cluster = new TestCluster(five);
    cluster.run(1_000);
    cluster.isLost = (message) => message.kind === "request" && message.request.kind === "found";
    const jobs = keys.map((key, index) => jobOf(cluster.ask(index % 5, submit(key))));
    const unfounded = jobs.filter((jobId) =>
      cluster.nodes.every(({ node }) => node?.groups.has(jobId as GroupId) !== true),
    );
    expect(unfounded).not.toEqual([]);
    cluster.run(200_000);
    for (const jobId of unfounded) {
      expect(cluster.ask(0, read(jobId)).kind).toBe("retry");
      expect(cluster.ask(4, event(jobId, "a", accepted)).kind).toBe("unknown");
    }
    cluster.isLost = () => false;
    cluster.run(5_000);
    for (const jobId of jobs) expect(statusOf(cluster.ask(1, read(jobId)))).toBe("CREATED");
  });

  it("is reported as absent when it was never promised, also with a node down", () => {
    const cluster = new TestCluster(five);
    cluster.run(1_000);
    cluster.kill(cluster.at(3));
    cluster.run(15_000);
    const jobId = `use1-${WALL + cluster.now}-n9-00001`;
    expect(cluster.ask(0, read(jobId)).kind).toBe("notFound");
  });
});

describe("a node that has lost its disk (VSR-30)", () => {
  const keys = Array.from({ length: 24 }, (_, index) => `client:${index}:0123456789abcdef`);

  it("is ignored under its old name, and no key becomes a second job", () => {
    const cluster = new TestCluster(THREE);
    cluster.run(1_000);
    const first = keys.map((key, index) => jobOf(cluster.ask(index % 3, submit(key))));
    const lost = cluster.at(2);
    cluster.loseDisk(lost);
    cluster.start(lost);
    cluster.run(3_000);
    const asked = keys.map((key) => cluster.ask(2, submit(key), 40_000));
    expect(asked.filter(({ kind }) => kind === "committed")).toEqual([]);
    cluster.run(15_000);
    expect(keys.map((key) => jobOf(cluster.ask(0, submit(key))))).toEqual(first);
    expect(cluster.alarms.join()).toContain("IDENTITY_CHANGED: n2 has another data directory");
    expect(cluster.alarms.filter((why) => !why.startsWith("IDENTITY_CHANGED"))).toEqual([]);
  });

  it("leads nothing that it may have led before, though a founding reaches it", () => {
    const cluster = new TestCluster(THREE);
    cluster.run(1_000);
    const lost = cluster.at(2);
    const jobId = "apse1-1700000000001-n1-00001" as JobId;
    const hlc = { wallMs: WALL, logical: 0, node: nodeId("n1") };
    const head = { jobId, eventId: "create" as EventId, fenceToken: 1, hlc };
    const created = { ...head, kind: "JobCreated", spec: Uint8Array.of(1), assignedDcs: ["dc1"] };
    const members = ["n2", "n1", "n0"].map(nodeId);
    const request = { kind: "found", members, created, required: "NONE" } as FoundRequest;
    const leads = (): boolean => {
      cluster.deliver(2, { kind: "request", id: 1, request }, 1);
      return primaryIndex(cluster, jobId) === 2;
    };
    expect(leads()).toBe(true);
    cluster.loseDisk(lost);
    cluster.start(lost);
    expect(leads()).toBe(false);
    cluster.kill(lost);
    cluster.start(lost);
    expect(leads()).toBe(false);
    expect(cluster.ask(2, submit())).toMatchObject({ kind: "retry" });
  });

  it("is distinguished from a new node, which joins once its peers know it", () => {
    const cluster = new TestCluster([...THREE, "use1"], {}, null, 3);
    cluster.run(1_000);
    cluster.at(0).cut = true;
    cluster.at(1).cut = true;
    cluster.grow();
    cluster.run(5_000);
    expect(cluster.ask(3, submit())).toMatchObject({ kind: "retry" });
    cluster.at(0).cut = false;
    cluster.at(1).cut = false;
    cluster.run(15_000);
    expect(cluster.ask(3, submit())).toMatchObject({ kind: "committed" });
  });

  it("is known though a checkpoint was taken while the disk was writing it down", () => {
    const cluster = new TestCluster([...THREE, "use1"], {}, null, 3);
    cluster.run(1_000);
    for (const test of cluster.nodes.slice(0, 3)) test.slowDisk = true;
    cluster.grow();
    cluster.run(1_000);
    for (const test of cluster.nodes.slice(0, 3)) cluster.checkpoint(test);
    for (const test of cluster.nodes.slice(0, 3)) test.slowDisk = false;
    cluster.settle();
    for (const test of cluster.nodes.slice(0, 3)) {
      cluster.kill(test);
      cluster.start(test);
      expect(test.node?.knows(nodeId("n3"))).toBe(true);
    }
  });

  it("keeps nothing of an identity that could not be read again", () => {
    const cluster = new TestCluster(["use1", "euw1", "apse1"]);
    cluster.loseDisk(cluster.at(2));
    cluster.at(2).identity = "é".repeat(200);
    cluster.kill(cluster.at(0));
    const [first] = cluster.nodes;
    if (first === undefined) throw new Error("three nodes");
    first.records.length = 0;
    cluster.start(first);
    cluster.start(cluster.at(2));
    cluster.run(5_000);
    cluster.kill(first);
    cluster.start(first);
    expect(first.node?.knows(nodeId("n2"))).toBe(false);
  });

  it.each(["a restart", "a restart from a checkpoint"])("is known after %s too", (way) => {
    const cluster = new TestCluster(THREE);
    cluster.run(1_000);
    for (const test of cluster.nodes.slice(0, 2)) {
      if (way !== "a restart") cluster.checkpoint(test);
      cluster.kill(test);
      cluster.start(test);
    }
    cluster.loseDisk(cluster.at(2));
    cluster.start(cluster.at(2));
    cluster.run(20_000);
    expect(cluster.at(2).node?.groups.size).toBe(0);
    expect(cluster.alarms.join()).toContain("IDENTITY_CHANGED");
  });
});

describe("finished jobs", () => {
  it("leave memory after their retention and cannot be founded again (G-14)", () => {
    const cluster = new TestCluster(["use1"], { retentionMs: 30_000 });
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.ask(0, event(jobId, "f", { kind: "JobFailed", error: "x", failedDc: "dc1" }));
    cluster.run(130_000);
    expect(cluster.archived).toEqual([jobId]);
    expect(cluster.ask(0, read(jobId))).toMatchObject({ archived: true, state: { jobId } });
    const late = event(jobId, "late", accepted);
    expect(cluster.ask(0, late)).toMatchObject({ kind: "refused", code: "ARCHIVED" });
  });

  const failed = { kind: "JobFailed", error: "x", failedDc: "dc1" } as const;

  it("are read from the archive of a node that had them, through any node", () => {
    const cluster = new TestCluster([...THREE, "use1", "euw1"], { retentionMs: 30_000 });
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.ask(0, event(jobId, "f", failed));
    cluster.run(130_000);
    expect(cluster.archived).toEqual([jobId, jobId, jobId]);
    for (const index of cluster.nodes.keys()) {
      const answer = cluster.ask(index, read(jobId));
      expect(answer).toMatchObject({ kind: "job", archived: true, state: { status: "FAILED" } });
    }
  });

  it.each(["speaks", "is only compared with"])(
    "are sent to a replica that was down for longer than the retention and %s",
    (way) => {
      const cluster = new TestCluster(THREE, { retentionMs: 30_000 });
      const jobId = jobOf(cluster.ask(0, submit()));
      cluster.ask(0, event(jobId, "a", accepted));
      cluster.at(2).cut = true;
      cluster.ask(primaryIndex(cluster, jobId) === 2 ? 1 : 0, event(jobId, "f", failed), 60_000);
      cluster.run(130_000);
      expect(cluster.archived).toEqual([jobId, jobId]);
      const isSilent = way !== "speaks";
      cluster.isLost = (message) => isSilent && message.kind === "vsr" && message.group === jobId;
      cluster.at(2).cut = false;
      cluster.run(isSilent ? 180_000 : 30_000);
      expect(cluster.archived).toEqual([jobId, jobId, jobId]);
      expect(cluster.at(2).node?.groups.has(jobId as GroupId)).toBe(false);
      expect(statusOf(cluster.ask(2, read(jobId, "EVENTUAL")))).toBe("FAILED");
    },
  );

  it("keep the longer of two ends when their nodes differ in what came after it", () => {
    const cluster = new TestCluster(THREE, { retentionMs: 30_000 });
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.ask(0, event(jobId, "f", failed));
    cluster.run(500);
    const test = cluster.at(primaryIndex(cluster, jobId));
    const before = test.node?.groups.get(jobId as GroupId)?.app;
    if (before?.kind !== "job") throw new Error("no job");
    const state = before.state;
    cluster.ask(0, event(jobId, "late", accepted));
    cluster.deliver(cluster.nodes.indexOf(test), { kind: "archived", state }, 1);
    const kept = test.archive.get(jobId);
    const decoded = kept === undefined ? null : decodeJobState(kept);
    expect(decoded?.ok === true && decoded.value.appliedSeq).toBe(state.appliedSeq + 1);
  });
});
