/**
 * Normal operation: a primary spreads entries and counts acks, replicas log and ack, commit numbers
 * travel with everything. (VSR-7..VSR-11, VSR-16..VSR-18)
 */

import type { NodeId } from "../base/ids.ts";
import type { VsrContext } from "./context.ts";
import { entryBytes } from "./context.ts";
import type { Operation, VsrEffect } from "./face.ts";
import type { EntryKind, LogEntry, PrepareStatus, VsrMessage } from "./messages.ts";
import { confirmReads, failReads, startReadRound } from "./reads.ts";

/** The same gap is filled again after this at the earliest. */
const RESEND_PAUSE_MS = 20;
/** A replica notes on disk how far the log is committed, after this many entries or a lease renewal. */
const MARK_EVERY_ENTRIES = 64;
const NO_BYTES = new Uint8Array(0);
const NOBODY: readonly NodeId[] = [];

type Message<Kind extends VsrMessage["kind"]> = Extract<VsrMessage, { kind: Kind }>;

export function propose(ctx: VsrContext, operations: readonly Operation[]): void {
  for (const operation of operations) {
    const reason = refusal(ctx);
    if (reason === null) {
      const seq = appendAsPrimary(ctx, "op", operation, NOBODY);
      ctx.emit({ kind: "accepted", eventId: operation.eventId, seq });
    } else {
      const { primary } = ctx.state;
      ctx.emit({ kind: "refused", eventId: operation.eventId, reason, primary });
    }
  }
}

type Refusal = Extract<VsrEffect, { kind: "refused" }>["reason"];

function refusal(ctx: VsrContext): Refusal | null {
  const { state, config } = ctx;
  if (state.status === "retired") return "retired";
  if (!state.acting) return "notPrimary";
  if (ctx.rules.reconfigureIsLast && state.reconfigureSeq >= 0) return "reconfiguring";
  const inFlight = ctx.lastSeq - state.commit;
  if (inFlight >= config.windowEntries || state.inFlightBytes >= config.windowBytes) {
    return "windowFull";
  }
  return null;
}

export function appendAsPrimary(
  ctx: VsrContext,
  kind: EntryKind,
  operation: Operation,
  members: readonly NodeId[],
): number {
  const { state } = ctx;
  const { eventId, wall, logical, data } = operation;
  const seq = ctx.lastSeq + 1;
  const { epoch, knownView: view } = state;
  const entry = { seq, epoch, view, kind, eventId, wall, logical, data, members };
  ctx.append(entry, ctx.rules.primaryLogs);
  state.inFlightBytes += entryBytes(entry);
  return seq;
}

/** Written by a new primary, so that what it took over commits without waiting for a client. (VSR-24) */
export function appendNoop(ctx: VsrContext): void {
  const eventId = `noop/${ctx.state.knownView}`;
  const last = ctx.state.entries.at(-1);
  const { wall, logical } = last ?? { wall: 0, logical: 0 };
  appendAsPrimary(ctx, "noop", { eventId, wall, logical, data: NO_BYTES }, NOBODY);
}

/** One member in, one member out, or a replacement; commits in the old epoch. (VSR-27) */
export function proposeReconfiguration(
  ctx: VsrContext,
  eventId: string,
  members: readonly NodeId[],
): void {
  const reason = refusal(ctx);
  if (reason !== null) {
    ctx.emit({ kind: "refused", eventId, reason, primary: ctx.state.primary });
    return;
  }
  const last = ctx.state.entries.at(-1);
  const { wall, logical } = last ?? { wall: 0, logical: 0 };
  const operation = { eventId, wall, logical, data: NO_BYTES };
  const seq = appendAsPrimary(ctx, "reconfigure", operation, members);
  ctx.emit({ kind: "accepted", eventId, seq });
}

/** At the end of a step: everything appended in it goes out together. */
export function flush(ctx: VsrContext): void {
  const { state, config } = ctx;
  if (!state.acting) return;
  if (state.flushed < ctx.lastSeq) {
    for (let from = state.flushed + 1; from <= ctx.lastSeq; ) {
      const entries = ctx.page(from);
      for (const to of ctx.others()) sendPrepare(ctx, to, entries);
      from += entries.length;
    }
    state.flushed = ctx.lastSeq;
    state.heartbeatAt = Math.min(state.heartbeatAt, ctx.now + config.retransmitMs);
    state.noticeAt = Number.POSITIVE_INFINITY;
    advanceCommit(ctx);
  }
  startReadRound(ctx);
}

function sendPrepare(ctx: VsrContext, to: NodeId, entries: readonly LogEntry[]): void {
  const { epoch, knownView: view, commit } = ctx.state;
  ctx.send(to, { kind: "prepare", epoch, view, entries, commit, sentAt: ctx.now });
}

export function sendCommit(ctx: VsrContext): void {
  const { state, config } = ctx;
  const { epoch, knownView: view, commit, round } = state;
  const last = ctx.lastSeq;
  for (const to of ctx.others()) {
    ctx.send(to, { kind: "commit", epoch, view, commit, last, sentAt: ctx.now, round });
  }
  const waiting = commit < last || state.reads.length > 0;
  const everyMs = waiting ? config.retransmitMs : config.renewMs;
  state.heartbeatAt = ctx.now + everyMs;
  state.noticeAt = Number.POSITIVE_INFINITY;
}

