/**
 * A primary that goes in good order: it takes nothing new, waits a moment for what is in flight, names
 * the backup that holds most of its log, frees the others from their promises and leads no more. The
 * successor asks for its view like any candidate, only at once: safety rests on the grants of a quorum
 * here too, and a lost word costs no more than the lease that a dead primary would have cost. (VSR-16)
 *
 *     giveUp ──all committed, or time is over──► resign ──► successor stands ──grants──► leads
 */

import type { NodeId } from "../../base/ids.ts";
import type { VsrContext } from "./context.ts";
import type { VsrMessage } from "./messages.ts";
import { rank, stepDown } from "./normal.ts";
import { succeed } from "./views.ts";

export function giveUp(ctx: VsrContext): void {
  const { state, config } = ctx;
  if (state.acting) state.giveUpBy = Math.min(state.giveUpBy, ctx.now + config.retransmitMs);
}

/** At the end of every step: nothing is in flight any more, or it has taken too long. */
export function resignWhenSettled(ctx: VsrContext): void {
  const { state } = ctx;
  if (!state.acting || state.giveUpBy === Number.POSITIVE_INFINITY) return;
  if (state.commit < ctx.lastSeq && ctx.now < state.giveUpBy) return;
  state.giveUpBy = Number.POSITIVE_INFINITY;
  const successor = successorOf(ctx);
  // Nobody answers: leading on is better than leaving nobody.
  if (successor === null) return;
  const { epoch, knownView: view } = state;
  for (const to of ctx.others()) ctx.send(to, { kind: "resign", epoch, view, successor });
  if (ctx.rules.resignedIsOver) stepDown(ctx, "gave up");
}

/** Of those who answer, who holds the most of our log; the next in line among equals. */
function successorOf(ctx: VsrContext): NodeId | null {
  const { members } = ctx.state;
  const own = members.indexOf(ctx.self);
  let best: NodeId | null = null;
  for (let place = 1; place < members.length; place++) {
    const id = members[(own + place) % members.length];
    if (id === undefined) continue;
    const { acked, sentAt } = ctx.peer(id);
    if (ctx.now - sentAt > ctx.patienceMs) continue;
    if (best === null || acked > ctx.peer(best).acked) best = id;
  }
  return best;
}

/** Our primary leads no more, so no promise to it binds. Others than the successor wait for their turn. */
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
  if (successor === ctx.self) succeed(ctx);
}
