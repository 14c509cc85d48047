import { describe, expect, it } from "vitest";
import type { NodeId } from "../../base/ids.ts";
import type { GroupId } from "../group/messages.ts";
import { GroupKinds } from "./application.ts";
import { LEDGER_NODE_DEFAULTS } from "./config.ts";
import type { LedgerAnswer, LedgerRequest } from "./messages.ts";
import { snapshotSlices } from "./recovery.ts";
import { RegisteredApp } from "./registered-app.ts";
import { NODE_RULES } from "./rules.ts";
import { TestCluster } from "./testing/cluster.ts";
import { THREE } from "./testing/requests.ts";
import { decodeTally, encodeAmount, TALLY, type Tally } from "./testing/tally.ts";

const GROUP = "tally/one" as GroupId;

function add(amount: number, eventId: string, members: readonly NodeId[] = []): LedgerRequest {
  return { kind: "propose", group: GROUP, eventId, data: encodeAmount(amount), members };
}

function tallyOf(answer: LedgerAnswer): Tally | null {
  return answer.kind === "state" ? decodeTally(answer.bytes) : null;
}

function started(changes: ConstructorParameters<typeof TestCluster>[1] = {}): {
  readonly cluster: TestCluster;
  readonly members: readonly NodeId[];
} {
  const cluster = new TestCluster(THREE, changes, [0]);
  return { cluster, members: cluster.nodes.map(({ id }) => id) };
}

function leaderOf(cluster: TestCluster): number {
  return cluster.nodes.findIndex(({ node }) => node?.groups.get(GROUP)?.replica.state.acting);
}

describe("a group of a registered kind", () => {
  it("is founded by its first operation, and takes the next from any node", () => {
    const { cluster, members } = started();
    const first = cluster.ask(1, add(5, "a", members));
    expect(first).toMatchObject({ kind: "committed", jobId: GROUP, outcome: "added" });
    cluster.ask(2, add(7, "b"));
    for (const index of [0, 1, 2]) {
      const state = cluster.ask(index, { kind: "inspect", group: GROUP });
      expect(tallyOf(state)).toEqual({ count: 2, sum: 12, fence: 1 });
    }
    expect(cluster.at(0).node?.status()).toMatchObject({ jobs: 0, shards: 1, others: 1 });
  });

  it("counts an operation once, however often it is sent and over a failover", () => {
    const { cluster, members } = started();
    cluster.ask(0, add(5, "a", members));
    const lost = leaderOf(cluster);
    cluster.ask(lost, add(7, "b"));
    cluster.kill(cluster.at(lost));
    cluster.run(13_000);
    const other = (lost + 1) % 3;
    expect(cluster.ask(other, add(7, "b"))).toMatchObject({ kind: "committed", duplicate: true });
    cluster.ask(other, add(1, "c"));
    cluster.start(cluster.at(lost));
    cluster.run(5_000);
    const state = cluster.ask(lost, { kind: "inspect", group: GROUP });
    expect(tallyOf(state)).toMatchObject({ count: 3, sum: 13 });
    expect(tallyOf(state)?.fence).toBeGreaterThan(1);
  });

  it("comes back from checkpoint, log and snapshots like any other", () => {
    const vsr = { ...LEDGER_NODE_DEFAULTS.vsr, tailEntries: 4 };
    const { cluster, members } = started({ compactEntries: 8, vsr });
    cluster.ask(0, add(1, "a", members));
    cluster.at(2).cut = true;
    for (let i = 0; i < 40; i++) cluster.ask(0, add(1, `b${i}`));
    cluster.checkpoint(cluster.at(0));
    cluster.at(2).cut = false;
    cluster.run(5_000);
    for (const node of cluster.nodes) cluster.kill(node);
    for (const node of cluster.nodes) cluster.start(node);
    cluster.run(15_000);
    for (const index of [0, 1, 2]) {
      const state = cluster.ask(index, { kind: "inspect", group: GROUP });
      expect(tallyOf(state)).toMatchObject({ count: 41, sum: 41 });
    }
    expect(cluster.ask(1, add(1, "b39"))).toMatchObject({ duplicate: true });
  });

  it("refuses what its kind does not take, before anything is written", () => {
    const { cluster, members } = started();
    const one = cluster.at(0).id;
    cluster.ask(0, add(1, "a", members));
    const ask = (request: Partial<Extract<LedgerRequest, { kind: "propose" }>>): LedgerAnswer =>
      cluster.ask(1, { ...add(1, "x"), ...request } as LedgerRequest);
    expect(ask({ group: "other/one" as GroupId })).toMatchObject({ code: "UNKNOWN_KIND" });
    expect(ask({ group: "tally/?" as GroupId })).toMatchObject({ code: "UNKNOWN_KIND" });
    expect(ask({ data: new Uint8Array(17) })).toMatchObject({ code: "TOO_LARGE" });
    expect(ask({ data: encodeAmount(2_000) })).toMatchObject({ code: "INVALID_OPERATION" });
    expect(ask({ eventId: "" })).toMatchObject({ code: "INVALID_EVENT" });
    expect(ask({ members: [one, one] })).toMatchObject({ code: "BAD_MEMBERS" });
    expect(ask({ members: ["n9" as NodeId] })).toMatchObject({ code: "UNKNOWN_NODE" });
    expect(ask({ group: "tally/two" as GroupId })).toMatchObject({ kind: "notFound" });
  });

  it("is not founded a second time with other replicas (VSR-26)", () => {
    const cluster = new TestCluster([...THREE, "use2"], {}, [0]);
    const [a, b, c, d] = cluster.nodes.map(({ id }) => id) as [NodeId, NodeId, NodeId, NodeId];
    cluster.ask(0, add(1, "a", [a, b, c]));
    cluster.run(500);
    expect(cluster.ask(0, add(1, "b", [a, b, d]))).toMatchObject({ code: "BAD_MEMBERS" });
    expect(cluster.at(3).node?.groups.has(GROUP)).toBe(false);
  });

  it("keeps a node from starting that does not know its kind", () => {
    const { cluster, members } = started();
    cluster.ask(0, add(1, "a", members));
    cluster.kill(cluster.at(0));
    cluster.kinds = [];
    expect(() => cluster.start(cluster.at(0))).toThrow("tally/one is a group of a kind");
  });
});

