/**
 * Graceful hand-over by a primary that is shutting down. It rejects new proposals, waits briefly for entries in flight
 * and for a backup that responds, names the backup with the most complete log, releases the others from their promises
 * and resigns. The successor runs for its view like any candidate, only without delay: safety still rests on a quorum
 * of grants, and a lost message costs no more than the lease of a dead primary. (VSR-16)
 *
 *     giveUp ──all committed and a backup responds──► resign ──► successor stands ──grants──► leads
 *       └──deadline passes: resign to any backup that responds, or keep leading until asked again
 *
 * The process exits afterwards, so the replica never runs for a view again. It repeats its resignation until it learns
 * of another primary; a replica that has to name it as successor waits for the next in line.
 */

import type { NodeId } from "../../base/ids.ts";
import type { VsrContext } from "./context.ts";
import type { VsrMessage } from "./messages.ts";
import { rank, stepDown } from "./normal.ts";
import { sendCommit } from "./send.ts";
import { succeed } from "./views.ts";

export function giveUp(ctx: VsrContext): void {
  const { state, config } = ctx;
  state.leaving = true;
  if (!state.acting) return;
  state.giveUpBy = Math.min(state.giveUpBy, ctx.now + config.retransmitMs);
  if (successorOf(ctx) !== null) return;
  // An idle primary may not have contacted its backups yet, or not for a while.
  state.asleep = false;
  sendCommit(ctx);
}

/** At the end of every step: nothing is in flight and somebody answers, or it has taken too long. */
export function resignWhenSettled(ctx: VsrContext): void {
  const { state } = ctx;
  if (!state.acting || state.giveUpBy === Number.POSITIVE_INFINITY) return;
  const successor = successorOf(ctx);
  const isSettled = successor !== null && state.commit >= ctx.lastSeq;
  if (!isSettled && ctx.now < state.giveUpBy) return;
  state.giveUpBy = Number.POSITIVE_INFINITY;
  // No backup responds: keep leading rather than leave the group without a primary.
  if (successor === null) return;
  resign(ctx, successor);
  if (!ctx.rules.resignedIsOver) return;
  stepDown(ctx, "gave up");
  state.electAt = ctx.now + ctx.config.retransmitMs;
}

function resign(ctx: VsrContext, successor: NodeId): void {
  const { epoch, knownView: view } = ctx.state;
  for (const to of ctx.others()) ctx.send(to, { kind: "resign", epoch, view, successor });
}

/**
 * Repeats the resignation when another replica would run: no one follows us yet, so it may be lost. Replicas that have
 * it ignore the repetition.
 */
export function insist(ctx: VsrContext): void {
  const { state, config } = ctx;
  const { knownView, lastNormalView, status, members } = state;
  const isOpen = status === "viewChange" && knownView === lastNormalView;
  state.electAt = Number.POSITIVE_INFINITY;
  if (!isOpen || ctx.owner(knownView) !== ctx.self) return;
  state.electAt = ctx.now + config.retransmitMs;
  const next = members[(members.indexOf(ctx.self) + 1) % members.length] ?? ctx.self;
  resign(ctx, successorOf(ctx) ?? next);
}

/**
 * Picks the successor: the replica with the most complete log among those that answered one of the last two heartbeats,
 * ties broken by view order. A passed-over replica is picked only if no other answers. (AD-19.26)
 */
function successorOf(ctx: VsrContext): NodeId | null {
  const { members } = ctx.state;
  const patienceMs = 2 * ctx.config.renewMs;
  const own = members.indexOf(ctx.self);
  let best: NodeId | null = null;
  for (let place = 1; place < members.length; place++) {
    const id = members[(own + place) % members.length];
    if (id === undefined) continue;
    const { acked, sentAt } = ctx.peer(id);
    if (ctx.now - sentAt > patienceMs) continue;
    if (best === null || isBetter(ctx, id, acked, best)) best = id;
  }
  return best;
}

function isBetter(ctx: VsrContext, id: NodeId, acked: number, best: NodeId): boolean {
  const isPassedOver = ctx.isPassedOver(id);
  if (isPassedOver !== ctx.isPassedOver(best)) return !isPassedOver;
  return acked > ctx.peer(best).acked;
}

/** Our primary has resigned, so no promise to it binds. All but the successor wait for their turn. */
export function onResign(
  ctx: VsrContext,
  from: NodeId,
  { view, successor }: Extract<VsrMessage, { kind: "resign" }>,
): void {
  const { state, config } = ctx;
  const follows = state.status === "normal" && state.lastNormalView === view;
  if (!follows || state.knownView !== view || state.primary !== from) return;
  state.promisedUntil = Math.min(state.promisedUntil, ctx.now);
  state.electAt = ctx.now + (rank(ctx) + 1) * config.rankDelayMs;
  state.primary = null;
  if (successor === ctx.self && !state.leaving) succeed(ctx);
}