/** Replica: entries of the view we live in. */
export function onPrepare(ctx: VsrContext, from: NodeId, message: Message<"prepare">): void {
  const { state } = ctx;
  hearPrimary(ctx, message.sentAt, state.echoRound);
  let gap = false;
  let grew = false;
  for (const entry of message.entries) {
    if (entry.seq <= ctx.lastSeq) continue;
    if (entry.seq > ctx.lastSeq + 1) {
      gap = true;
      break;
    }
    ctx.append(entry, true);
    grew = true;
  }
  commitUpTo(ctx, message.commit, NOBODY);
  if (gap) answerPrimary(ctx, from, "wrongSequence");
  else if (!grew || state.durable >= state.appended || !ctx.rules.ackAfterDurable) {
    answerPrimary(ctx, from, "success");
  }
}

export function onCommit(ctx: VsrContext, from: NodeId, message: Message<"commit">): void {
  hearPrimary(ctx, message.sentAt, message.round);
  commitUpTo(ctx, message.commit, NOBODY);
  answerPrimary(ctx, from, message.last > ctx.lastSeq ? "wrongSequence" : "success");
}

/** The primary of our view lives: we promise it another lease and wait with elections. (VSR-20) */
export function hearPrimary(ctx: VsrContext, sentAt: number, round: number): void {
  const { state, config } = ctx;
  state.echoSentAt = Math.max(state.echoSentAt, sentAt);
  state.echoRound = Math.max(state.echoRound, round);
  state.promisedUntil = Math.max(state.promisedUntil, ctx.now + config.leaseMs);
  const patience = Math.max(config.leaseMs, 2 * config.renewMs);
  state.electAt = ctx.now + patience + rank(ctx) * config.rankDelayMs;
  if (state.candidacy?.probing === true) state.candidacy = null;
}

/** 0 for the backup that comes next after the present primary. (VSR-19) */
export function rank(ctx: VsrContext): number {
  const { members, primary } = ctx.state;
  const count = members.length;
  const own = members.indexOf(ctx.self);
  const leading = primary === null ? 0 : Math.max(0, members.indexOf(primary));
  return (own - leading - 1 + 2 * count) % count;
}

export function answerPrimary(ctx: VsrContext, to: NodeId, status: PrepareStatus): void {
  const { state } = ctx;
  ctx.send(to, {
    kind: "prepareResponse",
    epoch: state.epoch,
    status,
    view: state.knownView,
    expected: ctx.lastSeq + 1,
    acked: ctx.acked,
    sentAt: state.echoSentAt,
    round: state.echoRound,
  });
}

/** Primary: what a replica holds, or lacks. */
export function onPrepareResponse(
  ctx: VsrContext,
  from: NodeId,
  message: Message<"prepareResponse">,
): void {
  const { state } = ctx;
  if (message.view > state.knownView) {
    state.seenView = Math.max(state.seenView, message.view);
    if (state.acting) stepDown(ctx, "a replica has a higher view");
    return;
  }
  if (!state.acting || !state.members.includes(from)) return;
  if (ctx.rules.ackOfThisView && message.view !== state.knownView) return;
  if (message.status === "staleView" || message.status === "notOwner") return;
  const peer = ctx.peer(from);
  peer.acked = Math.max(peer.acked, message.acked);
  if (message.sentAt >= 0) peer.sentAt = Math.max(peer.sentAt, message.sentAt);
  peer.round = Math.max(peer.round, message.round);
  advanceCommit(ctx);
  // A commit may have ended this view.
  if (!state.acting) return;
  confirmReads(ctx);
  const behind = message.status === "wrongSequence";
  const catchingUp = peer.resentTo >= 0 && message.expected > peer.resentTo;
  if (message.expected > state.flushed) peer.resentTo = -1;
  else if (behind || catchingUp) fillGap(ctx, from, message.expected);
}

function fillGap(ctx: VsrContext, to: NodeId, from: number): void {
  const { state } = ctx;
  const peer = ctx.peer(to);
  const repeated = from <= peer.resentTo && ctx.now - peer.resentAt < RESEND_PAUSE_MS;
  if (repeated) return;
  if (from < state.firstSeq) {
    // What it lacks is compacted: it gets the snapshot and installs this view's log anew.
    peer.resentTo = from;
    peer.resentAt = ctx.now;
    sendLogSuffix(ctx, to, from);
    return;
  }
  const entries = ctx.page(from);
  peer.resentTo = entries.at(-1)?.seq ?? -1;
  peer.resentAt = ctx.now;
  if (entries.length > 0) sendPrepare(ctx, to, entries);
}

