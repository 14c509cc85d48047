/**
 * Waiters for the commit of events. An answer names the level really reached: it is sent when that is the requested
 * level, when the group cannot reach that level at all, or when the deadline passes. (DUR-2, PIPE-2..5, PIPE-7)
 */

import { Deadlines } from "../../base/deadlines.ts";
import type { Hlc } from "../../base/hlc.ts";
import type { NodeId } from "../../base/ids.ts";
import type { LogEntry } from "../group/messages.ts";
import type { ConditionFailure } from "../job/condition.ts";
import { atLeast, type Durability, durabilityOfEvent } from "../job/durability.ts";
import { encodeEvent } from "../job/event-codec.ts";
import type { JobEvent } from "../job/events.ts";
import { RECORD_TYPES } from "../log/record-types.ts";
import type { Outcome } from "./application.ts";
import { GROUP_QUEUE_MAX } from "./config.ts";
import type { LedgerContext } from "./context.ts";
import { type CommitWaiter, type Group, holders } from "./group.ts";
import type { JobApp } from "./job-app.ts";
import type { LedgerAnswer, PeerRequest } from "./messages.ts";
import type { RegisteredApp } from "./registered-app.ts";
import type { Reply } from "./reply.ts";
import { boundFor, overdue, refused } from "./submission.ts";

type Appended = Extract<PeerRequest, { kind: "append" }>;
type Proposed = Extract<PeerRequest, { kind: "propose" }>;

interface Asked {
  readonly reply: Reply;
  /** To be sent on, should another node become primary. */
  readonly request: PeerRequest;
  readonly required: Durability;
  readonly deadline: number;
}

export class Commits {
  readonly #context: LedgerContext;
  readonly #answer: (reply: Reply, answer: LedgerAnswer) => void;
  readonly #deadlines = new Deadlines<CommitWaiter>();

  constructor(context: LedgerContext, answer: (reply: Reply, answer: LedgerAnswer) => void) {
    this.#context = context;
    this.#answer = answer;
  }

  get size(): number {
    return this.#deadlines.size;
  }

  nextDeadline(): number | null {
    return this.#deadlines.next();
  }

  /** Proposes an event once, however many ask for it. */
  append(group: Group, app: JobApp, event: JobEvent, asked: Asked): void {
    const { eventId } = event;
    const waiter = { group, eventId, ...asked, outcome: null };
    if (this.#settleKnown(waiter, app.outcomeOf(eventId))) return;
    const failure = app.failureOf(event.condition, group.replica.state.knownView);
    if (failure !== null && !group.waiters.has(eventId) && !isUnderWay(group, eventId)) {
      this.#answer(asked.reply, conflict(group, app, eventId, failure));
      return;
    }
    this.#propose(waiter, (hlc) =>
      encodeEvent({ ...event, fenceToken: group.replica.state.knownView, hlc }),
    );
  }

  /** The same for an operation of a registered kind. */
  propose(group: Group, app: RegisteredApp, operation: Proposed, asked: Asked): void {
    const { eventId, data } = operation;
    const waiter = { group, eventId, ...asked, outcome: null };
    if (!this.#settleKnown(waiter, app.outcomeOf(eventId))) this.#propose(waiter, () => data);
  }

  /** Settles the waiter if its event was folded in before; returns whether it did. */
  #settleKnown(waiter: CommitWaiter, known: Outcome | null): boolean {
    if (known === null || !waiter.group.replica.state.acting) return false;
    this.#settle(waiter, known);
    if (waiter.outcome !== null) this.#levelUp(waiter);
    return true;
  }

