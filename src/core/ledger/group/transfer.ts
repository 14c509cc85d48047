/**
 * Moving a log: a candidate fetches the log it chose, a replica fetches the log of the view it is
 * about to join. Pages are staged in memory and become the group's log in one record, so a crash
 * leaves either the old log or the new one. (VSR-8, VSR-9, VSR-15, CKPT-10)
 */

import type { NodeId } from "../../base/ids.ts";
import type { VsrContext } from "./context.ts";
import {
  ENTRY_OVERHEAD_BYTES,
  FETCH_TRIES_MAX,
  STAGED_BYTES_MAX,
  STAGED_ENTRIES_MAX,
} from "./limits.ts";
import type { GroupSnapshot, LogEntry, VsrMessage } from "./messages.ts";
import { beginEpoch, breakDown, commitUpTo, hearPrimary, sameAsOurs, stepDown } from "./normal.ts";
import { answerPrimary, sendLogSuffix } from "./send.ts";
import type { Transfer, ViewChangeResponse } from "./state.ts";
import type { NewLog } from "./take-over.ts";
import { finishAdoption } from "./take-over.ts";

type Message<Kind extends VsrMessage["kind"]> = Extract<VsrMessage, { kind: Kind }>;

/** A candidate takes the best log of its quorum. */
export function startAdoption(
  ctx: VsrContext,
  source: NodeId,
  reply: ViewChangeResponse,
  floor: number,
): void {
  const { state } = ctx;
  const { lastNormalView: normalView, entries, lastSeq, commit } = reply;
  const transfer = begin(ctx, { purpose: "adopt", source, view: state.knownView, normalView });
  transfer.commit = floor;
  stage(ctx, transfer, entries, commit);
  if (state.transfer === transfer) proceed(ctx, transfer, lastSeq);
}

/** A replica joins a view that a primary leads already. */
export function startInstall(ctx: VsrContext, source: NodeId, view: number, epoch: number): void {
  const transfer = beginInstall(ctx, source, view, epoch);
  if (transfer !== null) fetch(ctx, transfer);
}

/** Null while the log of that view, or of a higher one, is on its way. */
function beginInstall(
  ctx: VsrContext,
  source: NodeId,
  view: number,
  epoch: number,
): Transfer | null {
  const { state } = ctx;
  const { transfer } = state;
  if (transfer?.purpose === "install" && transfer.view >= view) return null;
  if (state.acting) stepDown(ctx, "another primary leads a higher view");
  if (epoch === state.epoch) state.seenView = Math.max(state.seenView, view);
  return begin(ctx, { purpose: "install", source, view, normalView: view });
}

function begin(
  ctx: VsrContext,
  what: Pick<Transfer, "purpose" | "source" | "view" | "normalView">,
): Transfer {
  const retryAt = ctx.now + ctx.config.fetchRetryMs;
  const transfer: Transfer = {
    ...what,
    snapshot: null,
    entries: [],
    bytes: 0,
    commit: -1,
    retryAt,
    tries: 0,
  };
  ctx.state.transfer = transfer;
  return transfer;
}

/** The new primary's log, or its end. */
export function onNewView(ctx: VsrContext, from: NodeId, message: Message<"newView">): void {
  const { state } = ctx;
  const { view, entries, startSeq, commit } = message;
  if (state.lastNormalView === view && state.status === "normal") {
    answerPrimary(ctx, from, "success");
    return;
  }
  beginInstall(ctx, from, view, message.epoch);
  const { transfer } = state;
  if (transfer === null || transfer.purpose !== "install" || transfer.view !== view) return;
  if (transfer.snapshot === null) stage(ctx, transfer, entries, commit);
  if (state.transfer !== transfer) return;
  if (!ctx.rules.installBeforeAck) padTo(ctx, transfer, startSeq - 1);
  proceed(ctx, transfer, startSeq - 1);
}

/** The mutant of `installBeforeAck`: what is missing is filled with nothing. (S-3) */
function padTo(ctx: VsrContext, transfer: Transfer, lastSeq: number): void {
  for (let seq = nextSeq(ctx, transfer); seq <= lastSeq; seq++) {
    const nothing = { eventId: "", wall: 0, logical: 0, data: new Uint8Array(0), members: [] };
    transfer.entries.push({ seq, epoch: 0, view: 0, kind: "noop", ...nothing });
  }
}

