/**
 * View changes: a backup whose primary went silent asks for the next view it owns, first as a probe without
 * consequences, so that a replica that cannot win raises nothing, then for good. With the grants of a quorum it adopts
 * the best log among them and leads. (VSR-12..VSR-15, VSR-19)
 */

import type { NodeId } from "../../base/ids.ts";
import type { VsrContext } from "./context.ts";
import { VIEW_MAX } from "./limits.ts";
import type { VsrMessage } from "./messages.ts";
import { rank, stepDown } from "./normal.ts";
import type { Candidacy, ViewChangeResponse } from "./state.ts";
import { finishAdoption } from "./take-over.ts";
import { startAdoption } from "./transfer.ts";

type Message<Kind extends VsrMessage["kind"]> = Extract<VsrMessage, { kind: Kind }>;

export function mayVote(ctx: VsrContext): boolean {
  const { status, learner, members } = ctx.state;
  if (learner && ctx.rules.learnersDoNotVote) return false;
  return status !== "retired" && status !== "broken" && members.includes(ctx.self);
}

/** The primary has been silent for long enough: would the others follow us? */
export function probe(ctx: VsrContext): void {
  const { state } = ctx;
  if (!mayVote(ctx)) {
    state.electAt = Number.POSITIVE_INFINITY;
    return;
  }
  // Our own grant is bound by our own promise. (VSR-13)
  const bound = ctx.leaseLeft();
  if (bound > 0) {
    state.electAt = ctx.now + bound;
    return;
  }
  const view = nextOwnedView(ctx);
  if (view === null) {
    state.electAt = Number.POSITIVE_INFINITY;
    return;
  }
  const candidacy = newCandidacy(ctx, view);
  state.candidacy = candidacy;
  state.electAt = Number.POSITIVE_INFINITY;
  if (candidacy.replies.size + 1 >= ctx.quorum) stand(ctx, candidacy);
  else ask(ctx, candidacy);
}

/** The primary resigned and named us: it has contacted the others already, so no probe is needed. */
export function succeed(ctx: VsrContext): void {
  const view = mayVote(ctx) ? nextOwnedView(ctx) : null;
  if (view === null) return;
  if (ctx.rules.successorAsks) {
    stand(ctx, newCandidacy(ctx, view));
    return;
  }
  promise(ctx, view, ctx.self);
  finishAdoption(ctx, { keep: ctx.lastSeq, snapshot: null, entries: [] }, ctx.state.commit);
}

function newCandidacy(ctx: VsrContext, view: number): Candidacy {
  const { config } = ctx;
  return {
    view,
    probing: true,
    replies: new Map(),
    refusals: new Set(),
    ticket: 0,
    deadline: ctx.now + config.viewChangeTimeoutMs,
    resendAt: ctx.now + config.retransmitMs,
  };
}

/** Null when the views of this group are used up, which takes a hostile peer and thousands of years. */
function nextOwnedView(ctx: VsrContext): number | null {
  const { state } = ctx;
  const next = Math.max(state.knownView, state.seenView) + 1;
  // Among as many views as there are members each owns one.
  for (let view = next; view < next + state.members.length; view++) {
    if (ctx.mayOwn(view, ctx.self)) return view <= VIEW_MAX ? view : null;
  }
  return null;
}

/** Our own grant first, durable like any other. (VSR-13) */
function stand(ctx: VsrContext, candidacy: Candidacy): void {
  const { state, config } = ctx;
  candidacy.probing = false;
  candidacy.replies = new Map();
  candidacy.deadline = ctx.now + config.viewChangeTimeoutMs;
  candidacy.resendAt = ctx.now + config.retransmitMs;
  if (state.acting) stepDown(ctx, "standing for a higher view");
  promise(ctx, candidacy.view, ctx.self);
  candidacy.ticket = state.appended;
  state.candidacy = candidacy;
  ask(ctx, candidacy);
  onGrants(ctx);
}

function promise(ctx: VsrContext, view: number, to: NodeId): void {
  const { state } = ctx;
  state.knownView = view;
  state.status = "viewChange";
  state.asleep = false;
  state.primary = null;
  state.grantedTo = to;
  state.takeOverAt = 0;
  state.transfer = null;
  state.candidacy = null;
  state.electAt = Number.POSITIVE_INFINITY;
  if (ctx.rules.promiseDurable) ctx.persist({ kind: "promise", view });
}

function ask(ctx: VsrContext, candidacy: Candidacy): void {
  const { epoch } = ctx.state;
  const { view, probing } = candidacy;
  for (const to of ctx.others()) {
    if (candidacy.replies.has(to)) continue;
    ctx.sendDurably(to, { kind: "viewChange", epoch, view, probe: probing });
  }
}

