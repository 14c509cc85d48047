/**
 * The end of a view change: the candidate makes the log it chose its own, durably, and then leads.
 * (VSR-15, VSR-24)
 */

import type { VsrContext } from "./context.ts";
import { entryBytes } from "./context.ts";
import { SEQ_MAX } from "./limits.ts";
import type { GroupSnapshot, LogEntry } from "./messages.ts";
import { appendNoop, commitUpTo } from "./normal.ts";

/** Log that a transfer results in: our log up to `keep` or the snapshot's state, followed by these entries. */
export interface NewLog {
  readonly keep: number;
  readonly snapshot: GroupSnapshot | null;
  readonly entries: readonly LogEntry[];
}

/** The chosen log is here: make it ours, durably, and lead. (VSR-15) */
export function finishAdoption(ctx: VsrContext, log: NewLog, floor: number): void {
  const { state, rules } = ctx;
  const { epoch, members, knownView: view } = state;
  const keep = rules.seqContinues ? log.keep : -1;
  const entries = rules.seqContinues ? log.entries : [];
  ctx.replaceLog(keep, entries);
  ctx.persist({ kind: "newView", epoch, members, view, keep, snapshot: log.snapshot, entries });
  state.lastNormalView = view;
  state.candidacy = null;
  state.transfer = null;
  ctx.mark();
  commitUpTo(ctx, floor, []);
  // A reconfiguration among what was committed has begun another epoch.
  if (state.epoch !== epoch) return;
  state.takeOverAt = state.appended;
  takeOverWhenDurable(ctx);
}

export function takeOverWhenDurable(ctx: VsrContext): void {
  const { state } = ctx;
  if (state.takeOverAt === 0 || state.durable < state.takeOverAt) return;
  state.takeOverAt = 0;
  state.status = "normal";
  state.acting = true;
  state.primary = ctx.self;
  state.candidacy = null;
  state.peers = new Map();
  state.electAt = Number.POSITIVE_INFINITY;
  state.heartbeatAt = ctx.now;
  state.activeAt = ctx.now;
  state.asleep = false;
  state.startSeq = ctx.lastSeq + 1;
  state.flushed = ctx.lastSeq;
  takeStock(ctx);
  const { epoch, knownView: view, commit, startSeq } = state;
  ctx.emit({ kind: "tookOver", view, lastSeq: ctx.lastSeq });
  if (view === 1 && ctx.lastSeq < 0) {
    // A fresh group: nothing to take over, but the others may not know the group yet. It had no earlier primary, so
    // reads cannot miss anything.
    state.startSeq = -1;
    const { members } = state;
    for (const to of ctx.others()) ctx.send(to, { kind: "found", epoch, members });
    return;
  }
  const entries = ctx.page(commit + 1);
  for (const to of ctx.others()) {
    ctx.send(to, { kind: "newView", epoch, view, startSeq, commit, entries });
  }
  if (ctx.lastSeq >= SEQ_MAX) return;
  if (state.reconfigureSeq < 0 || !ctx.rules.reconfigureIsLast) appendNoop(ctx);
}

/** Collects the entries in flight at the start of a view: adopted but not yet committed. */
function takeStock(ctx: VsrContext): void {
  const { state } = ctx;
  state.inFlightBytes = 0;
  state.pending = new Map();
  for (let seq = state.commit + 1; seq <= ctx.lastSeq; seq++) {
    const entry = ctx.entryAt(seq);
    if (entry === undefined) continue;
    state.inFlightBytes += entryBytes(entry);
    state.pending.set(entry.eventId, seq);
  }
}