export function onFetchLog(ctx: VsrContext, from: NodeId, message: Message<"fetchLog">): void {
  const { state } = ctx;
  const older = message.epoch < state.epoch;
  const leads = state.acting && (message.view === state.knownView || older);
  const granted =
    state.status === "viewChange" && message.view === state.knownView && state.grantedTo === from;
  if (leads || (granted && !older)) sendLogSuffix(ctx, from, message.from);
  else if (older) sendCommitted(ctx, from, message);
}

/** A replica that missed the end of an epoch may get what is committed from any other. (VSR-27) */
function sendCommitted(ctx: VsrContext, to: NodeId, wanted: Message<"fetchLog">): void {
  const { state } = ctx;
  const { epoch, knownView: view, commit, firstSeq } = state;
  const snapshot = wanted.from < firstSeq ? state.snapshot : null;
  const entries = ctx.page(snapshot === null ? wanted.from : snapshot.seq + 1);
  // A snapshot of the asker's own epoch comes without members: the end of that epoch is in the log.
  const ahead = state.entries.some(
    ({ kind, seq, epoch: ended }) =>
      kind === "reconfigure" && ended === wanted.epoch && seq > (snapshot?.seq ?? -1),
  );
  const members = ahead ? [] : state.members;
  const committed = entries.filter(({ seq }) => seq <= commit);
  // Committed entries only, not the log of a view: it must not be installed as one.
  const log = { lastNormalView: 0, snapshot, entries: committed, lastSeq: commit, commit };
  ctx.sendDurably(to, { kind: "logSuffix", epoch, members, view, ...log });
}

/** We are in an older epoch than the sender, which may know how ours ended. */
export function fetchCommitted(ctx: VsrContext, from: NodeId): void {
  const { epoch, commit } = ctx.state;
  ctx.send(from, { kind: "fetchLog", epoch, view: 0, from: commit + 1 });
}

export function onLogSuffix(ctx: VsrContext, from: NodeId, message: Message<"logSuffix">): void {
  const { state } = ctx;
  const { snapshot } = message;
  const uncalled = snapshot !== null && snapshot.seq > ctx.lastSeq && state.transfer === null;
  if (uncalled && from === state.primary && message.view === state.lastNormalView) {
    beginInstall(ctx, from, message.view, message.epoch);
  }
  const { transfer } = state;
  const wanted = transfer?.source === from && message.view === transfer.view;
  if (transfer === null || !wanted || message.lastNormalView !== transfer.normalView) {
    if (message.epoch > state.epoch) onCommittedLog(ctx, from, message);
    return;
  }
  transfer.tries = 0;
  if (snapshot !== null && snapshot.seq >= nextSeq(ctx, transfer)) {
    transfer.snapshot = snapshot;
    transfer.entries = [];
    transfer.bytes = snapshot.bytes.length;
  }
  stage(ctx, transfer, message.entries, message.commit);
  if (state.transfer !== transfer) return;
  if (nextSeq(ctx, transfer) > message.lastSeq && message.epoch !== state.epoch) {
    if (!followEpoch(ctx, from, message)) return;
  }
  proceed(ctx, transfer, message.lastSeq);
}

/** Fetches page by page, until we are in the sender's epoch or it has no more. */
function onCommittedLog(ctx: VsrContext, from: NodeId, message: Message<"logSuffix">): void {
  const { state } = ctx;
  const before = state.commit;
  const { snapshot } = message;
  if (snapshot !== null && snapshot.seq > before && !learnSnapshot(ctx, message, snapshot)) return;
  learn(ctx, message.entries, message.commit, message.view);
  const more = state.epoch < message.epoch && state.commit < message.commit;
  if (more && state.commit > before) fetchCommitted(ctx, from);
}

/**
 * Installs committed state beyond the reach of our log. The best log is still judged by the view that we were last part
 * of; and we can know what we missed only while it is one epoch.
 */