  #propose(waiter: CommitWaiter, encode: (hlc: Hlc) => Uint8Array): void {
    const { group, eventId, reply } = waiter;
    const proposed = group.waiters.has(eventId);
    const waiting = group.queue.length;
    if (!proposed && waiting >= boundFor(waiter.request, GROUP_QUEUE_MAX)) {
      this.#answer(reply, { kind: "retry", why: "the group has too many operations waiting" });
      return;
    }
    this.wait(waiter);
    if (proposed) return;
    const hlc = this.#context.hlc.tick(this.#context.wall);
    const { wallMs: wall, logical } = hlc;
    this.#context.propose(group, { eventId, wall, logical, data: encode(hlc) });
  }

  /** A data-plane event: kept in this node's own log, never replicated. (EVT-3) */
  keep(reply: Reply, { event, durability }: Appended): void {
    const { jobId, eventId } = event;
    const required = durabilityOfEvent(event.kind, durability);
    const what = { outcome: "kept", reason: null, seq: -1, duplicate: false, view: 0 };
    const levels = { level: "LOCAL", required } as const;
    const hlc = this.#context.hlc.tick(this.#context.wall);
    this.#context.append(RECORD_TYPES.JOB_PROGRESS_REPORTED, encodeEvent({ ...event, hlc }), () =>
      this.#answer(reply, { kind: "committed", jobId, eventId, ...levels, ...what }),
    );
  }

  wait(waiter: CommitWaiter): void {
    const { group, eventId } = waiter;
    const waiting = group.waiters.get(eventId);
    if (waiting === undefined) group.waiters.set(eventId, [waiter]);
    else waiting.push(waiter);
    this.#deadlines.set(waiter, waiter.deadline);
  }

  #levelUp(waiter: CommitWaiter): void {
    this.wait(waiter);
    waiter.group.levelling.add(waiter.eventId);
  }

  onCommitted(
    group: Group,
    entry: LogEntry,
    outcome: Outcome | null,
    copies: readonly NodeId[],
  ): void {
    const waiting = group.waiters.get(entry.eventId);
    if (waiting === undefined) return;
    const { seq, kind } = entry;
    const what = outcome ?? { kind, reason: null, seq, duplicate: false };
    for (const waiter of waiting) this.#settle(waiter, what, copies);
    const open = waiting.filter((waiter) => waiter.outcome !== null);
    if (open.length === 0) group.waiters.delete(entry.eventId);
    else {
      group.waiters.set(entry.eventId, open);
      group.levelling.add(entry.eventId);
    }
  }

  /** More replicas hold what was committed: some levels may be reached now. */
  onAcks(group: Group): void {
    for (const eventId of group.levelling) {
      const waiting = group.waiters.get(eventId) ?? [];
      for (const waiter of waiting) {
        if (waiter.outcome !== null) this.#settle(waiter, waiter.outcome);
      }
      const open = waiting.filter((waiter) => waiter.outcome !== null);
      if (open.length > 0) {
        group.waiters.set(eventId, open);
        continue;
      }
      group.levelling.delete(eventId);
      group.waiters.delete(eventId);
    }
  }

  /** Removes and returns all who wait for this event here. */
  release(group: Group, eventId: string): readonly CommitWaiter[] {
    const waiting = group.waiters.get(eventId) ?? [];
    group.waiters.delete(eventId);
    group.levelling.delete(eventId);
    for (const waiter of waiting) this.#deadlines.delete(waiter);
    return waiting;
  }

  releaseAll(group: Group): readonly CommitWaiter[] {
    return [...group.waiters.keys()].flatMap((eventId) => this.release(group, eventId));
  }

  onTick(now: number): void {
    for (const waiter of this.#deadlines.takeDue(now)) {
      const { group, eventId, reply, outcome } = waiter;
      const rest = (group.waiters.get(eventId) ?? []).filter((one) => one !== waiter);
      if (rest.length > 0) group.waiters.set(eventId, rest);
      else this.release(group, eventId);
      if (outcome === null) {
        this.#answer(reply, overdue(waiter.request, "no quorum has confirmed it in time"));
      } else this.#answer(reply, this.#committed(waiter, outcome, this.#level(group, outcome.seq)));
    }
  }

  #level(group: Group, seq: number): Durability {
    const { topology, self } = this.#context;
    return topology.level(holders(group, seq, self), group.replica.state.members.length);
  }

  /** Answers, unless a higher level is required and within this group's reach. */
  #settle(waiter: CommitWaiter, outcome: Outcome, copies?: readonly NodeId[]): void {
    const { group, required, reply } = waiter;
    const { topology } = this.#context;
    const { members } = group.replica.state;
    const known = copies === undefined || copies.length === 0 || outcome.duplicate;
    const level = known ? this.#level(group, outcome.seq) : topology.level(copies, members.length);
    const best = topology.level(members, members.length);
    if (!atLeast(level, required) && !atLeast(level, best)) {
      waiter.outcome = outcome;
      return;
    }
    waiter.outcome = null;
    this.#deadlines.delete(waiter);
    if (waiter.request.kind === "found" && reply.kind !== "client") {
      this.#answer(reply, { kind: "founded", seq: outcome.seq, level });
    } else this.#answer(reply, this.#committed(waiter, outcome, level));
  }

  #committed(waiter: CommitWaiter, outcome: Outcome, level: Durability): LedgerAnswer {
    const { group, eventId, required } = waiter;
    const { kind, reason, seq, duplicate } = outcome;
    if (group.app.kind === "job" && (reason === "SEQ_MOVED" || reason === "FENCE_MOVED")) {
      return conflict(group, group.app, eventId, reason);
    }
    if (kind === "repeated") {
      const text = `event ${eventId} was committed long ago: read the job to see what it came to`;
      return refused("EVENT_REPEATED", text);
    }
    const what = { outcome: kind, reason, seq, duplicate, level, required };
    const view = group.replica.state.knownView;
    return { kind: "committed", jobId: group.id, eventId, view, ...what };
  }
}

/** In our log and not folded in yet: the fold will judge it, at its place. */
function isUnderWay({ replica, app }: Group, eventId: string): boolean {
  const { entries, firstSeq } = replica.state;
  const open = entries.slice(Math.max(0, app.appliedSeq + 1 - firstSeq));
  return open.some((entry) => entry.eventId === eventId);
}

function conflict(
  { id, replica }: Group,
  { appliedSeq: seq }: JobApp,
  eventId: string,
  reason: ConditionFailure,
): LedgerAnswer {
  return { kind: "conflict", jobId: id, eventId, reason, seq, fence: replica.state.knownView };
}