describe("a group that its owner forgets", () => {
  const WHY = "tally/why" as GroupId;

  /** Groups of a kind that exist while another group says so, here by hand. */
  function forgetful(): ReturnType<typeof started> & { readonly begun: Set<string> } {
    const begun = new Set(["why", "one", "two"]);
    const kind = { ...TALLY, mayBegin: (name: string) => begun.has(name) };
    const cluster = new TestCluster(THREE, {}, [0], 3, [kind]);
    const members = cluster.nodes.map(({ id }) => id);
    cluster.ask(0, { ...add(1, "w", members), group: WHY } as LedgerRequest);
    cluster.ask(0, add(1, "a", members));
    cluster.run(500);
    return { cluster, members, begun };
  }

  function holders(cluster: TestCluster): readonly boolean[] {
    return cluster.nodes.map(({ node }) => node?.groups.has(GROUP) === true);
  }

  it("leaves memory, and the next checkpoint does not have it", () => {
    const { begun, cluster } = forgetful();
    const reported: boolean[] = [];
    cluster.onSaid = (_, effect) => {
      if (effect.kind === "leads" && effect.group === GROUP) reported.push(effect.leads);
    };
    begun.delete("one");
    for (const node of cluster.nodes) cluster.forget(node, [GROUP], WHY);
    expect([holders(cluster), reported]).toEqual([[false, false, false], [false]]);
    const ask = { ...add(1, "b"), members: [] } as LedgerRequest;
    expect(cluster.ask(1, ask)).toMatchObject({ kind: "notFound" });
    for (const node of cluster.nodes) {
      cluster.checkpoint(node);
      cluster.kill(node);
    }
    for (const node of cluster.nodes) cluster.start(node);
    cluster.run(15_000);
    expect(holders(cluster)).toEqual([false, false, false]);
    expect([...(cluster.at(0).node?.archived ?? [])]).toEqual([]);
  });

  it("has the deciding state on disk first", () => {
    const { cluster, members } = forgetful();
    for (let at = 0; at < 3; at++)
      cluster.ask(0, { ...add(1, `w${at}`, members), group: WHY } as LedgerRequest);
    const state = () => cluster.at(0).node?.groups.get(WHY)?.replica.state;
    expect(state()?.marked).toBeLessThan(state()?.commit ?? -1);
    cluster.forget(cluster.at(0), [GROUP], WHY);
    expect(state()?.marked).toBe(state()?.commit);
  });

  it("is whole or not there at all when it goes while a checkpoint is taken", () => {
    const { begun, cluster, members } = forgetful();
    cluster.ask(0, { ...add(1, "z", members), group: "tally/two" as GroupId } as LedgerRequest);
    begun.delete("one");
    const test = cluster.at(0);
    const { node } = test;
    if (node === null) throw new Error("the node runs");
    const slices: { readonly lsn: number; readonly slice: Uint8Array }[] = [];
    for (const slice of snapshotSlices(node, 1)) {
      slices.push({ lsn: test.records.length, slice });
      // Records of it come after the first slice in the log.
      if (slices.length === 1) {
        cluster.ask(0, add(1, "late"));
        cluster.forget(test, [GROUP], WHY);
      }
    }
    test.checkpoint = slices;
    cluster.kill(test);
    cluster.start(test);
    expect([...(test.node?.groups.keys() ?? [])]).toEqual(["shard/0", WHY, "tally/two"]);
    expect([...(test.node?.archived ?? [])]).toEqual([]);
  });

  it("is not founded again by a node that was down, whatever it requests", () => {
    const { begun, cluster, members } = forgetful();
    const away = (leaderOf(cluster) + 1) % 3;
    cluster.at(away).cut = true;
    cluster.run(1_000);
    begun.delete("one");
    for (const node of cluster.nodes)
      if (node !== cluster.at(away)) cluster.forget(node, [GROUP], WHY);
    cluster.at(away).cut = false;
    cluster.run(30_000);
    expect(holders(cluster).filter(Boolean)).toHaveLength(1);
    expect(leaderOf(cluster)).toBe(-1);
    const here = (away + 1) % 3;
    expect(cluster.ask(here, add(1, "again", members))).toMatchObject({ kind: "unknown" });
    expect(cluster.at(here).node?.groups.has(GROUP)).toBe(false);
  });
});