function learnSnapshot(
  ctx: VsrContext,
  message: Message<"logSuffix">,
  snapshot: GroupSnapshot,
): boolean {
  const { state } = ctx;
  if (state.learner || !state.members.includes(ctx.self)) return false;
  const ends = message.members.length === 0;
  if (!ends && message.epoch !== state.epoch + 1) return false;
  outgrow(ctx, message.view);
  leaveView(ctx);
  restore(ctx, snapshot);
  const { lastNormalView: view } = state;
  const epoch = ends ? state.epoch : message.epoch;
  const members = ends ? state.members : message.members;
  const keep = snapshot.seq;
  ctx.persist({ kind: "newView", epoch, members, view, keep, snapshot, entries: [] });
  if (!ends) beginEpoch(ctx, members, false);
  return true;
}

/** No older view may have us back: its primary would take our acks for entries that we replaced. */
function outgrow(ctx: VsrContext, view: number): void {
  const { state, config } = ctx;
  if (view <= state.knownView) return;
  if (state.acting) stepDown(ctx, "others have committed more");
  state.knownView = view;
  state.grantedTo = null;
  // The view we ran for, were about to lead or to follow was lower.
  state.candidacy = null;
  state.takeOverAt = 0;
  if (state.transfer !== null && state.transfer.view < view) state.transfer = null;
  state.electAt = Math.min(state.electAt, ctx.now + config.viewChangeTimeoutMs);
  ctx.persist({ kind: "promise", view });
}

/** Our log is not that of our view any more: we ack nothing until we have installed one again. */
function leaveView(ctx: VsrContext): void {
  const { state } = ctx;
  if (state.acting) stepDown(ctx, "others have committed more");
  state.marks = [];
  state.durableView = -1;
  if (state.status === "normal") state.status = "viewChange";
  state.primary = null;
}

/**
 * Adds committed entries to our log, whatever view we are in. Entries they replace never were and never will be
 * committed. The log may not be that of our view afterwards, so we ack nothing until we have installed a view again.
 */
function learn(ctx: VsrContext, entries: readonly LogEntry[], commit: number, view: number): void {
  const { state } = ctx;
  let changed = false;
  // Only entries that follow our own commit number without a gap determine what is committed here.
  let end = state.commit;
  for (const entry of entries) {
    if (entry.seq > commit || entry.seq > end + 1) break;
    end = Math.max(end, entry.seq);
    if (entry.seq <= ctx.lastSeq && sameAsOurs(ctx, entry)) continue;
    if (entry.seq <= state.commit) {
      breakDown(ctx, entry);
      return;
    }
    if (!changed) outgrow(ctx, view);
    ctx.replaceLog(entry.seq - 1, []);
    ctx.append(entry, true);
    changed = true;
  }
  if (changed) leaveView(ctx);
  // Each reconfiguration on the way ends an epoch, and commitUpTo stops there.
  for (let before = -2; before < state.commit && state.commit < end; ) {
    before = state.commit;
    commitUpTo(ctx, end, []);
  }
}

/** The log comes from a newer epoch: its replicas are ours now, if we are among them. */
function followEpoch(ctx: VsrContext, from: NodeId, message: Message<"logSuffix">): boolean {
  const { state } = ctx;
  const { members, view } = message;
  if (members[(view - 1) % members.length] !== from || !members.includes(ctx.self)) return false;
  state.epoch = message.epoch;
  state.replacedSay = new Map();
  state.members = members;
  ctx.emit({ kind: "epochChanged", epoch: message.epoch, members });
  return true;
}

export function onTransferTick(ctx: VsrContext, transfer: Transfer): void {
  const { state } = ctx;
  if (ctx.now < transfer.retryAt) return;
  transfer.tries++;
  // A live primary sends its next heartbeat; a candidate has its own deadline.
  if (transfer.purpose === "install" && transfer.tries >= FETCH_TRIES_MAX) state.transfer = null;
  else fetch(ctx, transfer);
}

function fetch(ctx: VsrContext, transfer: Transfer): void {
  const { epoch } = ctx.state;
  transfer.retryAt = ctx.now + ctx.config.fetchRetryMs;
  const from = nextSeq(ctx, transfer);
  ctx.send(transfer.source, { kind: "fetchLog", epoch, view: transfer.view, from });
}

