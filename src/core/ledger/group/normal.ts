/**
 * Normal operation: a primary spreads entries and counts acks, replicas log and ack, commit numbers
 * travel with everything. (VSR-7..VSR-11, VSR-16..VSR-18)
 */

import type { NodeId } from "../../base/ids.ts";
import type { VsrContext } from "./context.ts";
import { entryBytes } from "./context.ts";
import {
  BROKEN_TEXT_MAX,
  EPOCH_MAX,
  RESEND_PAGES_MAX,
  SEQ_MAX,
  UNSYNCED_WINDOWS_MAX,
} from "./limits.ts";
import type { EntryKind, LogEntry, VsrMessage } from "./messages.ts";
import { MEMBERS_MAX } from "./messages.ts";
import { confirmReads, failReads, startReadRound } from "./reads.ts";
import { answerPrimary, sendCommit, sendLogSuffix, sendPrepare } from "./send.ts";
import type { Replaced } from "./state.ts";
import type { Operation, RefusalReason } from "./types.ts";

/** A replica notes on disk how far the log is committed, after this many entries or a lease renewal. */
const MARK_EVERY_ENTRIES = 64;
const NO_BYTES = new Uint8Array(0);
const NOBODY: readonly NodeId[] = [];

type Message<Kind extends VsrMessage["kind"]> = Extract<VsrMessage, { kind: Kind }>;

export function propose(ctx: VsrContext, operations: readonly Operation[]): void {
  for (const operation of operations) {
    const { eventId } = operation;
    const placed = ctx.state.pending.get(eventId);
    const reason = placed === undefined ? refusal(ctx) : null;
    if (reason === null) {
      // Proposed again while its first try is under way: the same event keeps its one place. (VSR-11)
      const seq = placed ?? appendAsPrimary(ctx, "op", operation, NOBODY);
      ctx.emit({ kind: "accepted", eventId, seq });
    } else ctx.emit({ kind: "refused", eventId, reason, primary: ctx.state.primary });
  }
}

function refusal(ctx: VsrContext): RefusalReason | null {
  const { state, config } = ctx;
  if (state.status === "retired") return "retired";
  if (!state.acting || state.giveUpBy < Number.POSITIVE_INFINITY) return "notPrimary";
  if (ctx.rules.reconfigureIsLast && state.reconfigureSeq >= 0) return "reconfiguring";
  const inFlight = ctx.lastSeq - state.commit;
  if (ctx.lastSeq >= SEQ_MAX) return "windowFull";
  if (inFlight >= config.windowEntries || state.inFlightBytes >= config.windowBytes) {
    return "windowFull";
  }
  return null;
}

