import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ByteWriter } from "../../base/bytes.ts";
import { nodeId } from "../../base/ids.ts";
import type { GroupId, LogEntry, VsrMessage } from "../group/messages.ts";
import type { AntiEntropyMessage } from "../job/anti-entropy.ts";
import { initialState } from "../job/job-state.ts";
import { event, JOB } from "../job/testing/events.ts";
import { decodeBatch, encodeBatch } from "./codec.ts";
import type { LedgerAnswer, NodeMessage, PeerRequest } from "./messages.ts";
import { decodeGroupRecord, encodeGroupRecord, recordType } from "./records.ts";
import { LedgerRecovery } from "./recovery.ts";
import type { WatchItem, WatchRequest } from "./watch.ts";

const members = ["n0", "n1", "n2"].map(nodeId);
const group = JOB as string as GroupId;
const data = new Uint8Array([1, 2, 3]);

function entry(seq: number, kind: LogEntry["kind"] = "op"): LogEntry {
  const incoming = kind === "reconfigure" ? members : [];
  const head = { epoch: 1, view: 4, eventId: `e${seq}`, wall: 1_700_000_000_000, logical: 7 };
  return { seq, kind, ...head, data, members: incoming };
}

const snapshot = { seq: 6, bytes: data };
const entries = [entry(7), entry(8, "noop"), entry(9, "reconfigure")];
const vsr: readonly VsrMessage[] = [
  { kind: "prepare", epoch: 1, view: 4, entries, commit: 6, sentAt: 12.5 },
  {
    ...{ kind: "prepareResponse", epoch: 1, status: "wrongSequence", view: 4 },
    ...{ expected: 7, acked: -1, sentAt: -1, round: 3 },
  } as VsrMessage,
  { kind: "commit", epoch: 1, view: 4, commit: -1, last: 9, sentAt: 0, round: 0, sleeps: true },
  { kind: "viewChange", epoch: 2, view: 5, probe: true },
  {
    ...{ kind: "viewChangeResponse", epoch: 1, view: 5, probe: false, granted: true },
    ...{ currentView: 5, lastNormalView: 4, lastSeq: 9, commit: 6, entries, leaseLeftMs: 0.5 },
  } as VsrMessage,
  { kind: "newView", epoch: 1, view: 5, startSeq: 10, commit: 6, entries },
  { kind: "fetchLog", epoch: 1, view: 5, from: 0 },
  {
    ...{ kind: "logSuffix", epoch: 1, members, view: 5, lastNormalView: 5 },
    ...{ snapshot, entries, lastSeq: 9, commit: 6 },
  } as VsrMessage,
  // How an older epoch ended, as requested and answered by a node that knows.
  { kind: "fetchLog", epoch: 1, view: 0, from: 3 },
  {
    ...{ kind: "logSuffix", epoch: 2, members: [], view: 5, lastNormalView: 5 },
    ...{ snapshot, entries, lastSeq: 9, commit: 9 },
  } as VsrMessage,
  { kind: "found", epoch: 1, members },
  { kind: "unknownGroup", epoch: 1 },
  { kind: "newerEpoch", epoch: 3, members },
  { kind: "resign", epoch: 3, view: 9, successor: nodeId("n1") },
];

const created = event("JobCreated");
const requests: readonly PeerRequest[] = [
  { kind: "submit", key: "c:1:0123456789abcdef", spec: data, assignedDcs: ["dc1", "dc2"] },
  { kind: "append", event: event("JobFailed"), durability: "GLOBAL" },
  {
    kind: "append",
    event: event("JobAccepted", { condition: { ifSeq: 4, ifFence: null } }),
    durability: "NONE",
  },
  { kind: "read", jobId: JOB, level: "BOUNDED_STALENESS", minSeq: -1, staleMs: 1_000 },
  {
    ...{ kind: "replace", group, eventId: "r" },
    ...{ leaving: nodeId("n0"), joining: nodeId("n3") },
  } as PeerRequest,
  { kind: "found", members, created, required: "NONE" },
  { kind: "propose", group, eventId: "p", data, members: [] },
  { kind: "inspect", group },
];
const levels = { level: "REGIONAL", required: "GLOBAL" } as const;
const answers: readonly LedgerAnswer[] = [
  {
    ...{ kind: "committed", jobId: JOB, eventId: "e", seq: 4, outcome: "rejected" },
    ...{ reason: "NOT_ACCEPTED", duplicate: true, view: 3, ...levels },
  } as LedgerAnswer,
  { kind: "unknown", eventId: "e", level: "LOCAL", why: "time" },
  {
    kind: "submitted",
    answer: { kind: "accepted", jobId: JOB, ack: data, duplicate: true },
  },
  { kind: "submitted", answer: { kind: "rejected", result: data, duplicate: false } },
  { kind: "submitted", answer: { kind: "keyReused" } },
  { kind: "submitted", answer: { kind: "retry", why: "full" } },
  {
    ...{ kind: "job", state: initialState(JOB), archived: false, servedBy: nodeId("n1") },
    primary: null,
    ...{ view: 1, members },
  } as LedgerAnswer,
  { kind: "founded", seq: 0, level: "GLOBAL" },
  { kind: "notFound", jobId: JOB },
  { kind: "redirect", primary: nodeId("n2") },
  { kind: "retry", why: "busy" },
  { kind: "refused", code: "CLOCK_SKEW", message: "ahead" },
  { kind: "passedOn", jobId: JOB, eventId: "e", why: "no quorum" },
  { kind: "state", group, seq: -1, view: 1, bytes: data },
  {
    ...{ kind: "conflict", jobId: JOB, eventId: "e", reason: "FENCE_MOVED", seq: -1, fence: 7 },
  } as LedgerAnswer,
];

