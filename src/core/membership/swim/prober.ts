/**
 * One probe at a time: ping, then helpers and a stream, then judgement.
 *
 *     0            probeTimeout                     interval x (score + 1)
 *     |--- direct ---|--- helpers and stream, in parallel ---|  no answer: suspect
 *
 * Rounds never overlap: a degraded member's longer interval moves the next round too (1.5.10). A helper that cannot
 * reach the target answers with a nack, in time for the prober's deadline, so that the prober can distinguish a dead
 * target from its own lost packets. A refused stream proves that no process listens there; the round ends on it without
 * waiting for the nacks.
 */

import { assert } from "../../base/assert.ts";
import type { Address, NodeId } from "../../base/ids.ts";
import { filterLatency, VIVALDI_DEFAULTS } from "../vivaldi/estimator.ts";
import type { SwimContext } from "./context.ts";
import { RELAYS_MAX } from "./limits.ts";
import type { Member } from "./member-table.ts";
import { isLive } from "./member-table.ts";
import type { Membership } from "./membership.ts";
import type { DatagramMessage, SwimDatagram, Update } from "./messages.ts";

type Message<Kind> = Extract<DatagramMessage, { kind: Kind }>;

interface Round {
  readonly target: NodeId;
  readonly address: Address;
  readonly sequence: number;
  readonly sentAt: number;
  readonly directDeadline: number;
  readonly deadline: number;
  stage: "direct" | "indirect";
  nacksExpected: number;
  nackedBy: NodeId[];
  /** The fallback stream was refused: positive evidence, no need to wait. */
  refused: boolean;
}

interface Relay {
  readonly origin: Address;
  readonly originSequence: number;
  readonly target: NodeId;
  readonly deadline: number;
}

interface Greeting {
  readonly target: NodeId;
  readonly sentAt: number;
}

const GREETINGS_OPEN_MAX = 256;
/** A nack must reach the prober before its round ends: this share of the time left to it. */
const NACK_SHARE = 0.8;
const RTT_GAIN = 0.25;
/**
 * Probe intervals without a probe after which none is left out: nothing else could show that we are well again, and
 * bad health has made the rounds longer already.
 */
const SILENT_INTERVALS_MAX = 16;

export class Prober {
  readonly #context: SwimContext;
  readonly #membership: Membership;
  readonly #openStream: (to: Address, target: NodeId, timeoutMs: number) => void;
  readonly #relays = new Map<number, Relay>();
  /** Pings outside rounds: first contact with unconfirmed members. */
  readonly #greetings = new Map<number, Greeting>();
  #round: Round | null = null;
  #nextAt = 0;
  #probedAt = 0;

  constructor(
    context: SwimContext,
    membership: Membership,
    openStream: (to: Address, target: NodeId, timeoutMs: number) => void,
  ) {
    this.#context = context;
    this.#membership = membership;
    this.#openStream = openStream;
  }

  get relayCount(): number {
    return this.#relays.size;
  }

  get greetingCount(): number {
    return this.#greetings.size;
  }

  /** Members that start together should not probe in step. */
  start(): void {
    const { now, random, config } = this.#context;
    this.#nextAt = now + random.float() * config.probeIntervalMs;
  }

