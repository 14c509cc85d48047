/**
 * Sleep: a group that has been idle for a while sends one last heartbeat and then nothing, at no node, until it is
 * needed. Most jobs of a ledger are finished, or wait for hours.
 *
 *     idle ──last heartbeat──► asleep, no timer ──request, or any message of a peer──► awake
 *
 * The last heartbeat ends the lease: a replica that falls asleep by it is released from its promise, and the primary
 * counts on no earlier promise. A primary that died or shut down while asleep is noticed at the first request: a woken
 * replica waits for it briefly and then runs for a view. (VSR-21)
 */

import type { VsrContext } from "./context.ts";
import type { VsrMessage } from "./messages.ts";
import { markCommit, rank } from "./normal.ts";
import { sendCommit } from "./send.ts";

/** Without an answer of some replica a primary stays awake for so many idle times longer. */
const PATIENCE_TIMES = 4;

/** The last heartbeat, when there is nothing to do; false when it is too early. */
export function fallAsleep(ctx: VsrContext): boolean {
  const { state, config } = ctx;
  const idleMs = ctx.now - state.activeAt;
  const isQuiet = state.commit === ctx.lastSeq && state.reads.length === 0;
  const isBusy = !isQuiet || state.giveUpBy < Number.POSITIVE_INFINITY || state.candidacy !== null;
  if (!state.mayRest || isBusy || idleMs < config.idleMs || ctx.quorumAcked() < ctx.lastSeq)
    return false;
  const all = ctx.others().every((id) => ctx.peer(id).acked >= ctx.lastSeq);
  if (!all && idleMs < PATIENCE_TIMES * config.idleMs) return false;
  sendCommit(ctx, true);
  state.heartbeatAt = Number.POSITIVE_INFINITY;
  state.restedAt = ctx.now;
  rest(ctx);
  return true;
}

/** The primary's last heartbeat: nothing will come for a while, and nothing is missing here. */
export function restWithPrimary(
  ctx: VsrContext,
  { sleeps, commit, last, sentAt }: Extract<VsrMessage, { kind: "commit" }>,
): void {
  const { state } = ctx;
  if (!sleeps || last !== ctx.lastSeq || commit !== last || state.commit !== last) return;
  state.electAt = Number.POSITIVE_INFINITY;
  // An old one, after which it spoke again, ends nothing.
  if (sentAt >= state.echoSentAt) state.promisedUntil = Math.min(state.promisedUntil, ctx.now);
  rest(ctx);
}

/** Whether all know that this primary sleeps, or every promise to it has expired: no replica waits for it then. */
export function isLeftAlone(ctx: VsrContext): boolean {
  const { state, config } = ctx;
  if (!state.asleep) return false;
  if (ctx.now - state.restedAt > 2 * config.leaseMs) return true;
  return ctx.others().every((id) => ctx.peer(id).sentAt >= state.restedAt);
}

function rest(ctx: VsrContext): void {
  const { state } = ctx;
  state.asleep = true;
  // A job's group that restarts with everything committed stays asleep.
  markCommit(ctx);
}

/** Somebody wants something of the group. */
export function wake(ctx: VsrContext): void {
  const { state, config } = ctx;
  if (!state.asleep) return;
  state.asleep = false;
  state.activeAt = ctx.now;
  state.wokenAt = ctx.now;
  if (state.acting) sendCommit(ctx);
  else if (state.status !== "retired") {
    state.electAt = ctx.now + 2 * config.retransmitMs + rank(ctx) * config.rankDelayMs;
  }
}

/** Whether a sleeping replica accepts the message without waking: echoes of the last heartbeat. */
export function isLullaby(ctx: VsrContext, message: VsrMessage): boolean {
  if (message.kind === "commit") return message.sleeps;
  const isAck = message.kind === "prepareResponse" && message.status === "success";
  return isAck && message.view === ctx.state.knownView;
}