const hash = new Uint8Array(32).fill(7);
const comparisons: readonly AntiEntropyMessage[] = [
  { kind: "rootRequest", round: 1 },
  { kind: "rootHash", round: 1, hash },
  { kind: "subtreeRequest", round: 1, nodes: [2, 3] },
  { kind: "subtreeHashes", round: 1, hashes: [{ node: 2, hash }] },
  { kind: "leafRequest", round: 1, leaf: 1_024, after: null },
  { kind: "leafRequest", round: 1, leaf: 1_024, after: JOB },
  {
    ...{ kind: "leafJobs", round: 1, leaf: 1_024, more: true },
    jobs: [{ jobId: JOB, commitSeq: -1, chain: hash }],
  } as AntiEntropyMessage,
  { kind: "youAreBehind" },
];

const watches: readonly (WatchRequest | null)[] = [
  { scope: { kind: "job", jobId: JOB }, after: [{ jobId: JOB, seq: -1 }], since: "start" },
  { scope: { kind: "jobs", prefix: "" }, after: [], since: "now" },
  null,
];
const items: readonly WatchItem[] = [
  {
    ...{ kind: "event", jobId: JOB, seq: 3, view: 2, event: event("JobCompleted") },
    ...{ outcome: "rejected", reason: "NOT_ACCEPTED" },
  } as WatchItem,
  { kind: "behind", jobId: JOB, seq: 400 },
  { kind: "from", jobId: JOB, seq: -1 },
  { kind: "archived", jobId: JOB },
  { kind: "elsewhere", jobId: JOB, nodes: members },
  { kind: "refused", why: "too many" },
  { kind: "stop", jobId: JOB, event: event("JobAborted") },
];

const batch: readonly NodeMessage[] = [
  ...vsr.map((message) => ({ kind: "vsr", group, message }) as const),
  ...requests.map((request, id) => ({ kind: "request", id, request }) as const),
  ...answers.map((answer, id) => ({ kind: "answer", id, answer }) as const),
  ...comparisons.map((message) => ({ kind: "compare", message }) as const),
  ...watches.map((request, id) => ({ kind: "watch", id, request }) as const),
  ...items.map((item, id) => ({ kind: "watched", id, item }) as const),
  { kind: "archived", state: initialState(JOB) },
  { kind: "introduction" },
  { kind: "acquainted" },
  { kind: "stop", event: event("JobAborted") },
];
const bytes = encodeBatch(new ByteWriter(), batch);

describe("messages between ledger nodes", () => {
  it("comes out of its bytes as it went in", () => {
    expect(decodeBatch(bytes)).toEqual({ ok: true, messages: batch });
  });

  it("is refused when it is cut anywhere", () => {
    for (let length = 0; length < bytes.length; length++) {
      expect(decodeBatch(bytes.subarray(0, length)).ok).toBe(false);
    }
  });

  it("never throws and never grows, whatever bytes come", () => {
    const change = fc.record({ at: fc.nat(bytes.length - 1), to: fc.nat(255) });
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 8 }), (changes) => {
        const damaged = bytes.slice();
        for (const { at, to } of changes) damaged[at] = to;
        const decoded = decodeBatch(damaged);
        if (decoded.ok) encodeBatch(new ByteWriter(), decoded.messages);
      }),
      { numRuns: 2_000 },
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (noise) => {
        decodeBatch(noise);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("a group's records", () => {
  const records = [
    { kind: "entry", entry: entry(7) },
    { kind: "promise", view: 9 },
    { kind: "newView", epoch: 1, members, view: 9, keep: 6, snapshot, entries },
    { kind: "commitMark", seq: 6 },
    { kind: "broken", why: "entry 4 is committed as a here and as b there" },
    { kind: "epoch", epoch: 2, members, learner: true },
  ] as const;

  it("come out of their bytes as they went in, and are refused when cut", () => {
    for (const record of records) {
      const payload = encodeGroupRecord(new ByteWriter(), group, record);
      expect(decodeGroupRecord(recordType(record), payload)).toEqual({ group, record });
      for (let length = 0; length < payload.length; length++) {
        const cut = decodeGroupRecord(recordType(record), payload.subarray(0, length));
        expect(typeof cut).toBe("string");
      }
    }
  });

  it("stop a recovery that cannot read them, with the reason", () => {
    const recovery = new LedgerRecovery();
    recovery.apply(1, 64, new Uint8Array([200]));
    expect(recovery.problem).not.toBeNull();
    const other = new LedgerRecovery();
    other.restore(1, new Uint8Array([9]));
    expect(other.problem).toContain("another version");
  });
});
