/**
 * Invariants over all nodes together, checked by an omniscient observer:
 *
 *   I1  one value per (group, index), ever            I4  applied sequences are prefixes of one
 *   I2  a later primary has all committed entries     I5  a process's commit number never falls
 *   I3  one primary per (group, epoch, view)          V3  committed entries are durable at a quorum
 *   I7  fence tokens along a log never fall           X1  each event changes its job once
 *   C1  an event with a condition changes its job only if the condition is true at its index
 *   E1  nothing follows a reconfiguration in its epoch
 *   R1  an archived state is the end of a job, as its log yields it
 *
 * The reference state of a job is folded here, from the first commit of each index, with the production fold.
 */

import { assert } from "../../src/core/base/assert.ts";
import type { NodeId } from "../../src/core/base/ids.ts";
import type { PeersWatcher } from "../../src/core/cluster/node/ledger-peers.ts";
import type { ProcessEffect } from "../../src/core/cluster/node/types.ts";
import type { GroupId, LogEntry } from "../../src/core/ledger/group/messages.ts";
import { decodeEvent } from "../../src/core/ledger/job/event-codec.ts";
import { advanceSeq, applyEvent } from "../../src/core/ledger/job/fold.ts";
import { type JobId, parseJobId } from "../../src/core/ledger/job/job-id.ts";
import { initialState, isTerminal, type JobState } from "../../src/core/ledger/job/job-state.ts";
import { decodeJobState } from "../../src/core/ledger/job/state-codec.ts";
import type { NodeMessage } from "../../src/core/ledger/node/messages.ts";
import { shardIndex } from "../../src/core/ledger/node/topology.ts";
import type { Streams } from "../kernel/streams.ts";
import type { Violations } from "../membership/checkers/violations.ts";
import { LinkChecks } from "./link-checks.ts";
import type { LedgerProcess, LedgerWatcher } from "./node.ts";
import { NodeObserver } from "./observer.ts";
import type { Opened } from "./storage.ts";

interface GroupTruth {
  readonly id: GroupId;
  readonly isShard: boolean;
  readonly isJob: boolean;
  /** By place; a shard's places without an operation stay empty. */
  readonly entries: LogEntry[];
  /** The view somebody was in who knew it committed. */
  readonly commitViews: number[];
  /** After each place; for jobs. */
  readonly states: JobState[];
  /** Outcome of each event when it was first applied. */
  readonly outcomes: Map<string, { readonly seq: number; readonly outcome: string }>;
  readonly members: Map<number, readonly NodeId[]>;
  readonly primaries: Map<string, string>;
}

export class LedgerCheckers implements LedgerWatcher {
  readonly #violations: Violations;
  readonly truths = new Map<GroupId, GroupTruth>();
  readonly observers = new Map<NodeId, NodeObserver>();
  readonly marks = new Set<string>();
  /** Last index applied of each group, per process and incarnation. */
  readonly #applied = new Map<NodeId, Map<GroupId, number>>();
  readonly #commits = new Map<NodeId, Map<GroupId, number>>();
  readonly #touched = new Set<GroupId>();
  /** Fence tokens as a manager receives them. */
  onLead: (process: LedgerProcess, group: GroupId, view: number) => void = () => undefined;

  /** A job's log has its creation. */
  onCreated: (jobId: string, spec: Uint8Array) => void = () => undefined;

  readonly links: LinkChecks;

  constructor(violations: Violations, streams: Streams) {
    this.#violations = violations;
    this.links = new LinkChecks(violations, streams);
  }

