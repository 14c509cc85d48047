/**
 * One key holder, a defect or a flipped bit may put any number into any field. Every message that a busy
 * ledger sends is sent again with each of its numbers at its extremes, one at a time: no node ends, what
 * it kept on disk lets it start again, and the rest of the ledger works.
 */

import { describe, expect, it } from "vitest";
import { ByteWriter } from "../../base/bytes.ts";
import { type NodeId, nodeId } from "../../base/ids.ts";
import type { GroupId } from "../group/messages.ts";
import type { EventId, JobEvent } from "../job/events.ts";
import type { JobId } from "../job/job-id.ts";
import { encodeJobState } from "../job/state-codec.ts";
import { type IdempotencyKey, shardOf } from "../keys/key.ts";
import { decodeBatch, encodeBatch } from "./codec.ts";
import { LEDGER_NODE_DEFAULTS } from "./config.ts";
import type { LedgerAnswer, LedgerRequest, NodeMessage } from "./messages.ts";
import { TestCluster, WALL } from "./testing/cluster.ts";

const THREE = ["use1", "euw1", "apse1"];
const FOUR = [...THREE, "use1"];
const KEYS = ["client:1:0123456789abcdef", "client:2:0123456789abcdef"] as IdempotencyKey[];
const EXTREMES = [0, 1, 2 ** 31, 2 ** 32, 2 ** 40, 2 ** 48 - 1, 2 ** 48, 2 ** 53 - 41, 2 ** 53 - 1];
/** Samples per kind of message; more would be alike. */
const SAMPLES_PER_KIND = 2;

interface Sample {
  readonly from: NodeId;
  readonly to: NodeId;
  readonly message: NodeMessage;
}

function submit(key = ""): LedgerRequest {
  return { kind: "submit", key, spec: Uint8Array.of(1), assignedDcs: ["dc1"] };
}

function event(jobId: string, eventId: string): LedgerRequest {
  const hlc = { wallMs: WALL, logical: 0, node: nodeId("client") };
  const head = { jobId: jobId as JobId, eventId: eventId as EventId, fenceToken: 0, hlc };
  const body = { kind: "JobAccepted", dcId: "dc1", workerCount: 2 } as const;
  return { kind: "append", event: { ...head, ...body } as JobEvent, durability: "NONE" };
}

function jobOf(answer: LedgerAnswer): string {
  if (answer.kind === "committed") return answer.jobId;
  if (answer.kind === "submitted" && answer.answer.kind === "accepted") return answer.answer.jobId;
  throw new Error(`no job in ${answer.kind}`);
}

function kindOf(message: NodeMessage): string {
  if (message.kind === "vsr" || message.kind === "compare") {
    return `${message.kind}/${message.message.kind}`;
  }
  if (message.kind === "request") return `request/${message.request.kind}`;
  return message.kind === "answer" ? `answer/${message.answer.kind}` : message.kind;
}

