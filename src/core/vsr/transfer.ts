/**
 * Moving a log: a candidate fetches the log it chose, a replica fetches the log of the view it is
 * about to join. Pages are staged in memory and become the group's log in one record, so a crash
 * leaves either the old log or the new one. (VSR-8, VSR-9, VSR-15, CKPT-10)
 */

import type { NodeId } from "../base/ids.ts";
import type { VsrContext } from "./context.ts";
import type { LogEntry, VsrMessage } from "./messages.ts";
import { answerPrimary, commitUpTo, hearPrimary, sendLogSuffix, stepDown } from "./normal.ts";
import type { Transfer, ViewChangeResponse } from "./state.ts";
import { finishAdoption } from "./views.ts";

type Message<Kind extends VsrMessage["kind"]> = Extract<VsrMessage, { kind: Kind }>;

/** A candidate takes the best log of its quorum. */
export function startAdoption(
  ctx: VsrContext,
  source: NodeId,
  reply: ViewChangeResponse,
  floor: number,
): void {
  const { state, config } = ctx;
  const transfer: Transfer = {
    purpose: "adopt",
    source,
    view: state.knownView,
    normalView: reply.lastNormalView,
    from: state.commit + 1,
    snapshot: null,
    entries: [],
    commit: floor,
    retryAt: ctx.now + config.fetchRetryMs,
  };
  state.transfer = transfer;
  stage(transfer, reply.entries);
  if (nextSeq(transfer) > reply.lastSeq) finish(ctx, transfer);
  else fetch(ctx, transfer);
}

/** A replica joins a view that a primary leads already. */
export function startInstall(ctx: VsrContext, source: NodeId, view: number, epoch: number): void {
  const { state, config } = ctx;
  const { transfer } = state;
  if (transfer?.purpose === "install" && transfer.view >= view && transfer.source === source)
    return;
  if (state.acting) stepDown(ctx, "another primary leads a higher view");
  if (epoch === state.epoch) state.seenView = Math.max(state.seenView, view);
  const install: Transfer = {
    purpose: "install",
    source,
    view,
    normalView: view,
    from: state.commit + 1,
    snapshot: null,
    entries: [],
    commit: -1,
    retryAt: ctx.now + config.fetchRetryMs,
  };
  state.transfer = install;
  fetch(ctx, install);
}

/** The new primary's log, or its end. */
export function onNewView(ctx: VsrContext, from: NodeId, message: Message<"newView">): void {
  const { state } = ctx;
  const { view, entries, startSeq } = message;
  if (state.lastNormalView === view && state.status === "normal") {
    answerPrimary(ctx, from, "success");
    return;
  }
  startInstall(ctx, from, view, message.epoch);
  const { transfer } = state;
  if (transfer === null || transfer.purpose !== "install" || transfer.view !== view) return;
  transfer.commit = Math.max(transfer.commit, message.commit);
  if (transfer.entries.length === 0 && transfer.snapshot === null) stage(transfer, entries);
  if (nextSeq(transfer) >= startSeq) finish(ctx, transfer);
  else if (!ctx.rules.installBeforeAck) {
    padTo(transfer, startSeq - 1);
    finish(ctx, transfer);
  }
}

/** The mutant of `installBeforeAck`: what is missing is filled with nothing. (S-3) */
function padTo(transfer: Transfer, lastSeq: number): void {
  for (let seq = nextSeq(transfer); seq <= lastSeq; seq++) {
    const nothing = { eventId: "", wall: 0, logical: 0, data: new Uint8Array(0), members: [] };
    transfer.entries.push({ seq, epoch: 0, view: 0, kind: "noop", ...nothing });
  }
}

export function onFetchLog(ctx: VsrContext, from: NodeId, message: Message<"fetchLog">): void {
  const { state } = ctx;
  const leads = state.acting && (message.view === state.knownView || message.epoch < state.epoch);
  const granted =
    state.status === "viewChange" && message.view === state.knownView && state.grantedTo === from;
  if (leads || granted) sendLogSuffix(ctx, from, message.from);
}