  nextDeadline(): number {
    let next = this.#nextAt;
    if (this.#round?.stage === "direct") next = Math.min(next, this.#round.directDeadline);
    for (const relay of this.#relays.values()) return Math.min(next, relay.deadline);
    return next;
  }

  /** Ends what is due. True when a new round began, which is the beat of slower housekeeping. */
  tick(): boolean {
    const { now } = this.#context;
    this.#expireRelays();
    const round = this.#round;
    if (round !== null && round.stage === "direct" && now >= round.directDeadline) {
      this.#askAround(round);
    }
    if (now < this.#nextAt) return false;
    if (this.#round !== null) this.#fail(this.#round);
    this.#begin();
    return true;
  }

  /** Drops the probe in flight after our loop stalled: it proves nothing. */
  abandon(): void {
    this.#round = null;
    this.#relays.clear();
    this.#nextAt = this.#context.now;
  }

  #begin(): void {
    const context = this.#context;
    const { now, config, table } = context;
    const intervalMs = context.awareness.scale(config.probeIntervalMs);
    this.#nextAt = now + intervalMs;
    const target = context.leaving ? null : table.nextToProbe(context.random);
    if (target === null || this.#skips(target)) return;
    context.counts.probes++;
    this.#round = {
      target: target.id,
      address: target.record.address,
      sequence: context.nextSequence(),
      sentAt: now,
      directDeadline: now + config.probeTimeoutMs,
      deadline: now + intervalMs,
      stage: "direct",
      nacksExpected: 0,
      nackedBy: [],
      refused: false,
    };
    const { sequence } = this.#round;
    const message: DatagramMessage = { kind: "ping", sequence, target: target.id };
    context.send(target.record.address, message, this.#buddy(target));
  }

  /** A slow member probes less, but never skips suspects or the leader. (BP-3) */
  #skips({ id, status }: Member): boolean {
    const { config, counts, now, random, restraint } = this.#context;
    const { leader, probesSkipped } = restraint;
    const isSilent = now - this.#probedAt >= SILENT_INTERVALS_MAX * config.probeIntervalMs;
    const isEssential = status === "suspect" || id === leader || isSilent;
    if (probesSkipped === 0 || isEssential || random.float() >= probesSkipped) {
      this.#probedAt = now;
      return false;
    }
    counts.probesSkipped++;
    return true;
  }

  /** Lifeguard's buddy system: a ping to a suspect carries the suspicion. (B-18) */
  #buddy(target: Member): Update | null {
    const { config, self } = this.#context;
    if (target.status !== "suspect" || !config.lifeguard) return null;
    return { kind: "suspect", id: target.id, incarnation: target.incarnation, from: self.id };
  }

  #askAround(round: Round): void {
    const context = this.#context;
    const { config, table, now } = context;
    assert(round.stage === "direct", "a round times out once per stage");
    round.stage = "indirect";
    context.counts.indirectProbes++;
    const helpers = context.rules.askHelpers ? this.#pickHelpers(round.target) : [];
    round.nacksExpected = helpers.length;
    const { sequence, target, address } = round;
    for (const helper of helpers) {
      context.send(helper.record.address, {
        kind: "pingRequest",
        sequence,
        target,
        targetAddress: address,
      });
    }
    const streams = config.streamPings && table.get(target) !== undefined;
    if (streams) this.#openStream(address, target, round.deadline - now);
  }

  /** Gates and managers help; workers only if there are no others. (SWIM-3) */
  #pickHelpers(target: NodeId): Member[] {
    const { config, table, random } = this.#context;
    const able = (member: Member): boolean =>
      member.id !== target && member.status === "alive" && member.confirmed;
    const helpers = table.pick(
      config.indirectChecks,
      random,
      (member) => able(member) && member.record.role !== "worker",
    );
    return helpers.length > 0 ? helpers : table.pick(config.indirectChecks, random, able);
  }

  #fail(round: Round): void {
    const context = this.#context;
    this.#round = null;
    const member = context.table.get(round.target);
    context.counts.probesFailed++;
    if (member === undefined || !isLive(member)) return;
    if (!member.confirmed && context.rules.unconfirmedProtected) return;
    if (context.config.lifeguard) context.awareness.apply(this.#healthDelta(round));
    const { self } = context;
    this.#membership.suspect(member.id, member.incarnation, self.id, "own");
  }

