/**
 * State shared by the parts of the membership machine: our own record, the known members, the gossip queue, and the
 * effects of the current step. Parts decide; the context stores and sends.
 */

import { Alarms } from "../../base/alarms.ts";
import type { Address, Incarnation, NodeId } from "../../base/ids.ts";
import { COUNTER_MAX, incarnation as toIncarnation } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { CoordinateEstimator, VIVALDI_DEFAULTS } from "../vivaldi/estimator.ts";
import { Awareness } from "./awareness.ts";
import { BroadcastQueue, retransmitLimit } from "./broadcast-queue.ts";
import type { SwimConfig } from "./config.ts";
import { INCARNATION_BLOCK } from "./limits.ts";
import type { Member } from "./member-table.ts";
import { MemberTable } from "./member-table.ts";
import type {
  DatagramMessage,
  EmbeddedState,
  MemberStatus,
  NodeRecord,
  StreamMessage,
  SwimStreamPacket,
  Update,
} from "./messages.ts";
import {
  COORDINATE_BYTES_MAX,
  ENVELOPE_BYTES_MAX,
  PACKET_BYTES_MAX,
  UPDATES_PER_PACKET_MAX,
  updateBytesMax,
} from "./messages.ts";
import { PeerCounters } from "./peer-counts.ts";
import type { SwimRules } from "./rules.ts";
import {
  type MemberChange,
  type MemberView,
  type Restraint,
  type SwimEffect,
  type SwimOptions,
  type SwimWarning,
  UNRESTRAINED,
} from "./types.ts";

/** Bytes an embedded state adds beside its body. */
const STATE_HEAD_BYTES = 20;

interface MutableCounts {
  probes: number;
  probesFailed: number;
  probesSkipped: number;
  indirectProbes: number;
  streamFallbacks: number;
  suspicions: number;
  deaths: number;
  refutations: number;
  gossipInformedDeaths: number;
  pushPulls: number;
  staleStates: number;
  unknownReplies: number;
}

export class SwimContext {
  readonly options: SwimOptions;
  readonly config: SwimConfig;
  readonly rules: SwimRules;
  readonly random: Random;
  readonly table: MemberTable;
  readonly queue: BroadcastQueue;
  readonly awareness: Awareness;
  readonly estimator: CoordinateEstimator;
  readonly suspects = new Set<Member>();
  readonly counts: MutableCounts = {
    probes: 0,
    probesFailed: 0,
    probesSkipped: 0,
    indirectProbes: 0,
    streamFallbacks: 0,
    suspicions: 0,
    deaths: 0,
    refutations: 0,
    gossipInformedDeaths: 0,
    pushPulls: 0,
    staleStates: 0,
    unknownReplies: 0,
  };
  readonly peers = new PeerCounters();
  now = 0;
  out: SwimEffect[] = [];
  self: NodeRecord;
  incarnation: Incarnation;
  leaving = false;
  /** After our loop stalled, no member is declared dead before this time. */
  judgeFrom = Number.NEGATIVE_INFINITY;
  state: EmbeddedState | null = null;
  restraint: Restraint = UNRESTRAINED;
  readonly alarms = new Alarms<SwimWarning>();
  #ceiling: Incarnation;
  #sequence = 0;

  constructor(options: SwimOptions, rules: SwimRules, random: Random) {
    this.options = options;
    this.config = options.config;
    this.rules = rules;
    this.random = random;
    this.self = options.self;
    this.queue = new BroadcastQueue(updateBytesMax, options.self.id);
    this.table = new MemberTable(options.self.id);
    this.awareness = new Awareness(options.config.awarenessMaxMultiplier);
    this.estimator = new CoordinateEstimator(VIVALDI_DEFAULTS, random.fork("vivaldi"));
    this.incarnation = toIncarnation(rules.resumeAboveCeiling ? options.incarnationCeiling : 0);
    this.#ceiling = options.incarnationCeiling;
  }

  nextSequence(): number {
    this.#sequence++;
    return this.#sequence;
  }

  emit(effect: SwimEffect): void {
    this.out.push(effect);
  }

  warn(code: SwimWarning, about: string): void {
    this.alarms.count(code);
    this.out.push({ kind: "warning", code, about });
  }

  /** Raises a warning that a peer can cause at will: always counted, reported at a limited rate. */
  alarm(code: SwimWarning, about: string): void {
    if (this.alarms.raise(code, this.now)) this.emit({ kind: "warning", code, about });
  }