  observer(process: LedgerProcess): NodeObserver {
    const known = this.observers.get(process.id);
    if (known !== undefined) return known;
    const observer = new NodeObserver(process.id, this.#violations);
    this.observers.set(process.id, observer);
    return observer;
  }

  mark(name: string): void {
    this.marks.add(name);
  }

  onRecovered(process: LedgerProcess, opened: Opened): void {
    if (opened.outcome.tornTail !== null) this.marks.add("wal.tornTail");
    if (opened.checkpoint !== null) this.marks.add("wal.checkpoint");
    if (opened.damaged > 0) this.marks.add("checkpoint.passedOver");
    if (opened.outcome.firstLsn > 1) this.marks.add("wal.compacted");
    this.observer(process).recovered(opened, process.disk.names());
    this.links.onStarted(process);
    this.#applied.set(process.id, new Map());
    this.#commits.set(process.id, new Map());
  }

  onRefused(process: LedgerProcess, why: string): void {
    this.marks.add("wal.refused");
    this.observer(process).refused(why);
  }

  peersWatcher(process: LedgerProcess): PeersWatcher {
    const { links } = this;
    return {
      onSend: (to, messages, batches) => {
        links.onSend(process, to, batches);
        this.#onSend(process, to, messages);
      },
      onSent: (stream, message) => links.onSent(process, stream, message),
      onTaken: (stream, batch) => links.onTaken(process, stream, batch),
    };
  }

  #onSend(process: LedgerProcess, to: NodeId, messages: readonly NodeMessage[]): void {
    for (const message of messages) {
      if (message.kind !== "vsr") continue;
      this.observer(process).onSend(to, message.group, message.message);
      if (message.message.kind === "commit" && message.message.sleeps) {
        this.marks.add("vsr.sleeps");
      }
      if (message.message.kind === "logSuffix" && message.message.snapshot !== null) {
        this.marks.add("vsr.snapshotSent");
      }
    }
  }

  onEffect(process: LedgerProcess, effect: ProcessEffect): void {
    switch (effect.kind) {
      case "applied":
        this.#onApplied(process, effect.group, effect.entry, effect.outcome);
        if (effect.outcome === "applied") this.#checkCondition(process, effect.group, effect.entry);
        return;
      case "leads":
        if (effect.leads) this.#onLeads(process, effect.group, effect.view);
        return;
      case "alarm":
        this.#onAlarm(process, effect.group, effect.why);
        return;
      case "archive":
        this.marks.add("ledger.archived");
        this.#onArchive(process, effect.jobId as GroupId, effect.bytes);
        return;
      default:
    }
  }