function appendAsPrimary(
  ctx: VsrContext,
  kind: EntryKind,
  operation: Operation,
  members: readonly NodeId[],
): number {
  const { state } = ctx;
  const { eventId, wall, logical, data } = operation;
  const seq = ctx.lastSeq + 1;
  state.activeAt = ctx.now;
  const { epoch, knownView: view } = state;
  const entry = { seq, epoch, view, kind, eventId, wall, logical, data, members };
  ctx.append(entry, ctx.rules.primaryLogs);
  state.inFlightBytes += entryBytes(entry);
  state.pending.set(eventId, seq);
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
  const placed = ctx.state.pending.get(eventId);
  if (placed !== undefined) {
    ctx.emit({ kind: "accepted", eventId, seq: placed });
    return;
  }
  const reason = refusal(ctx) ?? unfit(ctx, members);
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

function unfit(ctx: VsrContext, members: readonly NodeId[]): RefusalReason | null {
  const { state } = ctx;
  if (!oneStep(state.members, members) || state.epoch >= EPOCH_MAX) return "badMembers";
  // A newcomer has no vote at first: the remaining, live replicas with the log must be able to elect.
  const holds = (id: NodeId): boolean => {
    const { acked, sentAt } = ctx.peer(id);
    return acked >= 0 && ctx.now - sentAt <= ctx.patienceMs;
  };
  const ready = members.filter((id) => id === ctx.self || holds(id));
  return ready.length >= Math.floor(members.length / 2) + 1 ? null : "notReady";
}

/** At most one in and one out, so that every quorum of the one set meets every quorum of the other. */
function oneStep(before: readonly NodeId[], after: readonly NodeId[]): boolean {
  if (after.length === 0 || after.length > MEMBERS_MAX) return false;
  if (new Set(after).size !== after.length) return false;
  const added = after.filter((id) => !before.includes(id)).length;
  const removed = before.filter((id) => !after.includes(id)).length;
  return added <= 1 && removed <= 1;
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

/** Replica: entries of the view we live in. */
export function onPrepare(ctx: VsrContext, from: NodeId, message: Message<"prepare">): void {
  const { state } = ctx;
  hearPrimary(ctx, message.sentAt, state.echoRound);
  let gap = false;
  let grew = false;
  const room = UNSYNCED_WINDOWS_MAX * ctx.config.windowEntries;
  for (const entry of message.entries) {
    if (entry.seq <= state.commit && !sameAsOurs(ctx, entry)) {
      breakDown(ctx, entry);
      return;
    }
    if (entry.seq <= ctx.lastSeq) continue;
    // The disk cannot keep up: the entries are requested again later, as after a loss.
    if (state.appended - state.durable >= room) break;
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

/** Whether an entry is the one we hold at its place; true for a place that is compacted here. */
export function sameAsOurs(ctx: VsrContext, entry: LogEntry): boolean {
  const own = ctx.entryAt(entry.seq);
  return own === undefined || (own.eventId === entry.eventId && own.view === entry.view);
}

/** Two values committed at one index violate every guarantee: report it and stop. (LEDG-6) */
export function breakDown(ctx: VsrContext, other: LogEntry): void {
  const own = ctx.entryAt(other.seq)?.eventId ?? "nothing";
  stop(ctx, `entry ${other.seq} is committed as ${own} here and as ${other.eventId} there`);
}

export function stop(ctx: VsrContext, why: string): void {
  const { state } = ctx;
  if (state.acting) stepDown(ctx, "the log is broken");
  state.status = "broken";
  state.candidacy = null;
  state.transfer = null;
  state.broken = why.slice(0, BROKEN_TEXT_MAX);
  ctx.persist({ kind: "broken", why: state.broken });
  ctx.emit({ kind: "broken", why });
}

/** The primary of our view is alive: promises it another lease and postpones elections. (VSR-20) */
export function hearPrimary(ctx: VsrContext, sentAt: number, round: number): void {
  const { state, config } = ctx;
  state.echoSentAt = Math.max(state.echoSentAt, sentAt);
  state.echoRound = Math.max(state.echoRound, round);
  state.asleep = false;
  state.promisedUntil = Math.max(state.promisedUntil, ctx.now + config.leaseMs);
  state.electAt = ctx.now + ctx.patienceMs + rank(ctx) * config.rankDelayMs;
  if (state.candidacy?.probing === true) state.candidacy = null;
}

/**
 * 0 for the backup next in line after the current primary; a passed-over one ranks after all others. (VSR-19, AD-19.26)
 */
export function rank(ctx: VsrContext): number {
  const { members, primary } = ctx.state;
  const count = members.length;
  const own = members.indexOf(ctx.self);
  const leading = primary === null ? 0 : Math.max(0, members.indexOf(primary));
  const place = (own - leading - 1 + 2 * count) % count;
  return ctx.isPassedOver(ctx.self) ? place + count : place;
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
  // Ignore heartbeat echoes that this process has not sent: they come from another clock.
  const ours = message.sentAt >= 0 && message.sentAt <= ctx.now;
  if (ours) peer.sentAt = Math.max(peer.sentAt, message.sentAt);
  if (message.round <= state.round) peer.round = Math.max(peer.round, message.round);
  advanceCommit(ctx);
  // A commit may have ended this view.
  if (!state.acting) return;
  confirmReads(ctx);
  const behind = message.status === "wrongSequence";
  const catchingUp = peer.resentTo >= 0 && message.expected > peer.resentTo;
  if (message.expected > state.flushed) peer.resentTo = -1;
  else if (behind || catchingUp) fillGap(ctx, from, message.expected);
}

/** Several pages at once, or a replica that missed one would never catch up with a busy primary. */
function fillGap(ctx: VsrContext, to: NodeId, from: number): void {
  const { state, config } = ctx;
  const peer = ctx.peer(to);
  const repeated = from <= peer.resentTo && ctx.now - peer.resentAt < config.retransmitMs;
  if (repeated) return;
  peer.resentAt = ctx.now;
  peer.resentTo = from;
  if (from < state.firstSeq) {
    // The entries it lacks are compacted: it gets the snapshot and reinstalls this view's log.
    sendLogSuffix(ctx, to, from);
    return;
  }
  let next = from;
  for (let pages = 0; pages < RESEND_PAGES_MAX && next <= state.flushed; pages++) {
    const entries = ctx.page(next);
    sendPrepare(ctx, to, entries);
    next += entries.length;
  }
  peer.resentTo = next - 1;
}

/** The longest prefix that a quorum has. It never shrinks. (VSR-10) */
export function advanceCommit(ctx: VsrContext): void {
  const { state } = ctx;
  if (!state.acting) return;
  const reached = Math.min(ctx.quorumAcked(), ctx.lastSeq);
  if (reached <= state.commit) return;
  const copies = state.members.filter((member) =>
    member === ctx.self ? ctx.acked >= reached : (state.peers.get(member)?.acked ?? -1) >= reached,
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
    if (state.acting) {
      state.inFlightBytes -= entryBytes(entry);
      state.pending.delete(entry.eventId);
    }
    ctx.emit({ kind: "committed", entry, copies });
    if (entry.kind === "reconfigure" && entry.epoch === state.epoch) {
      enterEpoch(ctx, entry);
      return;
    }
  }
  const fresh = state.commit - state.marked;
  if (fresh >= MARK_EVERY_ENTRIES || ctx.now - state.markedAt >= ctx.config.renewMs)
    markCommit(ctx);
}

/** A lower bound of the commit number on disk, so that a restart knows most of its state at once. */
export function markCommit(ctx: VsrContext): void {
  const { state } = ctx;
  if (state.commit <= state.marked) return;
  state.marked = state.commit;
  state.markedAt = ctx.now;
  ctx.persist({ kind: "commitMark", seq: state.commit });
}

/** The reconfiguration is committed: the old replicas have done their last operation. (VSR-27) */
function enterEpoch(ctx: VsrContext, entry: LogEntry): void {
  const { state } = ctx;
  const wasPrimary = state.acting;
  if (state.acting) {
    // The others learn it from this message only; the epoch they would answer in is over.
    sendCommit(ctx);
    stepDown(ctx, "the group has other replicas now");
  }
  state.marked = state.commit;
  ctx.persist({ kind: "commitMark", seq: state.commit });
  beginEpoch(ctx, entry.members, wasPrimary);
}

export function beginEpoch(ctx: VsrContext, members: readonly NodeId[], wasPrimary: boolean): void {
  const { state } = ctx;
  // A replica that was not in the last epoch does not vote until a primary has sent it the log.
  const learner = state.learner || !state.members.includes(ctx.self);
  state.learner = learner;
  state.epoch++;
  state.members = members;
  state.replacedSay = new Map();
  state.grantedTo = null;
  state.reconfigureSeq = -1;
  state.candidacy = null;
  state.transfer = null;
  state.takeOverAt = 0;
  state.peers = new Map();
  ctx.persist({ kind: "epoch", epoch: state.epoch, members, learner });
  ctx.emit({ kind: "epochChanged", epoch: state.epoch, members });
  if (!members.includes(ctx.self)) {
    retire(ctx);
    return;
  }
  state.status = "viewChange";
  state.primary = null;
  // The old epoch has no primary any more, so no promise binds.
  state.promisedUntil = ctx.now;
  state.seenView = Math.max(state.seenView, state.knownView);
  const place = wasPrimary ? 0 : 1 + members.indexOf(ctx.self);
  state.electAt = ctx.now + place * ctx.config.rankDelayMs;
}

/**
 * A member reports that this replica was replaced. A single report may be a lie of a key holder and would stop this
 * replica for good, so it takes more reports than can be faulty. A replaced replica that receives fewer keeps asking
 * for votes, which no quorum of the old epoch grants.
 */
export function onReplaced(ctx: VsrContext, from: NodeId, said: Replaced): void {
  const { state } = ctx;
  if (!state.members.includes(from)) return;
  const { epoch, members } = said;
  state.replacedSay.set(from, { epoch, members });
  const faulty = Math.floor((state.members.length - 1) / 2);
  if (state.replacedSay.size <= faulty) return;
  const first = [...state.replacedSay.values()].reduce((a, b) => (b.epoch < a.epoch ? b : a));
  state.replacedSay = new Map();
  state.epoch = first.epoch;
  state.members = first.members;
  ctx.persist({ kind: "epoch", epoch: first.epoch, members: first.members, learner: false });
  if (state.status !== "retired") retire(ctx);
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
  state.pending = new Map();
  state.heartbeatAt = Number.POSITIVE_INFINITY;
  state.noticeAt = Number.POSITIVE_INFINITY;
  state.giveUpBy = Number.POSITIVE_INFINITY;
  state.asleep = false;
  // A deposed primary has a complete log, but runs last: others may be ahead of it by now.
  state.electAt = ctx.now + config.rankDelayMs * state.members.length;
  failReads(ctx);
  ctx.emit({ kind: "steppedDown", view: state.knownView, why });
}
