import { describe, expect, it } from "vitest";
import { nodeId } from "../../base/ids.ts";
import type { GroupId } from "../group/messages.ts";
import type { JobId } from "../job/job-id.ts";
import { LEDGER_NODE_DEFAULTS } from "./config.ts";
import { TestCluster } from "./testing/cluster.ts";
import {
  accepted,
  cancel,
  completed,
  event,
  jobOf,
  primaryIndex,
  submit,
  THREE,
} from "./testing/requests.ts";
import { WATCHERS_MAX, type WatchItem, type WatchRequest } from "./watch.ts";

const ALL: WatchRequest = { scope: { kind: "jobs", prefix: "" }, after: [], since: "start" };

function one(jobId: string, seq = -1): WatchRequest {
  const id = jobId as JobId;
  return { scope: { kind: "job", jobId: id }, after: [{ jobId: id, seq }], since: "start" };
}

function received(items: readonly WatchItem[] | undefined): string[] {
  return (items ?? []).map((item) => {
    if (item.kind === "event") return `${item.seq} ${item.event.eventId} ${item.outcome}`;
    return "seq" in item ? `${item.kind} ${item.seq}` : item.kind;
  });
}

function started(): { readonly cluster: TestCluster; readonly jobId: string } {
  const cluster = new TestCluster(THREE);
  const jobId = jobOf(cluster.ask(0, submit()));
  cluster.ask(0, event(jobId, "a", accepted));
  cluster.run(500);
  return { cluster, jobId };
}

describe("a watch of one job", () => {
  it("sends its events from the first on, in order, with the view that accepted them", () => {
    const { cluster, jobId } = started();
    const tokens = [0, 1, 2].map((index) => cluster.watch(index, one(jobId)));
    cluster.ask(1, event(jobId, "c", cancel));
    cluster.run(500);
    for (const token of tokens) {
      const items = cluster.watched.get(token);
      expect(received(items)).toEqual([`0 create/${jobId} applied`, "1 a applied", "2 c applied"]);
      expect(items?.map((item) => item.kind === "event" && item.view)).toEqual([1, 1, 1]);
    }
  });

  it("continues after the given index, at any node, also one that is behind it", () => {
    const { cluster, jobId } = started();
    const late = (primaryIndex(cluster, jobId) + 1) % 3;
    cluster.at(late).cut = true;
    cluster.ask((late + 1) % 3, event(jobId, "b", accepted));
    cluster.ask((late + 1) % 3, event(jobId, "c", cancel));
    const token = cluster.watch(late, one(jobId, 2));
    expect(received(cluster.watched.get(token))).toEqual([]);
    cluster.at(late).cut = false;
    cluster.run(2_000);
    expect(received(cluster.watched.get(token))).toEqual(["3 c applied"]);
  });

  it("sends an event once, however often it was committed", () => {
    const { cluster, jobId } = started();
    const token = cluster.watch(0, one(jobId, 1));
    const lost = primaryIndex(cluster, jobId);
    cluster.ask(lost, event(jobId, "b", accepted));
    cluster.kill(cluster.at(lost));
    cluster.run(13_000);
    cluster.ask((lost + 1) % 3, event(jobId, "b", accepted));
    cluster.ask((lost + 1) % 3, event(jobId, "c", completed));
    const other = cluster.watch((lost + 1) % 3, one(jobId, 1));
    cluster.run(500);
    const whole = received(cluster.watched.get(lost === 0 ? other : token));
    expect(whole.filter((text) => text.includes(" b "))).toHaveLength(1);
    expect(whole.at(-1)).toMatch(/ c applied$/);
  });

  it("reports being behind when the log was compacted past it, and continues there", () => {
    const vsr = { ...LEDGER_NODE_DEFAULTS.vsr, tailEntries: 4 };
    const cluster = new TestCluster(THREE, { compactEntries: 8, vsr });
    const jobId = jobOf(cluster.ask(0, submit()));
    const slow = cluster.watch(0, one(jobId), 1);
    for (let i = 0; i < 30; i++) cluster.ask(0, event(jobId, `a${i}`, accepted));
    expect(received(cluster.watched.get(slow))).toEqual([`0 create/${jobId} applied`]);
    cluster.makeRoom(0, slow, 100);
    const [, behind, ...rest] = received(cluster.watched.get(slow));
    const place = Number(behind?.slice("behind ".length));
    expect(place).toBeGreaterThan(8);
    expect(rest).toEqual(
      Array.from({ length: 30 - place }, (_, i) => `${place + 1 + i} a${place + i} applied`),
    );
  });

  it("redirects requests to the wrong node, also when a node is replaced", () => {
    const cluster = new TestCluster([...THREE, "use2"]);
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.run(500);
    const holds = (index: number): boolean =>
      cluster.at(index).node?.groups.has(jobId as GroupId) === true;
    const outside = [0, 1, 2, 3].findIndex((index) => !holds(index));
    const wrong = cluster.watch(outside, one(jobId));
    expect(received(cluster.watched.get(wrong))).toEqual(["elsewhere"]);
    const primary = primaryIndex(cluster, jobId);
    const leaving = [0, 1, 2, 3].find((index) => holds(index) && index !== primary) ?? 0;
    const token = cluster.watch(leaving, one(jobId));
    cluster.ask(primary, {
      ...{ kind: "replace", group: jobId as GroupId, eventId: "r" },
      ...{ leaving: cluster.at(leaving).id, joining: nodeId(`n${outside}`) },
    });
    cluster.run(5_000);
    expect(received(cluster.watched.get(token)).at(-1)).toBe("elsewhere");
  });

  it("ends when the job goes to the archive", () => {
    const cluster = new TestCluster(THREE, { retentionMs: 30_000 });
    const jobId = jobOf(cluster.ask(0, submit()));
    cluster.ask(0, event(jobId, "a", accepted));
    cluster.ask(0, event(jobId, "c", completed));
    const token = cluster.watch(0, one(jobId, 1));
    const stuck = cluster.watch(0, one(jobId), 0);
    cluster.run(200_000);
    expect(received(cluster.watched.get(token))).toEqual(["2 c applied", "archived"]);
    expect(received(cluster.watched.get(stuck))).toEqual(["behind 2", "archived"]);
    expect(received(cluster.watched.get(cluster.watch(0, one(jobId))))).toEqual(["archived"]);
    expect(cluster.at(0).node?.status().watchers).toBe(0);
  });
});