  /** M1: our incarnation only rises, and the disk knows a number at least as high before anyone else does. */
  raiseIncarnation(above: number): void {
    const raised = Math.max(this.incarnation, above) + 1;
    if (raised > COUNTER_MAX) {
      this.alarm("INCARNATION_EXHAUSTED", this.self.id);
      return;
    }
    const next = toIncarnation(raised);
    this.incarnation = next;
    if (next <= this.#ceiling) return;
    this.#ceiling = toIncarnation(Math.min(COUNTER_MAX, next + INCARNATION_BLOCK));
    if (!this.rules.persistBeforeTelling) return;
    this.emit({ kind: "persistIncarnation", ceiling: this.#ceiling });
  }

  changed(
    kind: MemberChange["kind"],
    member: Member,
    from: MemberStatus | null,
    why: string,
    by: NodeId = member.id,
  ): void {
    const to = kind === "forget" ? null : member.status;
    const change: MemberChange = { kind, member: this.viewOf(member), from, to, why, by };
    this.emit({ kind: "memberChanged", change });
  }

  viewOf(member: Member): MemberView {
    const { coordinate } = member;
    return {
      id: member.id,
      record: member.record,
      status: member.status,
      incarnation: member.incarnation,
      confirmed: member.confirmed,
      changedAt: member.changedAt,
      rttMs: member.rttMs,
      rttEstimateMs: coordinate === null ? null : this.estimator.estimateRttMs(coordinate),
      rttSamplesMs: [...member.rttSamples],
      ageMs: this.now - member.learnedAt,
      confirmAttempts: member.confirmAttempts,
    };
  }

  broadcast(update: Update): void {
    if (this.queue.push(update)) this.warn("GOSSIP_OVERFLOW", update.kind);
  }

  aliveSelf(kind: "join" | "alive"): Update {
    return { kind, node: this.self, incarnation: this.incarnation };
  }

  get #sendsMax(): number {
    if (!this.rules.retransmit) return 1;
    const { retransmitMult, retransmitFloor } = this.config;
    return retransmitLimit(retransmitMult, this.table.liveCount, retransmitFloor);
  }

  /** One datagram with as many riders as fit; `first` rides in any case. */
  send(to: Address, message: DatagramMessage, first: Update | null = null): void {
    this.#send(to, message, first, true);
  }

  /**
   * Sends to an address that may belong to no member. Riders do not count as sent: otherwise a member that knows many
   * unreachable names would spend a suspicion on them, and the suspect would never receive it.
   */
  sendToStranger(to: Address, message: DatagramMessage): void {
    this.#send(to, message, null, false);
  }

  #send(to: Address, message: DatagramMessage, first: Update | null, counted: boolean): void {
    const exchange = message.kind === "ping" || message.kind === "ack";
    const state = exchange ? this.state : null;
    // Workers neither send nor use coordinates. (AD-35)
    const coordinate = exchange && this.self.role !== "worker" ? this.estimator.coordinate : null;
    let budgetBytes = PACKET_BYTES_MAX - ENVELOPE_BYTES_MAX;
    if (state !== null) budgetBytes -= STATE_HEAD_BYTES + state.body.length;
    if (coordinate !== null) budgetBytes -= COORDINATE_BYTES_MAX;
    if (first !== null) budgetBytes -= updateBytesMax(first);
    budgetBytes = Math.floor(budgetBytes * this.restraint.newsShare);
    const riders = this.queue.take({
      budgetBytes,
      overheadBytes: 0,
      sendsMax: this.#sendsMax,
      updatesMax: UPDATES_PER_PACKET_MAX - 1,
      counted,
    });
    const updates = first === null ? riders : [first, ...riders];
    const { id: from, address: fromAddress } = this.self;
    const { incarnation } = this;
    this.emit({
      kind: "send",
      to,
      packet: { from, fromAddress, incarnation, message, coordinate, state, updates },
    });
  }

  streamPacket(message: StreamMessage): SwimStreamPacket {
    return {
      from: this.self.id,
      fromAddress: this.self.address,
      incarnation: this.incarnation,
      message,
      coordinate: null,
      state: null,
      updates: [],
    };
  }

  isSelf(id: NodeId): boolean {
    return id === this.self.id;
  }
}