export function onLogSuffix(ctx: VsrContext, from: NodeId, message: Message<"logSuffix">): void {
  const { state } = ctx;
  const { snapshot } = message;
  const uncalled = snapshot !== null && snapshot.seq > ctx.lastSeq && state.transfer === null;
  if (uncalled && from === state.primary && message.view === state.lastNormalView) {
    startInstall(ctx, from, message.view, message.epoch);
  }
  const { transfer } = state;
  if (transfer === null || transfer.source !== from) return;
  if (message.view !== transfer.view || message.lastNormalView !== transfer.normalView) return;
  if (snapshot !== null && snapshot.seq >= nextSeq(transfer)) {
    transfer.snapshot = snapshot;
    transfer.entries = [];
  }
  stage(transfer, message.entries);
  transfer.commit = Math.max(transfer.commit, message.commit);
  if (nextSeq(transfer) <= message.lastSeq) {
    fetch(ctx, transfer);
    return;
  }
  if (message.epoch !== state.epoch) {
    if (!followEpoch(ctx, from, message)) return;
  }
  finish(ctx, transfer);
}

/** The log comes from a newer epoch: its replicas are ours now, if we are among them. */
function followEpoch(ctx: VsrContext, from: NodeId, message: Message<"logSuffix">): boolean {
  const { state } = ctx;
  const { members, view } = message;
  if (members[(view - 1) % members.length] !== from || !members.includes(ctx.self)) return false;
  state.epoch = message.epoch;
  state.members = members;
  ctx.emit({ kind: "epochChanged", epoch: message.epoch, members });
  return true;
}

export function onTransferTick(ctx: VsrContext, transfer: Transfer): void {
  const { state, config } = ctx;
  if (ctx.now < transfer.retryAt) return;
  transfer.retryAt = ctx.now + config.fetchRetryMs;
  // A primary that does not answer is heard of again when it lives; a candidate has its own deadline.
  if (transfer.purpose === "install") state.transfer = null;
  else fetch(ctx, transfer);
}

function fetch(ctx: VsrContext, transfer: Transfer): void {
  const { epoch } = ctx.state;
  transfer.retryAt = ctx.now + ctx.config.fetchRetryMs;
  const from = nextSeq(transfer);
  ctx.send(transfer.source, { kind: "fetchLog", epoch, view: transfer.view, from });
}

function nextSeq(transfer: Transfer): number {
  const last = transfer.entries.at(-1);
  if (last !== undefined) return last.seq + 1;
  return transfer.snapshot === null ? transfer.from : transfer.snapshot.seq + 1;
}

function stage(transfer: Transfer, entries: readonly LogEntry[]): void {
  for (const entry of entries) {
    if (entry.seq === nextSeq(transfer)) transfer.entries.push(entry);
  }
}

function finish(ctx: VsrContext, transfer: Transfer): void {
  const { state } = ctx;
  const conflict = conflictBelowCommit(ctx, transfer);
  if (conflict !== null) {
    state.status = "broken";
    state.acting = false;
    ctx.emit({ kind: "broken", why: conflict });
    return;
  }
  state.transfer = null;
  // What was committed meanwhile is the same as what was staged.
  const keep = transfer.snapshot === null ? state.commit : transfer.snapshot.seq;
  const entries = transfer.entries.filter((entry) => entry.seq > keep);
  if (transfer.purpose === "install") {
    install(ctx, transfer, keep, entries);
    return;
  }
  if (transfer.snapshot !== null) restore(ctx, transfer);
  finishAdoption(ctx, keep, entries, transfer.commit);
}

/** Two values committed at one place would be the end of every promise: say so and stop. (LEDG-6) */
function conflictBelowCommit(ctx: VsrContext, transfer: Transfer): string | null {
  for (const entry of transfer.entries) {
    if (entry.seq > ctx.state.commit) return null;
    const own = ctx.entryAt(entry.seq);
    if (own === undefined) continue;
    if (own.eventId !== entry.eventId || own.view !== entry.view) {
      return `entry ${entry.seq} is committed as ${own.eventId} here and as ${entry.eventId} there`;
    }
  }
  return null;
}

function restore(ctx: VsrContext, transfer: Transfer): void {
  const { state } = ctx;
  const { snapshot } = transfer;
  if (snapshot === null || snapshot.seq <= state.commit) return;
  state.snapshot = snapshot;
  state.entries = [];
  state.firstSeq = snapshot.seq + 1;
  state.commit = snapshot.seq;
  state.marked = snapshot.seq;
  ctx.emit({ kind: "restored", snapshot });
}

/** Follow the primary of `view`: its log is ours now. (VSR-15) */
function install(
  ctx: VsrContext,
  transfer: Transfer,
  keep: number,
  entries: readonly LogEntry[],
): void {
  const { state } = ctx;
  const { view, source } = transfer;
  const snapshot = transfer.snapshot;
  if (snapshot !== null) restore(ctx, transfer);
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