/** Records the messages of a run with a lost primary, a replacement and compacted logs. */
function recordSamples(): Map<string, Sample[]> {
  const samples = new Map<string, Sample[]>();
  const cluster = newCluster(FOUR);
  cluster.onSend = (from, to, messages) => {
    for (const message of messages) {
      const kind = kindOf(message);
      const known = samples.get(kind) ?? [];
      if (known.length < SAMPLES_PER_KIND) samples.set(kind, [...known, { from, to, message }]);
    }
  };
  const jobId = jobOf(cluster.ask(0, submit(KEYS[0])));
  const read = { kind: "read", jobId: jobId as JobId, level: "STRONG" } as const;
  for (const index of [0, 1, 2, 3]) cluster.ask(index, event(jobId, `e${index}`));
  for (const index of [0, 1, 2, 3]) cluster.ask(index, { ...read, minSeq: -1, staleMs: 0 });
  cluster.ask(0, { ...read, jobId: "use1-1-n9-00001" as JobId, minSeq: -1, staleMs: 0 });
  const members = membersOf(cluster, jobId);
  const away = cluster.nodes.find(({ id }) => id === members[1]);
  if (away === undefined) throw new Error("a group of three");
  away.cut = true;
  for (let i = 0; i < 12; i++) cluster.ask(indexOf(cluster, members[0]), event(jobId, `m${i}`));
  away.cut = false;
  cluster.run(8_000);
  const primary = cluster.nodes.find(
    ({ node }) => node?.groups.get(jobId as GroupId)?.replica.state.acting === true,
  );
  if (primary === undefined) throw new Error("a group has a primary");
  cluster.giveUp(primary);
  cluster.kill(primary);
  cluster.run(25_000);
  cluster.start(primary);
  cluster.run(40_000);
  const outside = cluster.nodes.find(({ id }) => !members.includes(id));
  const asked = cluster.nodes.findIndex(({ id }) => id !== members[0]);
  cluster.ask(asked, {
    ...{ kind: "replace", group: jobId as GroupId, eventId: "replace" },
    ...{ leaving: members[0] as NodeId, joining: outside?.id as NodeId },
  });
  cluster.run(40_000);
  const [from, to] = [members[0] as NodeId, members[1] as NodeId];
  const newer = { kind: "newerEpoch", epoch: 2, members } as const;
  const message = { kind: "vsr", group: jobId as GroupId, message: newer } as const;
  return samples.set("vsr/newerEpoch", [{ from, to, message }]);
}

/** Small messages and a short tail, so that every kind of message is needed. */
function newCluster(regions: readonly string[]): TestCluster {
  const vsr = { ...LEDGER_NODE_DEFAULTS.vsr, batchEntries: 2, tailEntries: 1 };
  const cluster = new TestCluster(regions, { compactEntries: 4, vsr }, KEYS.map(shardOf));
  cluster.run(1_000);
  return cluster;
}

function membersOf(cluster: TestCluster, jobId: string): readonly NodeId[] {
  for (const { node } of cluster.nodes) {
    const group = node?.groups.get(jobId as GroupId);
    if (group !== undefined) return group.replica.state.members;
  }
  throw new Error("nobody has the job");
}

function indexOf(cluster: TestCluster, id: NodeId | undefined): number {
  return cluster.nodes.findIndex((node) => node.id === id);
}

/** Paths of the numbers in a message; of a list only its first item, the others are alike. */
function numbersIn(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value === "number") return [path];
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return [];
  const parts = Object.entries(value).slice(0, Array.isArray(value) ? 1 : undefined);
  return parts.flatMap(([name, part]) => numbersIn(part, [...path, name]));
}

function withNumber(value: unknown, path: readonly string[], number: number): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return number;
  const part = withNumber((value as Record<string, unknown>)[name], rest, number);
  if (Array.isArray(value)) return value.with(Number(name), part);
  return { ...(value as object), [name]: part };
}

/** As it would come over a link; null when it cannot be written, or is refused by the decoder. */
function overTheWire(message: NodeMessage): NodeMessage | null {
  const bytes = encoded(message);
  const decoded = bytes === null ? null : decodeBatch(bytes);
  return decoded?.ok === true ? (decoded.messages[0] ?? null) : null;
}

function encoded(message: NodeMessage): Uint8Array | null {
  try {
    return encodeBatch(new ByteWriter(256), [message]);
  } catch {
    return null;
  }
}

const SAMPLES = recordSamples();

