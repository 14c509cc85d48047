/**
 * State machine for the role of a node: what it is now, and what to do about leadership. (TQ-1, TQ-3)
 *
 *     boot ─► electing ──acquired──► leading ──renewal failed──► working ──period──► electing
 *                └──held by another──► working
 *     observer stays observer.
 *
 * Trust is local and shorter than the lease: it is counted from before the renewal was sent, on this process's
 * monotonic clock, so a leader that was paused knows it must not act. The database's fence makes a wrong belief
 * harmless; this makes it rare.
 */

import { assertNever } from "../base/assert.ts";
import type { Role } from "./settings.ts";

interface RoleOptions {
  readonly role: Role;
  readonly leaseMs: number;
  readonly renewMs: number;
}

export type RoleState =
  | { readonly kind: "observing" }
  | { readonly kind: "working"; readonly tryAt: number | null }
  | {
      readonly kind: "leading";
      readonly epoch: number;
      readonly renewAt: number;
      readonly trustedUntil: number;
    };

type RoleInput =
  | { readonly kind: "acquired"; readonly epoch: number; readonly sentAt: number }
  | { readonly kind: "held" }
  | { readonly kind: "renewed"; readonly sentAt: number }
  | { readonly kind: "renewalRefused" }
  | { readonly kind: "renewalFailed" };

/** Part of the lease that is never trusted: commit and network time on both sides. */
const TRUST_SHARE = 0.9;
/** Attempts per lease of a node that waits to lead; takeover comes soon after an expiry. */
const TRIES_PER_RENEWAL = 4;

export function bootState(options: RoleOptions, now: number): RoleState {
  if (options.role === "observer") return { kind: "observing" };
  return { kind: "working", tryAt: options.role === "worker" ? null : now };
}

export function stepRole(
  options: RoleOptions,
  state: RoleState,
  input: RoleInput,
  now: number,
): RoleState {
  const retry: RoleState = { kind: "working", tryAt: now + options.renewMs / TRIES_PER_RENEWAL };
  switch (input.kind) {
    case "acquired":
      return {
        kind: "leading",
        epoch: input.epoch,
        renewAt: input.sentAt + options.renewMs,
        trustedUntil: input.sentAt + options.leaseMs * TRUST_SHARE,
      };
    case "held":
      return retry;
    case "renewed":
      if (state.kind !== "leading") return state;
      return {
        ...state,
        renewAt: input.sentAt + options.renewMs,
        trustedUntil: input.sentAt + options.leaseMs * TRUST_SHARE,
      };
    case "renewalFailed":
      // The database did not answer: retry soon, and keep leading only while the lease is trusted.
      if (state.kind !== "leading") return state;
      if (now >= state.trustedUntil) return retry;
      return { ...state, renewAt: now + options.renewMs / TRIES_PER_RENEWAL };
    case "renewalRefused":
      return state.kind === "leading" ? retry : state;
    default:
      return assertNever(input);
  }
}

/** When the driver must act next: renew, step down, or try to lead. */
export function nextRoleDeadline(state: RoleState): number | null {
  if (state.kind === "leading") return Math.min(state.renewAt, state.trustedUntil);
  return state.kind === "working" ? state.tryAt : null;
}