/** Another replica wants a view. */
export function onViewChange(ctx: VsrContext, from: NodeId, message: Message<"viewChange">): void {
  const { state, config, rules } = ctx;
  const { view, probe: asking } = message;
  if (!mayVote(ctx)) return;
  // The lease holder gives its lease up by asking: a restarted primary need not wait for itself. A replica woken by a
  // probe gives the primary time to wake as well, and answers the next probe.
  const woken = asking && state.wokenAt === ctx.now;
  const bound = woken || (ctx.leaseLeft() > 0 && from !== state.primary);
  const free = view > state.knownView && !bound;
  if (asking) {
    answer(ctx, from, view, { probe: true, granted: free });
    return;
  }
  const sameCandidate = state.grantedTo === from || !rules.ownerByView;
  const repeated = view === state.knownView && state.status === "viewChange" && sameCandidate;
  if (free) {
    if (state.acting) stepDown(ctx, "granted a higher view");
    promise(ctx, view, from);
    const patience = config.viewChangeTimeoutMs + ctx.random.float() * config.viewChangeBackoffMs;
    state.electAt = ctx.now + patience + rank(ctx) * config.rankDelayMs;
  }
  const granted = free || repeated || !rules.staleViewRefused;
  answer(ctx, from, view, { probe: false, granted });
}

function answer(
  ctx: VsrContext,
  to: NodeId,
  view: number,
  verdict: { readonly probe: boolean; readonly granted: boolean },
): void {
  const { epoch, knownView: currentView, lastNormalView, commit } = ctx.state;
  const { probe: probing, granted } = verdict;
  const response: ViewChangeResponse = {
    kind: "viewChangeResponse",
    epoch,
    view,
    probe: probing,
    granted,
    currentView,
    lastNormalView,
    lastSeq: ctx.lastSeq,
    commit,
    entries: granted && !probing ? ctx.page(commit + 1) : [],
    leaseLeftMs: granted ? 0 : ctx.leaseLeft(),
  };
  ctx.sendDurably(to, response);
}

export function onViewChangeResponse(
  ctx: VsrContext,
  from: NodeId,
  message: ViewChangeResponse,
): void {
  const { state, config } = ctx;
  state.seenView = Math.max(state.seenView, message.currentView);
  const { candidacy } = state;
  if (candidacy === null || candidacy.view !== message.view) return;
  if (candidacy.probing !== message.probe || !state.members.includes(from)) return;
  if (!message.granted) {
    if (!hopeless(ctx, candidacy, from, message)) return;
    giveUp(ctx);
    const backoff = ctx.random.float() * config.viewChangeBackoffMs;
    const leftMs = Math.min(Math.max(0, message.leaseLeftMs), config.leaseMs);
    state.electAt = ctx.now + leftMs + config.rankDelayMs + backoff;
    return;
  }
  candidacy.refusals.delete(from);
  candidacy.replies.set(from, message);
  if (!candidacy.probing) onGrants(ctx);
  else if (candidacy.replies.size + 1 >= ctx.quorum) stand(ctx, candidacy);
}

/** Ends the candidacy. A log transfer for following another primary continues. */
function giveUp(ctx: VsrContext): void {
  const { state } = ctx;
  state.candidacy = null;
  if (state.transfer?.purpose === "adopt") state.transfer = null;
}

/** Whether a replica is ahead of us, or too many are bound to a live primary. */
function hopeless(
  ctx: VsrContext,
  candidacy: Candidacy,
  from: NodeId,
  message: ViewChangeResponse,
): boolean {
  if (message.currentView >= candidacy.view) return true;
  if (!candidacy.probing || message.leaseLeftMs === 0) return false;
  // One replica that still receives from the old primary must not stop a majority.
  candidacy.refusals.add(from);
  return candidacy.refusals.size > ctx.state.members.length - ctx.quorum;
}

/** Enough grants, our own durable among them: choose the log to go on with. (VSR-14) */
export function onGrants(ctx: VsrContext): void {
  const { state, rules } = ctx;
  const { candidacy } = state;
  if (candidacy === null || candidacy.probing || state.transfer !== null) return;
  if (state.takeOverAt > 0 || state.durable < candidacy.ticket) return;
  const needed = rules.viewChangeQuorum ? ctx.quorum : 1;
  if (candidacy.replies.size + 1 < needed) return;
  let best: readonly [NodeId, ViewChangeResponse] | null = null;
  let bestLog: LogRank = { normalView: state.lastNormalView, lastSeq: ctx.lastSeq };
  let floor = state.commit;
  for (const [id, reply] of candidacy.replies) {
    floor = Math.max(floor, reply.commit);
    const theirs = { normalView: reply.lastNormalView, lastSeq: reply.lastSeq };
    if (!better(theirs, bestLog, rules.adoptByNormalView)) continue;
    best = [id, reply];
    bestLog = theirs;
  }
  if (best === null || !rules.adoptLog) {
    finishAdoption(ctx, { keep: ctx.lastSeq, snapshot: null, entries: [] }, floor);
  } else startAdoption(ctx, best[0], best[1], floor);
}

interface LogRank {
  readonly normalView: number;
  readonly lastSeq: number;
}

function better(a: LogRank, b: LogRank, byView: boolean): boolean {
  if (byView && a.normalView !== b.normalView) return a.normalView > b.normalView;
  return a.lastSeq > b.lastSeq;
}

/** Time passes for a candidate: ask again, or give up and try a higher view. */
export function onCandidacyTick(ctx: VsrContext, candidacy: Candidacy): void {
  const { state, config } = ctx;
  if (ctx.now >= candidacy.deadline) {
    giveUp(ctx);
    state.electAt = ctx.now + ctx.random.float() * config.viewChangeBackoffMs;
    return;
  }
  if (ctx.now < candidacy.resendAt) return;
  candidacy.resendAt = ctx.now + config.retransmitMs;
  ask(ctx, candidacy);
}
