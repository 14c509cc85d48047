/**
 * Messages that more than one part sends: what a primary spreads, and what a replica answers it.
 */

import type { NodeId } from "../../base/ids.ts";
import type { VsrContext } from "./context.ts";
import type { LogEntry, PrepareStatus } from "./messages.ts";

export function sendPrepare(ctx: VsrContext, to: NodeId, entries: readonly LogEntry[]): void {
  const { epoch, knownView: view, commit } = ctx.state;
  ctx.send(to, { kind: "prepare", epoch, view, entries, commit, sentAt: ctx.now });
}

export function sendCommit(ctx: VsrContext, sleeps = false): void {
  const { state, config } = ctx;
  const { epoch, knownView: view, commit, round } = state;
  const last = ctx.lastSeq;
  for (const to of ctx.others()) {
    ctx.send(to, { kind: "commit", epoch, view, commit, last, sentAt: ctx.now, round, sleeps });
  }
  const waiting = commit < last || state.reads.length > 0;
  const everyMs = waiting ? config.retransmitMs : config.renewMs;
  state.heartbeatAt = ctx.now + everyMs;
  state.noticeAt = Number.POSITIVE_INFINITY;
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