describe("kinds of groups", () => {
  it("have prefixes of their own and bounds", () => {
    const wrong = (change: Partial<typeof TALLY>): (() => GroupKinds) => {
      return () => new GroupKinds([{ ...TALLY, ...change }]);
    };
    expect(wrong({ prefix: "shard/" })).toThrow("taken");
    expect(wrong({ prefix: "job/" })).toThrow("taken");
    expect(wrong({ prefix: "Tally" })).toThrow("letters and a slash");
    expect(wrong({ snapshotBytesMax: 2 ** 30 })).toThrow("bounded");
    expect(() => new GroupKinds([TALLY, TALLY])).toThrow("once");
  });

  it("read no snapshot but a whole one of theirs", () => {
    const fresh = (): RegisteredApp => {
      const application = TALLY.found("x");
      if (application === null) throw new Error("no application");
      return new RegisteredApp(TALLY, application, NODE_RULES);
    };
    const app = fresh();
    const entry = { kind: "op", epoch: 1, view: 3, wall: 0, logical: 0, members: [] } as const;
    for (let seq = 0; seq < 5; seq++) {
      app.apply({ ...entry, seq, eventId: `e${seq}`, data: encodeAmount(seq) });
    }
    // Committed a second time by another primary, behind the first.
    const again = app.apply({ ...entry, seq: 5, eventId: "e3", data: encodeAmount(3) });
    expect(again).toEqual({ kind: "added", reason: null, seq: 3, duplicate: true });
    expect(decodeTally(app.application.snapshot())).toMatchObject({ count: 5, sum: 10 });
    const bytes = app.snapshot();
    for (let cut = 0; cut < bytes.length; cut++) {
      expect(fresh().restore({ seq: 5, bytes: bytes.subarray(0, cut) })).toBe(false);
    }
    expect(fresh().restore({ seq: 4, bytes })).toBe(false);
    const copy = fresh();
    expect(copy.restore({ seq: 5, bytes })).toBe(true);
    expect(copy.snapshot()).toEqual(bytes);
    expect(copy.outcomeOf("e2")).toEqual({ kind: "added", reason: null, seq: 2, duplicate: true });
  });
});