describe("a watch of many jobs", () => {
  it("covers present and future jobs, each in its own order", () => {
    const { cluster, jobId } = started();
    const token = cluster.watch(2, ALL);
    const second = jobOf(cluster.ask(1, submit()));
    cluster.ask(0, event(second, "x", accepted));
    cluster.ask(0, event(jobId, "y", cancel));
    cluster.run(500);
    const items = cluster.watched.get(token) ?? [];
    const of = (id: string): string[] =>
      received(items.filter((item) => item.kind === "event" && item.jobId === id));
    expect(of(jobId)).toEqual([`0 create/${jobId} applied`, "1 a applied", "2 y applied"]);
    expect(of(second)).toEqual([`0 create/${second} applied`, "1 x applied"]);
  });

  it("starts now on request, and with the first event of future jobs", () => {
    const { cluster, jobId } = started();
    const token = cluster.watch(0, { ...ALL, since: "now" });
    cluster.ask(0, event(jobId, "y", cancel));
    const second = jobOf(cluster.ask(0, submit()));
    cluster.run(500);
    const items = received(cluster.watched.get(token));
    expect(items).toEqual(["from 1", "2 y applied", `0 create/${second} applied`]);
  });

  it("is one of a bounded number", () => {
    const { cluster } = started();
    for (let i = 0; i < WATCHERS_MAX; i++) cluster.watch(0, { ...ALL, since: "now" });
    const token = cluster.watch(0, ALL);
    expect(received(cluster.watched.get(token))).toEqual(["refused"]);
  });
});