function nextSeq(ctx: VsrContext, transfer: Transfer): number {
  const staged = transfer.entries.at(-1)?.seq ?? transfer.snapshot?.seq ?? -1;
  return Math.max(staged, ctx.state.commit) + 1;
}

/** Committed entries become ours at once; the rest, at most a window or so, waits for the end. */
function stage(
  ctx: VsrContext,
  transfer: Transfer,
  entries: readonly LogEntry[],
  commit: number,
): void {
  transfer.commit = Math.max(transfer.commit, commit);
  if (transfer.snapshot === null) learn(ctx, entries, commit, transfer.view);
  for (const entry of entries) {
    if (entry.seq !== nextSeq(ctx, transfer)) continue;
    transfer.entries.push(entry);
    transfer.bytes += entry.data.length + ENTRY_OVERHEAD_BYTES;
  }
  const tooMuch = transfer.bytes > STAGED_BYTES_MAX;
  if (tooMuch || transfer.entries.length > STAGED_ENTRIES_MAX) ctx.state.transfer = null;
}

/** Finishes once the log is complete up to `lastSeq`, otherwise requests the next page. */
function proceed(ctx: VsrContext, transfer: Transfer, lastSeq: number): void {
  if (nextSeq(ctx, transfer) > lastSeq) finish(ctx, transfer);
  else fetch(ctx, transfer);
}

function finish(ctx: VsrContext, transfer: Transfer): void {
  const { state } = ctx;
  for (const entry of transfer.entries) {
    if (entry.seq > state.commit) break;
    if (sameAsOurs(ctx, entry)) continue;
    breakDown(ctx, entry);
    return;
  }
  state.transfer = null;
  const acked = transfer.purpose === "install" ? ownTail(ctx, transfer) : [];
  const newer = transfer.snapshot !== null && transfer.snapshot.seq > state.commit;
  const snapshot = newer ? transfer.snapshot : null;
  if (snapshot !== null) restore(ctx, snapshot);
  // Entries committed meanwhile equal the staged ones.
  const keep = state.commit;
  const entries = [...transfer.entries, ...acked].filter((entry) => entry.seq > keep);
  const log = { keep, snapshot, entries };
  if (transfer.purpose === "install") install(ctx, transfer, log);
  else finishAdoption(ctx, log, transfer.commit);
}

/**
 * The log of a view that we were in before, perhaps as it was long ago: the packet may be an old one.
 * What we have beyond it is of the same log, and may have been acked.
 */
function ownTail(ctx: VsrContext, transfer: Transfer): LogEntry[] {
  const { state } = ctx;
  if (transfer.view !== state.lastNormalView) return [];
  const staged = nextSeq(ctx, transfer);
  return state.entries.filter(({ seq }) => seq >= staged);
}

function restore(ctx: VsrContext, snapshot: GroupSnapshot): void {
  const { state } = ctx;
  state.snapshot = snapshot;
  state.entries = [];
  state.firstSeq = snapshot.seq + 1;
  state.commit = snapshot.seq;
  state.marked = snapshot.seq;
  ctx.emit({ kind: "restored", snapshot });
}

/** Follow the primary of `view`: its log is ours now. (VSR-15) */
function install(ctx: VsrContext, transfer: Transfer, log: NewLog): void {
  const { state } = ctx;
  const { view, source } = transfer;
  const { keep, snapshot, entries } = log;
  ctx.replaceLog(keep, entries);
  state.knownView = view;
  state.lastNormalView = view;
  state.status = "normal";
  state.acting = false;
  state.primary = source;
  state.grantedTo = null;
  state.candidacy = null;
  state.takeOverAt = 0;
  state.learner = false;
  state.echoSentAt = -1;
  state.echoRound = 0;
  const { epoch, members } = state;
  ctx.persist({ kind: "newView", epoch, members, view, keep, snapshot, entries });
  ctx.mark();
  hearPrimary(ctx, -1, 0);
  commitUpTo(ctx, transfer.commit, []);
  if (state.durable >= state.appended) answerPrimary(ctx, source, "success");
}