  /** R1: what leaves memory for good is a job's end, as its log gives it. */
  #onArchive(process: LedgerProcess, jobId: GroupId, bytes: Uint8Array): void {
    const decoded = decodeJobState(bytes);
    const state = decoded.ok ? decoded.value : null;
    const isEnd = state !== null && (state.jobId as string) === jobId && isTerminal(state.status);
    this.#violations.check(isEnd, "R1", () => `${process.id} archives ${jobId} without its end`);
    if (state !== null) this.checkState(jobId, state, () => `R1: ${process.id} archives`);
  }

  #onAlarm(process: LedgerProcess, group: GroupId, why: string): void {
    if (why.includes("has no group after")) this.marks.add("shard.overdue");
    else if (why.startsWith("IDENTITY_CHANGED")) this.marks.add("node.identityRefused");
    // Faults set clocks, and nodes report it.
    else if (why.startsWith("CLOCK_SKEW")) this.marks.add("clock.apart");
    else this.#violations.report("I1", `${process.id} on ${group}: ${why}`);
  }

  truth(group: GroupId): GroupTruth {
    const known = this.truths.get(group);
    if (known !== undefined) return known;
    const truth: GroupTruth = {
      id: group,
      isShard: shardIndex(group) !== null,
      isJob: parseJobId(group) !== null,
      ...{ entries: [], commitViews: [], states: [] },
      ...{ outcomes: new Map(), members: new Map(), primaries: new Map() },
    };
    this.truths.set(group, truth);
    return truth;
  }

  #onApplied(process: LedgerProcess, group: GroupId, entry: LogEntry, outcome: string): void {
    const { seq } = entry;
    const truth = this.truth(group);
    const replica = process.node?.groups.get(group)?.replica.state;
    if (replica !== undefined) truth.members.set(replica.epoch, replica.members);
    const applied = this.#applied.get(process.id);
    const before = applied?.get(group) ?? -1;
    this.#violations.check(seq > before, "I4", () => {
      return `${process.id} applies ${seq} of ${group} after ${before}`;
    });
    applied?.set(group, seq);
    const known = truth.entries[seq];
    if (known !== undefined) {
      this.#violations.check(isSameEntry(known, entry), "I1", () => {
        const there = `${entry.eventId} (view ${entry.view})`;
        const here = `${known.eventId} (view ${known.view})`;
        return `${seq} of ${group} is ${here} and, at ${process.id}, ${there}`;
      });
    } else {
      this.#onFirstCommit(process, truth, entry);
      const { outcomes, isJob, isShard } = truth;
      if (!isJob && !isShard && !outcomes.has(entry.eventId)) {
        outcomes.set(entry.eventId, { seq, outcome });
      }
    }
    if (truth.isJob) this.#touched.add(group);
  }

  #onFirstCommit(process: LedgerProcess, truth: GroupTruth, entry: LogEntry): void {
    const { seq } = entry;
    const replica = process.node?.groups.get(truth.id)?.replica.state;
    if (!truth.isShard && seq !== truth.entries.length) {
      const at = truth.entries.length;
      this.#violations.report(
        "I4",
        `${process.id} commits ${seq} of ${truth.id}, ${at} comes first`,
      );
      return;
    }
    const before = truth.entries.at(-1);
    this.#violations.check(before === undefined || before.view <= entry.view, "I7", () => {
      return `${truth.id}: view ${entry.view} at ${seq} follows view ${before?.view}`;
    });
    const isOver = before?.kind === "reconfigure" && entry.epoch <= before.epoch;
    this.#violations.check(!isOver, "E1", () => {
      return `${truth.id}: ${seq} (${entry.eventId}) follows the end of epoch ${before?.epoch} in it`;
    });
    truth.entries[seq] = entry;
    truth.commitViews[seq] = replica?.lastNormalView ?? entry.view;
    this.#checkDurable(truth, entry, replica?.epoch ?? entry.epoch);
    if (truth.isJob) this.#fold(truth, entry);
  }

  /**
   * V3: at a quorum of the epoch it was written in, or of the one it was taken over to. Which of the two
   * it was cannot be seen from here: a step may commit an entry and the end of its epoch together.
   */
  #checkDurable(truth: GroupTruth, entry: LogEntry, epoch: number): void {
    const sets = [truth.members.get(entry.epoch), truth.members.get(epoch)];
    const known = sets.filter((members) => members !== undefined);
    const holds = (id: NodeId): boolean => this.observers.get(id)?.holds(truth.id, entry) === true;
    const isHeld = known.some((members) => {
      return members.filter(holds).length >= Math.floor(members.length / 2) + 1;
    });
    this.#violations.check(isHeld || known.length === 0, "V3", () => {
      const who = [...this.observers.keys()].filter(holds).join(", ");
      return `${truth.id}: ${entry.seq} (${entry.eventId}) is committed and durable at [${who}] only`;
    });
  }

  #fold(truth: GroupTruth, entry: LogEntry): void {
    const { seq } = entry;
    const before = truth.states.at(-1) ?? initialState(truth.id as string as JobId);
    const decoded = entry.kind === "op" ? decodeEvent(entry.data) : null;
    if (decoded === null || !decoded.ok) {
      truth.states.push(advanceSeq(before, seq));
      return;
    }
    const event = decoded.value;
    const { state, outcome } = applyEvent(before, event, seq);
    truth.states.push(state);
    this.#violations.check(event.fenceToken <= entry.view, "I7", () => {
      return `${truth.id}: the event at ${seq} carries token ${event.fenceToken} in view ${entry.view}`;
    });
    if (event.kind === "JobCreated" && outcome.kind === "applied") {
      this.onCreated(event.jobId, event.spec);
    }
    const first = truth.outcomes.get(event.eventId);
    if (first === undefined) truth.outcomes.set(event.eventId, { seq, outcome: outcome.kind });
    else {
      this.marks.add("job.eventTwice");
      const isKnown = outcome.kind === "duplicate" || outcome.kind === "repeated";
      this.#violations.check(isKnown || outcome.kind === "noop", "X1", () => {
        return `${truth.id}: event ${event.eventId} acts at ${first.seq} and again at ${seq}`;
      });
    }
  }

  /** C1, from the log alone: what its place and its view are, and what was applied before it. */
  #checkCondition(process: LedgerProcess, group: GroupId, { seq, view, data }: LogEntry): void {
    const decoded = decodeEvent(data);
    const condition = decoded.ok ? decoded.value.condition : undefined;
    if (condition === undefined) return;
    const { ifSeq, ifFence } = condition;
    const owned = ifFence === null || ifFence === view;
    const changes = [...this.truth(group).outcomes.values()].filter(
      (one) => one.outcome === "applied" && one.seq > (ifSeq ?? seq) && one.seq < seq,
    );
    this.marks.add("job.conditionHeld");
    this.#violations.check(owned && changes.length === 0, "C1", () => {
      const needs = `fence ${ifFence ?? "any"}, place ${ifSeq ?? "any"}`;
      return `${process.id} applies ${seq} of ${group} in view ${view}, which needs ${needs}`;
    });
  }

  #onLeads(process: LedgerProcess, group: GroupId, view: number): void {
    const truth = this.truth(group);
    const replica = process.node?.groups.get(group)?.replica.state;
    if (replica === undefined) return;
    truth.members.set(replica.epoch, replica.members);
    const key = `${replica.epoch}/${view}`;
    const who = `${process.id}/${process.life}`;
    const other = truth.primaries.get(key);
    this.#violations.check(other === undefined, "I3", () => {
      return `${other} and ${who} lead ${group} in epoch ${replica.epoch}, view ${view}`;
    });
    truth.primaries.set(key, who);
    if (view > 1) this.marks.add("vsr.viewChange");
    if (replica.epoch > 1) this.marks.add("vsr.reconfigured");
    for (const entry of truth.entries) {
      if (entry === undefined || (truth.commitViews[entry.seq] ?? 0) > view) continue;
      if (replica.snapshot !== null && replica.snapshot.seq >= entry.seq) continue;
      const own = replica.entries[entry.seq - replica.firstSeq];
      this.#violations.check(own !== undefined && isSameEntry(own, entry), "I2", () => {
        return `${who} leads ${group} in view ${view} without ${entry.eventId} at ${entry.seq}`;
      });
    }
    this.onLead(process, group, view);
  }

  onTurn(process: LedgerProcess): void {
    for (const group of this.#touched) this.#checkState(process, group);
    this.#touched.clear();
  }

  /** I4: the state of a replica is the truth after as many places. */
  #checkState(process: LedgerProcess, group: GroupId): void {
    const app = process.node?.groups.get(group)?.app;
    if (app?.kind !== "job" || app.appliedSeq < 0) return;
    this.checkState(group, app.state, () => `${process.id} holds`);
  }

  checkState(group: GroupId, state: JobState, who: () => string): void {
    const truth = this.truth(group).states[state.appliedSeq];
    const same =
      truth !== undefined && truth.status === state.status && sameBytes(truth.chain, state.chain);
    this.#violations.check(same, "I4", () => {
      return `${who()} a state of ${group} at ${state.appliedSeq} that its log does not give`;
    });
  }

  /** I5, now and then. */
  sample(process: LedgerProcess): void {
    this.links.sample(process);
    const { node } = process;
    const commits = this.#commits.get(process.id);
    if (node === null || commits === undefined) return;
    for (const [id, group] of node.groups) {
      const { commit } = group.replica.state;
      const before = commits.get(id) ?? -1;
      this.#violations.check(commit >= before, "I5", () => {
        return `${process.id}: the commit number of ${id} falls from ${before} to ${commit}`;
      });
      commits.set(id, commit);
    }
  }
}

function isSameEntry(a: LogEntry, b: LogEntry): boolean {
  assert(a.seq === b.seq, "entries of one place are compared");
  return (
    a.eventId === b.eventId && a.view === b.view && a.kind === b.kind && sameBytes(a.data, b.data)
  );
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