  /** A missing nack indicates that we lose packets; silence without helpers may be our fault too. (11-13) */
  #healthDelta(round: Round): number {
    if (round.refused) return 0;
    return round.nacksExpected === 0 ? 1 : round.nacksExpected - round.nackedBy.length;
  }

  #succeed(): void {
    this.#round = null;
    if (this.#context.config.lifeguard) this.#context.awareness.apply(-1);
  }

  onPing(message: Message<"ping">, packet: SwimDatagram, source: Address): void {
    const context = this.#context;
    if (!context.isSelf(message.target) && context.rules.pingNamesTarget) return;
    const { table, self } = context;
    const sender = table.get(packet.from);
    const { sequence } = message;
    const rttMs = sender?.rttMs ?? 0;
    const ack: DatagramMessage = {
      kind: "ack",
      sequence,
      target: self.id,
      relayed: false,
      rttMs,
    };
    context.send(source, ack, obituary(sender, self.id));
  }

  onPingRequest(message: Message<"pingRequest">, source: Address): void {
    const context = this.#context;
    const { config, now } = context;
    if (this.#relays.size >= RELAYS_MAX && context.rules.boundsHeld) return;
    const sequence = context.nextSequence();
    const waitMs = Math.min(config.probeTimeoutMs, config.probeIntervalMs - config.probeTimeoutMs);
    this.#relays.set(sequence, {
      origin: source,
      originSequence: message.sequence,
      target: message.target,
      deadline: now + NACK_SHARE * waitMs,
    });
    context.sendToStranger(message.targetAddress, {
      kind: "ping",
      sequence,
      target: message.target,
    });
  }

  onAck(message: Message<"ack">, packet: SwimDatagram): void {
    const context = this.#context;
    const { sequence, target } = message;
    const round = this.#round;
    const ours = round !== null && round.target === target;
    if (ours && (round.sequence === sequence || !context.rules.ackMatchesRound)) {
      if (!message.relayed) this.#sample(packet, context.now - round.sentAt);
      this.#succeed();
      return;
    }
    const relay = this.#relays.get(sequence);
    if (relay !== undefined && relay.target === target && !message.relayed) {
      this.#relays.delete(sequence);
      context.send(relay.origin, {
        kind: "ack",
        sequence: relay.originSequence,
        target,
        relayed: true,
        rttMs: 0,
      });
      return;
    }
    const greeting = this.#greetings.get(sequence);
    if (greeting !== undefined && greeting.target === target && !message.relayed) {
      this.#greetings.delete(sequence);
      this.#sample(packet, context.now - greeting.sentAt);
      return;
    }
    context.counts.unknownReplies++;
  }

  onNack(message: Message<"nack">, packet: SwimDatagram): void {
    const round = this.#round;
    if (round === null || round.sequence !== message.sequence || round.target !== message.target) {
      this.#context.counts.unknownReplies++;
      return;
    }
    const counts = round.stage === "indirect" && round.nackedBy.length < round.nacksExpected;
    if (counts && !round.nackedBy.includes(packet.from)) round.nackedBy.push(packet.from);
  }

  /** The fallback stream answered: the member is alive, its datagrams do not arrive. (B-19) */
  onStreamAck(target: NodeId): void {
    if (this.#round?.target !== target) return;
    this.#context.counts.streamFallbacks++;
    this.#context.warn("STREAM_ONLY", target);
    this.#succeed();
  }

  onStreamFailed(target: NodeId, refused: boolean): void {
    const round = this.#round;
    if (round === null || round.target !== target || !refused) return;
    round.refused = true;
    this.#fail(round);
  }

  /** A local write error is as good as silence, and known sooner. (B-24) */
  onSendFailed(to: Address): void {
    const round = this.#round;
    if (round !== null && round.address === to && round.stage === "direct") this.#askAround(round);
  }

  greet(member: Member): void {
    const context = this.#context;
    const sequence = context.nextSequence();
    member.greetings++;
    this.#greetings.set(sequence, { target: member.id, sentAt: context.now });
    for (const [oldest, greeting] of this.#greetings) {
      const fresh = context.now - greeting.sentAt < 10_000;
      if (fresh && this.#greetings.size <= GREETINGS_OPEN_MAX) break;
      this.#greetings.delete(oldest);
    }
    context.sendToStranger(member.record.address, { kind: "ping", sequence, target: member.id });
  }

  #expireRelays(): void {
    const context = this.#context;
    for (const [sequence, relay] of this.#relays) {
      if (relay.deadline > context.now) return;
      this.#relays.delete(sequence);
      if (!context.config.lifeguard) continue;
      const { originSequence, target } = relay;
      context.send(relay.origin, { kind: "nack", sequence: originSequence, target });
    }
  }

  /** A direct round trip: smoothed per member, and a step of our coordinate. (B-25, AD-35.3) */
  #sample(packet: SwimDatagram, rttMs: number): void {
    const context = this.#context;
    const member = context.table.get(packet.from);
    if (member === undefined) return;
    member.rttMs = member.rttMs === null ? rttMs : member.rttMs + RTT_GAIN * (rttMs - member.rttMs);
    const { coordinate } = packet;
    if (coordinate === null || !context.estimator.accepts(coordinate, rttMs)) return;
    member.coordinate = coordinate;
    if (context.self.role === "worker") return;
    const size = VIVALDI_DEFAULTS.latencyFilterSize;
    context.peers.predicted(context.estimator.estimateRttMs(coordinate), rttMs);
    context.estimator.update(coordinate, filterLatency(member.rttSamples, rttMs, size));
  }
}

/** A member listed as dead or left sent a packet: notify it, so that it can refute. (memberlist issue #311) */
function obituary(sender: Member | undefined, from: NodeId): Update | null {
  if (sender === undefined || isLive(sender)) return null;
  const { id, incarnation } = sender;
  const kind = sender.status === "left" ? "left" : "dead";
  return { kind, id, incarnation, from };
}
