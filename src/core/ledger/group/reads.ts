/**
 * Strong reads: the primary notes its commit number, asks a quorum whether its view is still current, and then answers.
 * Reads that arrive during a round share the next one. (VSR-24, VSR-25)
 */

import type { VsrContext } from "./context.ts";
import { READS_MAX } from "./limits.ts";
import { sendCommit } from "./send.ts";

export function read(ctx: VsrContext, token: number): void {
  const { state, rules } = ctx;
  if (!state.acting) {
    ctx.emit({ kind: "readFailed", token, primary: state.primary });
    return;
  }
  const byLease = ctx.config.leaseReads && ctx.now < ctx.leaseUntil();
  const unconfirmed = [...state.peers.values()].every(({ sentAt }) => sentAt < state.wokenAt);
  const trusting = !rules.readRound || (!rules.wokenAsks && state.wokenAt >= 0 && unconfirmed);
  if ((byLease || trusting) && ownViewCommitted(ctx)) {
    ctx.emit({ kind: "readReady", token, seq: state.commit });
    return;
  }
  state.activeAt = ctx.now;
  if (state.reads.length >= READS_MAX) {
    ctx.emit({ kind: "readFailed", token, primary: state.primary });
    return;
  }
  state.reads.push({ token, seq: -1, round: -1 });
}

/** Until an entry of its own view is committed, a new primary may lack entries that its predecessor committed. */
function ownViewCommitted(ctx: VsrContext): boolean {
  return ctx.state.commit >= ctx.state.startSeq || !ctx.rules.readAfterOwnCommit;
}

export function startReadRound(ctx: VsrContext): void {
  const { state } = ctx;
  if (state.reads.length === 0 || !ownViewCommitted(ctx)) return;
  const first = state.reads[0];
  if (first === undefined || first.round >= 0) return;
  state.round++;
  for (const pending of state.reads) {
    pending.round = state.round;
    pending.seq = state.commit;
  }
  sendCommit(ctx);
  // No other replica to ask.
  confirmReads(ctx);
}

export function confirmReads(ctx: VsrContext): void {
  const { state } = ctx;
  if (state.reads.length === 0) return;
  const confirmed = ctx.quorumRound();
  let count = 0;
  for (const { token, seq, round } of state.reads) {
    if (round < 0 || round > confirmed) break;
    ctx.emit({ kind: "readReady", token, seq });
    count++;
  }
  if (count > 0) state.reads.splice(0, count);
}

export function failReads(ctx: VsrContext): void {
  const { state } = ctx;
  const failed = state.reads;
  state.reads = [];
  for (const { token } of failed) {
    ctx.emit({ kind: "readFailed", token, primary: null });
  }
}