/** Part of our log from `from` on, with the snapshot when the log does not reach back that far. */
export function sendLogSuffix(ctx: VsrContext, to: NodeId, from: number): void {
  const { state } = ctx;
  const snapshot = from < state.firstSeq ? state.snapshot : null;
  const entries = ctx.page(snapshot === null ? from : snapshot.seq + 1);
  const { epoch, members, knownView: view, lastNormalView, commit } = state;
  const lastSeq = ctx.lastSeq;
  const log = { snapshot, entries, lastSeq, commit };
  // An adopting candidate rests on it, so it must not be lost here.
  ctx.sendDurably(to, { kind: "logSuffix", epoch, members, view, lastNormalView, ...log });
}

/** The longest prefix that a quorum has. It never shrinks. (VSR-10) */
export function advanceCommit(ctx: VsrContext): void {
  const { state } = ctx;
  if (!state.acting) return;
  const reached = Math.min(ctx.quorumAcked(), ctx.lastSeq);
  if (reached <= state.commit) return;
  const copies = state.members.filter((member) =>
    member === ctx.self ? ctx.acked >= reached : ctx.peer(member).acked >= reached,
  );
  commitUpTo(ctx, reached, copies);
  if (!state.acting) return;
  state.noticeAt = Math.min(state.noticeAt, ctx.now + ctx.config.commitNoticeMs);
  confirmReads(ctx);
}

export function commitUpTo(ctx: VsrContext, target: number, copies: readonly NodeId[]): void {
  const { state } = ctx;
  const end = Math.min(target, ctx.lastSeq);
  if (!ctx.rules.applyInOrder && end >= 0 && end <= state.commit) {
    const again = ctx.entryAt(end);
    if (again !== undefined) ctx.emit({ kind: "committed", entry: again, copies });
  }
  while (state.commit < end) {
    const entry = ctx.entryAt(state.commit + 1);
    if (entry === undefined) return;
    state.commit++;
    if (state.acting) state.inFlightBytes = Math.max(0, state.inFlightBytes - entryBytes(entry));
    ctx.emit({ kind: "committed", entry, copies });
    if (entry.kind === "reconfigure" && entry.epoch === state.epoch) {
      enterEpoch(ctx, entry);
      return;
    }
  }
  markCommit(ctx);
}

/** A lower bound of the commit number on disk, so that a restart knows most of its state at once. */
function markCommit(ctx: VsrContext): void {
  const { state, config } = ctx;
  const fresh = state.commit - state.marked;
  if (fresh <= 0) return;
  if (fresh < MARK_EVERY_ENTRIES && ctx.now - state.markedAt < config.renewMs) return;
  state.marked = state.commit;
  state.markedAt = ctx.now;
  ctx.persist({ kind: "commitMark", seq: state.commit });
}

/** The reconfiguration is committed: the old replicas have done their last operation. (VSR-27) */
function enterEpoch(ctx: VsrContext, entry: LogEntry): void {
  const { state } = ctx;
  if (state.acting) {
    // The others learn it from this message only; the epoch they would answer in is over.
    sendCommit(ctx);
    stepDown(ctx, "the group has other replicas now");
  }
  const wasPrimary = state.primary === ctx.self;
  state.epoch++;
  state.members = entry.members;
  state.reconfigureSeq = -1;
  state.candidacy = null;
  state.transfer = null;
  state.takeOverAt = 0;
  state.peers = new Map();
  state.marked = state.commit;
  ctx.persist({ kind: "commitMark", seq: state.commit });
  ctx.persist({
    kind: "epoch",
    epoch: state.epoch,
    members: state.members,
    learner: false,
  });
  ctx.emit({ kind: "epochChanged", epoch: state.epoch, members: state.members });
  if (!state.members.includes(ctx.self)) {
    retire(ctx);
    return;
  }
  state.status = "viewChange";
  state.primary = null;
  // Nobody leads the old epoch any more, so no promise binds.
  state.promisedUntil = ctx.now;
  state.seenView = Math.max(state.seenView, state.knownView);
  const place = wasPrimary ? 0 : 1 + state.members.indexOf(ctx.self);
  state.electAt = ctx.now + place * ctx.config.rankDelayMs;
}

export function retire(ctx: VsrContext): void {
  const { state } = ctx;
  if (state.acting) stepDown(ctx, "no replica of this group any more");
  state.status = "retired";
  state.primary = null;
  state.candidacy = null;
  state.transfer = null;
  state.takeOverAt = 0;
  state.electAt = Number.POSITIVE_INFINITY;
  ctx.emit({ kind: "retired", epoch: state.epoch });
}

/** A primary that may not be one any more stops at once. (VSR-16) */
export function stepDown(ctx: VsrContext, why: string): void {
  const { state, config } = ctx;
  state.acting = false;
  state.status = "viewChange";
  state.primary = null;
  state.inFlightBytes = 0;
  state.heartbeatAt = Number.POSITIVE_INFINITY;
  state.noticeAt = Number.POSITIVE_INFINITY;
  // It knows best where the log is, but others may be ahead of it already.
  state.electAt = ctx.now + config.rankDelayMs * state.members.length;
  failReads(ctx);
  ctx.emit({ kind: "steppedDown", view: state.knownView, why });
}
