/**
 * Every number of the membership protocol, in one typed table of profiles. `lan`, `wan` and `local`
 * are memberlist's; `dc` is the fast one for members of one datacenter. One table, because a profile
 * that borrows fields from another by hand has shipped wrong before.
 */

import { assert } from "../../base/assert.ts";

export type ProfileName = "lan" | "wan" | "local" | "dc";

export interface SwimConfig {
  /** One member is probed per interval; scaled by local health. */
  readonly probeIntervalMs: number;
  /** Direct ack wait; not scaled: the indirect stage is what local health stretches. */
  readonly probeTimeoutMs: number;
  /** Helpers asked to probe on our behalf. */
  readonly indirectChecks: number;
  readonly retransmitMult: number;
  /** No update is told fewer times than this: small clusters under-retransmit. */
  readonly retransmitFloor: number;
  readonly suspicionMult: number;
  readonly suspicionMaxTimeoutMult: number;
  /** Scores run 0 .. max-1; the interval is multiplied by score + 1. */
  readonly awarenessMaxMultiplier: number;
  readonly gossipIntervalMs: number;
  readonly gossipNodes: number;
  /** The dead are still told about themselves this long, so that a live one can refute. */
  readonly gossipToTheDeadMs: number;
  readonly pushPullIntervalMs: number;
  /** How often one dead or lost address is tried again, so that isolation always heals. */
  readonly reconnectIntervalMs: number;
  readonly streamTimeoutMs: number;
  readonly streamPings: boolean;
  /** A dead member's name may be taken from another address after this long; 0: never while dead. */
  readonly deadReclaimMs: number;
  /** Dead and left members stay rejoin candidates this long, then they are forgotten. */
  readonly deadReapMs: number;
  /** Gossip-learned members that never answered; a flood of names stops here. (AD-35) */
  readonly unconfirmedMax: number;
  /** Lifeguard's parts; off only to measure what they are worth. */
  readonly lifeguard: boolean;
}

const common = {
  indirectChecks: 3,
  retransmitMult: 4,
  retransmitFloor: 8,
  suspicionMult: 4,
  suspicionMaxTimeoutMult: 6,
  awarenessMaxMultiplier: 8,
  streamPings: true,
  deadReclaimMs: 30_000,
  deadReapMs: 24 * 3_600_000,
  unconfirmedMax: 4_096,
  lifeguard: true,
} as const;

export const SWIM_PROFILES: Readonly<Record<ProfileName, SwimConfig>> = {
  lan: {
    ...common,
    probeIntervalMs: 1_000,
    probeTimeoutMs: 500,
    gossipIntervalMs: 200,
    gossipNodes: 3,
    gossipToTheDeadMs: 30_000,
    pushPullIntervalMs: 30_000,
    reconnectIntervalMs: 5_000,
    streamTimeoutMs: 10_000,
  },
  wan: {
    ...common,
    probeIntervalMs: 5_000,
    probeTimeoutMs: 3_000,
    suspicionMult: 6,
    gossipIntervalMs: 500,
    gossipNodes: 4,
    gossipToTheDeadMs: 60_000,
    pushPullIntervalMs: 60_000,
    reconnectIntervalMs: 10_000,
    streamTimeoutMs: 30_000,
  },
  local: {
    ...common,
    probeIntervalMs: 1_000,
    probeTimeoutMs: 200,
    indirectChecks: 1,
    retransmitMult: 2,
    suspicionMult: 3,
    gossipIntervalMs: 100,
    gossipNodes: 3,
    gossipToTheDeadMs: 15_000,
    pushPullIntervalMs: 15_000,
    reconnectIntervalMs: 3_000,
    streamTimeoutMs: 1_000,
  },
  dc: {
    ...common,
    probeIntervalMs: 300,
    probeTimeoutMs: 150,
    gossipIntervalMs: 100,
    gossipNodes: 3,
    gossipToTheDeadMs: 30_000,
    pushPullIntervalMs: 30_000,
    reconnectIntervalMs: 3_000,
    streamTimeoutMs: 2_000,
  },
};

/** Relations between the numbers; a configuration that breaks one is refused at start. */
export function checkSwimConfig(config: SwimConfig): void {
  assert(config.probeTimeoutMs > 0, "the probe timeout is positive");
  assert(config.probeTimeoutMs < config.probeIntervalMs, "a probe ends inside its interval");
  assert(
    config.gossipIntervalMs <= config.probeIntervalMs,
    "gossip is at least as often as probes",
  );
  assert(config.suspicionMult >= 1 && config.suspicionMaxTimeoutMult >= 1, "suspicion multiples");
  assert(config.awarenessMaxMultiplier >= 1, "the awareness multiplier is at least one");
  assert(
    config.deadReapMs > config.gossipToTheDeadMs,
    "the dead are told before they are forgotten",
  );
}
