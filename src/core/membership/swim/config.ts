/**
 * Every number of the membership protocol, in one typed table of profiles. `lan`, `wan` and `local`
 * are memberlist's; `dc` is the fast one for members of one datacenter. One table, because a profile
 * that borrows fields from another by hand has shipped wrong before.
 */

import { assert } from "../../base/assert.ts";

export type ProfileName = "lan" | "wan" | "local" | "dc";

/**
 * All members of a cluster should run one profile: a member with shorter times suspects the others
 * sooner than they can answer.
 */
export interface SwimConfig {
  /**
   * Milliseconds per probe round: one member is probed in each, all in turn. Multiplied by local health
   * + 1. It sets the time to detect a failure and, with one ping per member and interval, the load.
   */
  readonly probeIntervalMs: number;
  /**
   * Milliseconds to wait for a direct ack before helpers are asked; not scaled by local health, which
   * stretches the indirect stage. Set it above the 99th percentile of the round trip, and so that the
   * indirect stage fits into the rest of the interval.
   */
  readonly probeTimeoutMs: number;
  /** Helpers asked to probe on our behalf. With 0, every lost packet would count as a failure. */
  readonly indirectChecks: number;
  /**
   * An update is sent `retransmitMult * ceil(log10(n + 1))` times. Higher spreads it more surely and costs
   * bandwidth; the time that rumours take hardly changes.
   */
  readonly retransmitMult: number;
  /** No update is sent fewer times than this: the formula gives small clusters too few. */
  readonly retransmitFloor: number;
  /**
   * A suspect has at least `suspicionMult * max(1, log10(n)) * probeIntervalMs` to refute, and
   * `suspicionMult - 2` confirmations shorten a suspicion to this minimum. Do not lower it to detect
   * failures sooner: slow members are then declared dead. Shorten the probe interval instead.
   */
  readonly suspicionMult: number;
  /** With a single accuser a suspect has this many times the minimum (Lifeguard). 1: always the minimum. */
  readonly suspicionMaxTimeoutMult: number;
  /** Local health scores run from 0 to this - 1; the probe interval is multiplied by score + 1. */
  readonly awarenessMaxMultiplier: number;
  /** Milliseconds between gossip rounds while there is something to spread; at most a probe interval. */
  readonly gossipIntervalMs: number;
  /** Members that one gossip round is sent to. */
  readonly gossipNodes: number;
  /** Milliseconds for which dead members still receive gossip, so that a live one can refute. */
  readonly gossipToTheDeadMs: number;
  /**
   * Milliseconds between full exchanges of the member list with one member, over a stream; stretched in
   * large clusters. They repair what gossip lost. An exchange costs O(n) bytes.
   */
  readonly pushPullIntervalMs: number;
  /** Milliseconds between attempts to reach one dead or lost address, so that isolation always heals. */
  readonly reconnectIntervalMs: number;
  /** Milliseconds that one exchange over a stream may take. */
  readonly streamTimeoutMs: number;
  /**
   * Ping over a stream, beside the helpers, when a direct ping was not answered. Without it, a network that drops only
   * datagrams looks like failed members.
   */
  readonly streamPings: boolean;
  /** Milliseconds after which a dead member's name may be taken from another address; 0: never. */
  readonly deadReclaimMs: number;
  /**
   * Milliseconds for which dead and left members stay candidates for reconnection; then they are
   * forgotten. Shorter than a partition lasts, the two sides never find each other again.
   */
  readonly deadReapMs: number;
  /** Members learned by gossip that never answered; a flood of names stops here. (AD-35) */
  readonly unconfirmedMax: number;
  /** Lifeguard's parts. Off only to measure what they are worth. */
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
  assert(config.indirectChecks >= 1, "a silent member is asked after before it is suspected");
  assert(config.gossipIntervalMs > 0 && config.gossipNodes >= 1, "gossip reaches somebody");
  assert(config.retransmitMult >= 1 && config.retransmitFloor >= 1, "an update is sent at all");
  assert(config.pushPullIntervalMs > 0 && config.reconnectIntervalMs > 0, "exchanges have a pause");
  assert(config.streamTimeoutMs > 0, "an exchange has time to end");
  assert(config.unconfirmedMax >= 1, "a member can be learned of");
  assert(config.suspicionMult >= 1 && config.suspicionMaxTimeoutMult >= 1, "suspicion multiples");
  assert(config.awarenessMaxMultiplier >= 1, "the awareness multiplier is at least one");
  assert(
    config.deadReapMs > config.gossipToTheDeadMs,
    "the dead are told before they are forgotten",
  );
}