describe("a message with a number at its extreme", { timeout: 120_000 }, () => {
  it("is tried for every kind of message between nodes", () => {
    const wanted = [
      ...["prepare", "prepareResponse", "commit", "viewChange", "viewChangeResponse", "newView"],
      ...["fetchLog", "logSuffix", "found", "unknownGroup", "newerEpoch", "resign"],
    ].map((kind) => `vsr/${kind}`);
    const missing = wanted.filter((kind) => !SAMPLES.has(kind));
    expect(missing).toEqual([]);
  });

  it("is refused with an alarm that names it, when it is a view (VSR-12)", () => {
    const cluster = newCluster(THREE);
    const jobId = jobOf(cluster.ask(0, submit())) as GroupId;
    for (const [index, view] of [2 ** 47, 2 ** 47 + 1, 2 ** 47 + 2].entries()) {
      const message = { kind: "viewChange", epoch: 1, view, probe: false } as const;
      cluster.deliver(0, { kind: "vsr", group: jobId, message }, 1 + (index % 2));
    }
    expect(cluster.alarms.join()).toContain("VIEW_JUMP");
    cluster.run(30_000);
    for (const { node } of cluster.nodes) {
      expect(node?.groups.get(jobId)?.replica.state.knownView).toBeLessThan(100);
    }
  });

  it.each([
    ["of a later place", { appliedSeq: 2 ** 40 }],
    ["of another job", { jobId: "use1-1-n9-00001" as JobId }],
    ["that is none", null],
  ])("is refused with an alarm when it is a snapshot %s", (_, wrong) => {
    const cluster = newCluster(THREE);
    const jobId = jobOf(cluster.ask(0, submit())) as GroupId;
    cluster.ask(0, event(jobId, "a"));
    const primary = cluster.nodes.findIndex(
      ({ node }) => node?.groups.get(jobId)?.replica.state.acting === true,
    );
    const { app, replica } = cluster.at(primary).node?.groups.get(jobId) ?? {};
    if (app?.kind !== "job" || replica === undefined) throw new Error("a job has a primary");
    const { epoch, members, knownView: view, commit } = replica.state;
    const state = { ...app.state, appliedSeq: commit + 3, ...wrong };
    const bytes = wrong === null ? Uint8Array.of(9) : encodeJobState(state);
    const snapshot = { seq: commit + 3, bytes };
    const log = { snapshot, entries: [], lastSeq: commit + 3, commit: commit + 3 };
    const from = { epoch, members, view, lastNormalView: view };
    const message = { kind: "logSuffix", ...from, ...log } as const;
    const follower = (primary + 1) % 3;
    cluster.deliver(follower, { kind: "vsr", group: jobId, message }, primary);
    expect(cluster.alarms.join()).toContain("SNAPSHOT_UNREADABLE");
    // The follower has to serve what it has, and to lead the next.
    cluster.kill(cluster.at(primary));
    cluster.run(25_000);
    for (const id of ["b", "c", "d", "e"]) {
      expect(cluster.ask(follower, event(jobId, id), 40_000).kind).toBe("committed");
    }
  });

  it.each([...SAMPLES.keys()])("ends no node and spoils no disk: %s", (kind) => {
    for (const { from, to, message } of SAMPLES.get(kind) ?? []) {
      for (const path of numbersIn(message)) {
        const cluster = newCluster(FOUR);
        const jobId = jobOf(cluster.ask(0, submit(KEYS[0])));
        for (const extreme of EXTREMES) {
          const poisoned = overTheWire(withNumber(message, path, extreme) as NodeMessage);
          if (poisoned === null) continue;
          const group = { ...poisoned, ...(poisoned.kind === "vsr" ? { group: jobId } : {}) };
          for (const one of [poisoned, group as NodeMessage]) {
            for (const sender of [from, ...cluster.nodes.map(({ id }) => id)]) {
              const at = indexOf(cluster, to);
              if (sender !== to) cluster.deliver(at, one, indexOf(cluster, sender));
            }
          }
        }
        cluster.run(16_000);
        for (const node of cluster.nodes) {
          cluster.checkpoint(node);
          cluster.kill(node);
        }
        for (const node of cluster.nodes) cluster.start(node);
        cluster.run(16_000);
        const next = jobOf(cluster.ask(0, submit(KEYS[1]), 30_000));
        expect(cluster.ask(1, event(next, "x"), 30_000).kind).toBe("committed");
      }
    }
  });
});
