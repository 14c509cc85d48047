/**
 * Leadership of one group: pre-vote, terms, and a lease that a quorum renews.
 *
 *              timeout expired, healthy         majority would vote           majority voted
 *     follower ----------------------> preCandidate ---------> candidate -----------------> leader
 *        ^  ^_________________________________|  term + 1, durable |                            |
 *        |_________________________________________________________|____________________________|
 *              denied, timed out, higher term, quorum lost, resigned, unhealthy
 *
 * - A pre-vote changes nothing anywhere (E5), so a node that returns from isolation causes no disruption (E6): members
 *   with a live leader do not grant, and its term never rose.
 * - Term and vote are durable before any message that depends on them is sent (E2, E3).
 * - A majority is counted over the configured voters, never over the live ones (E4).
 * - The lease: a leader may act until `sent + leaseMs` of the newest heartbeat that a quorum acked; a voter that acked
 *   grants no vote for `leaderTimeoutMs` after it received the heartbeat. The first ends before the second under the
 *   worst allowed drift of clocks, so two leaders never act at the same time (L4). A restarted voter has forgotten its
 *   promise and therefore waits for one timeout.
 */

import { assert, assertNever } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import { millis } from "../../base/brand.ts";
import type { NodeId, Term } from "../../base/ids.ts";
import { COUNTER_MAX, term as toTerm } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { ElectionConfig } from "./config.ts";
import { checkElectionConfig } from "./config.ts";
import { FlapGuard } from "./flap-guard.ts";
import { LeaderLease } from "./leader-lease.ts";
import { MessageGate } from "./message-gate.ts";
import type { ElectionMessage } from "./messages.ts";
import { VOTERS_MAX } from "./messages.ts";
import type { ElectionRules } from "./rules.ts";
import { ELECTION_RULES } from "./rules.ts";
import type {
  ElectionEffect,
  ElectionInput,
  ElectionOptions,
  ElectionState,
  ElectionView,
  SyncMode,
} from "./types.ts";

type Message<Kind> = Extract<ElectionMessage, { kind: Kind }>;

const NEVER = Number.POSITIVE_INFINITY;

export class Election {
  readonly #options: ElectionOptions;
  readonly #config: ElectionConfig;
  readonly #rules: ElectionRules;
  readonly #random: Random;
  readonly #quorum: number;
  readonly #flaps: FlapGuard;
  readonly #lease: LeaderLease;
  #now = 0;
  #out: ElectionEffect[] = [];
  #state: ElectionState = "follower";
  #mode: SyncMode;
  #term: Term;
  #votedFor: NodeId | null;
  #leader: NodeId | null = null;
  #lastLeader: NodeId | null = null;
  /** Grants nothing until then: we received a leader's heartbeat and promised to wait. */
  #promiseUntil = Number.NEGATIVE_INFINITY;
  /** When a follower runs, or a candidate gives up. */
  #electionAt = NEVER;
  #heartbeatAt = NEVER;
  #syncAt = NEVER;
  #syncAttempts = 0;
  #round = 0;
  readonly #grants: NodeId[] = [];
  readonly #denials: NodeId[] = [];
  readonly #gate: MessageGate;
  #score = 0;
  #alive = true;

  constructor(options: ElectionOptions, random: Random, rules: ElectionRules = ELECTION_RULES) {
    checkElectionConfig(options.config);
    assert(options.voters.includes(options.self), "we are one of the voters");
    assert(new Set(options.voters).size === options.voters.length, "voters are distinct");
    assert(options.voters.length <= VOTERS_MAX, "the electorate is within its bound");
    this.#options = options;
    this.#config = options.config;
    this.#rules = rules;
    this.#random = random;
    const majority = Math.floor(options.voters.length / 2) + 1;
    this.#quorum = rules.quorumConfigured ? majority : Math.max(1, majority - 1);
    this.#gate = new MessageGate(options, (effect) => this.#out.push(effect));
    this.#flaps = new FlapGuard(options.config);
    this.#lease = new LeaderLease(options.config, this.#quorum, rules);
    this.#term = options.durable.term;
    this.#votedFor = options.durable.votedFor;
    this.#mode = options.mustSync ? "syncing" : "active";
  }

  step(input: ElectionInput, now: Millis): readonly ElectionEffect[] {
    assert(now >= this.#now, "time does not run backwards");
    this.#now = now;
    this.#out = [];
    switch (input.kind) {
      case "start":
        this.#start();
        break;
      case "tick":
        this.#tick();
        break;
      case "message":
        if (!this.#gate.passes(input, this.#term, now)) break;
        this.#onMessage(input.from, input.message);
        break;
      case "electorate":
        this.#gate.sameElectorate(input.from, input.electorate, now);
        break;
      case "health":
        this.#onHealth(input.score, input.alive);
        break;
      case "resign":
        this.#resign("asked to");
        break;
      case "drain":
        this.#setMode("draining");
        this.#resign("draining");
        break;
      case "syncDone":
        this.#syncAt = NEVER;
        if (this.#mode === "syncing") this.#setMode("active");
        break;
      case "syncFailed":
        this.#onSyncFailed();
        break;
      default:
        assertNever(input);
    }
    return this.#out;
  }

  nextDeadline(): Millis | null {
    const lossAt = this.#rules.stepDownWithoutQuorum ? this.#lease.lossAt() : NEVER;
    const next = this.#state === "leader" ? Math.min(this.#heartbeatAt, lossAt) : this.#electionAt;
    const soonest = Math.min(next, this.#syncAt);
    return soonest === NEVER ? null : millis(soonest);
  }

  get term(): Term {
    return this.#term;
  }

  get state(): ElectionState {
    return this.#state;
  }

  /** E7: true only inside a lease that a quorum of the configured voters renewed. */
  mayAct(now: number): boolean {
    return this.#state === "leader" && now < this.#lease.until();
  }

  snapshot(): ElectionView {
    const until = this.#lease.until();
    return {
      state: this.#state,
      mode: this.#mode,
      term: this.#term,
      votedFor: this.#votedFor,
      leader: this.#leader,
      leaseUntil: this.#state === "leader" && until > Number.NEGATIVE_INFINITY ? until : null,
      quorum: this.#quorum,
      coolingDownUntil: this.#flaps.coolingUntil(this.#now),
      electorate: this.#gate.electorate,
      alarms: this.#gate.counts,
    };
  }

  #start(): void {
    // Promises made before a restart are forgotten; waiting for one leader timeout keeps them anyway.
    if (this.#rules.restartWaits) this.#promiseUntil = this.#now + this.#config.leaderTimeoutMs;
    this.#awaitLeader();
  }

  #tick(): void {
    if (this.#now >= this.#syncAt) this.#requestSync();
    if (this.#state === "leader") {
      if (this.#now >= this.#lease.lossAt() && this.#rules.stepDownWithoutQuorum) {
        this.#follow(null, "quorum lost");
      } else if (this.#now >= this.#heartbeatAt) this.#beat();
      return;
    }
    if (this.#now < this.#electionAt) return;
    if (this.#state === "follower") this.#stand();
    else this.#retreat("no majority in time");
  }

  // ---- standing -------------------------------------------------------------------------------

  /** A lower score and a higher priority run earlier; never before the promise expires. (LEAD-9) */
  #awaitLeader(): void {
    const { leaderTimeoutMs, leaderTimeoutJitterMs, healthStepMs, priorityStepMs } = this.#config;
    const handicapMs = this.#score * healthStepMs - this.#options.priority * priorityStepMs;
    const jitterMs = this.#random.float() * leaderTimeoutJitterMs;
    this.#electionAt = this.#now + leaderTimeoutMs + Math.max(0, jitterMs + handicapMs);
  }

  #eligible(): boolean {
    if (this.#mode === "draining" || !this.#alive) return false;
    return this.#score <= this.#config.healthScoreMax || !this.#rules.healthGate;
  }

  #stand(): void {
    if (this.#leader !== null) this.#setLeader(null, "lease lapsed");
    const cooling = this.#flaps.coolingUntil(this.#now);
    const exhausted = this.#term >= COUNTER_MAX;
    if (exhausted) this.#gate.alarm("TERM_EXHAUSTED", this.#options.self, "", this.#now);
    if (cooling !== null || exhausted || !this.#eligible()) {
      this.#awaitLeader();
      if (cooling !== null) this.#electionAt = Math.max(this.#electionAt, cooling);
      return;
    }
    if (!this.#rules.preVoteFirst) {
      this.#candidate();
      return;
    }
    this.#state = "preCandidate";
    this.#openRound(this.#config.preVoteTimeoutMs);
    if (!this.#rules.preVoteKeepsTerm) this.#adopt(toTerm(this.#term + 1), null);
    this.#toOthers({ kind: "preVote", term: toTerm(this.#term + 1), round: this.#round });
    if (this.#grants.length >= this.#quorum) this.#candidate();
  }

  #candidate(): void {
    this.#state = "candidate";
    this.#adopt(toTerm(this.#term + 1), this.#options.self);
    this.#openRound(this.#config.voteTimeoutMs);
    this.#toOthers({ kind: "vote", term: this.#term, round: this.#round });
    if (this.#grants.length >= this.#quorum) this.#lead();
  }

  #openRound(timeoutMs: number): void {
    this.#round++;
    this.#grants.length = 0;
    this.#denials.length = 0;
    this.#grants.push(this.#options.self);
    this.#electionAt = this.#now + timeoutMs;
  }

  /** Back to the others; the next attempt comes after a jittered pause. (AD-5.4) */
  #retreat(why: string): void {
    assert(this.#state !== "leader", "a leader does not retreat, it steps down");
    this.#state = "follower";
    const { leaderTimeoutJitterMs } = this.#config;
    this.#electionAt = this.#now + leaderTimeoutJitterMs * (0.25 + 0.75 * this.#random.float());
    if (this.#leader !== null) this.#setLeader(null, why);
  }

  #onReply(from: NodeId, message: Message<"preVoteReply"> | Message<"voteReply">): void {
    if (message.term > this.#term) {
      if (this.#rules.higherTermWins) this.#stepAside(message.term, null, "higher term");
      return;
    }
    const wanted = message.kind === "voteReply" ? "candidate" : "preCandidate";
    const matches =
      message.round === this.#round &&
      (message.kind !== "voteReply" || message.term === this.#term);
    if (this.#state !== wanted || (!matches && this.#rules.repliesMatchRound)) return;
    const side = message.granted ? this.#grants : this.#denials;
    if (side.includes(from) && this.#rules.votersDistinct) return;
    side.push(from);
    if (this.#grants.length >= this.#quorum) {
      if (wanted === "candidate") this.#lead();
      else this.#candidate();
      return;
    }
    const undecided = this.#options.voters.length - this.#denials.length;
    if (undecided < this.#quorum) this.#retreat("denied");
  }

  // ---- leading --------------------------------------------------------------------------------

  #lead(): void {
    this.#state = "leader";
    this.#lease.begin(this.#now);
    this.#out.push({ kind: "becameLeader", term: this.#term });
    this.#setLeader(this.#options.self, "elected");
    if (this.#mode === "syncing") this.#setMode("active");
    this.#syncAt = NEVER;
    this.#beat();
  }

  #beat(): void {
    this.#heartbeatAt = this.#now + this.#config.heartbeatMs;
    const sequence = this.#lease.sent(this.#now);
    this.#lease.acked(this.#options.self, sequence, this.#now);
    this.#toOthers({ kind: "heartbeat", term: this.#term, sequence });
  }

  #onHeartbeatAck(from: NodeId, message: Message<"heartbeatAck">): void {
    if (message.term > this.#term && this.#rules.higherTermWins) {
      this.#stepAside(message.term, null, "higher term");
      return;
    }
    const current = message.term === this.#term || !this.#rules.repliesMatchRound;
    if (this.#state === "leader" && current) this.#lease.acked(from, message.sequence, this.#now);
  }

  #resign(why: string): void {
    if (this.#state !== "leader") return;
    this.#toOthers({ kind: "stepDown", term: this.#term });
    this.#follow(null, why);
    // Somebody else first.
    this.#electionAt += 2 * this.#config.leaderTimeoutMs;
  }

  // ---- following ------------------------------------------------------------------------------

  #onMessage(from: NodeId, message: ElectionMessage): void {
    switch (message.kind) {
      case "preVote":
        this.#onPreVote(from, message);
        return;
      case "vote":
        this.#onVote(from, message);
        return;
      case "preVoteReply":
      case "voteReply":
        this.#onReply(from, message);
        return;
      case "heartbeat":
        this.#onHeartbeat(from, message);
        return;
      case "heartbeatAck":
        this.#onHeartbeatAck(from, message);
        return;
      case "stepDown":
        this.#onStepDown(from, message);
        return;
      default:
        assertNever(message);
    }
  }

  /** Whether a leader may be relying on our promise. */
  #promised(): boolean {
    if (!this.#rules.promiseHonoured) return false;
    return this.#now < this.#promiseUntil || this.mayAct(this.#now);
  }

  #onPreVote(from: NodeId, message: Message<"preVote">): void {
    const cooling = this.#flaps.coolingUntil(this.#now) !== null;
    const granted = message.term > this.#term && !this.#promised() && !cooling;
    if (granted && !this.#rules.preVoteKeepsTerm) this.#adopt(message.term, null);
    const { round } = message;
    this.#send(from, { kind: "preVoteReply", term: this.#term, round, granted });
  }

  #onVote(from: NodeId, message: Message<"vote">): void {
    const { round } = message;
    const deny = (): void => {
      this.#send(from, { kind: "voteReply", term: this.#term, round, granted: false });
    };
    if (message.term < this.#term || this.#promised()) {
      deny();
      return;
    }
    if (message.term > this.#term) this.#stepAside(message.term, from, "higher term");
    else if (this.#votedFor === null) this.#voteFor(from);
    else if (this.#votedFor !== from && this.#rules.oneVotePerTerm) {
      deny();
      return;
    }
    // Give the one we chose time to win.
    this.#awaitLeader();
    this.#send(from, { kind: "voteReply", term: this.#term, round, granted: true });
  }

  #onHeartbeat(from: NodeId, message: Message<"heartbeat">): void {
    const { sequence } = message;
    if (message.term < this.#term && this.#rules.staleLeaderRefused) {
      // A leader of the past learns that it is one.
      this.#send(from, { kind: "heartbeatAck", term: this.#term, sequence });
      return;
    }
    if (message.term > this.#term) this.#adopt(message.term, null);
    else if (this.#state === "leader") return;
    if (this.#state === "leader") this.#follow(from, "higher term");
    this.#state = "follower";
    this.#promiseUntil = this.#now + this.#config.leaderTimeoutMs;
    this.#awaitLeader();
    if (this.#leader !== from) this.#setLeader(from, "heartbeat");
    this.#send(from, { kind: "heartbeatAck", term: message.term, sequence });
    if (this.#mode === "syncing" && this.#syncAt === NEVER) this.#syncAt = this.#now;
  }

  #onStepDown(from: NodeId, message: Message<"stepDown">): void {
    if (message.term !== this.#term || this.#leader !== from) return;
    this.#promiseUntil = this.#now;
    this.#setLeader(null, "stepped down");
    const { leaderTimeoutJitterMs } = this.#config;
    this.#electionAt = this.#now + this.#random.float() * leaderTimeoutJitterMs;
  }

  #stepAside(term: Term, votedFor: NodeId | null, why: string): void {
    this.#adopt(term, votedFor);
    if (this.#state === "leader") this.#follow(null, why);
    else if (this.#state !== "follower") this.#retreat(why);
  }

  #follow(leader: NodeId | null, why: string): void {
    assert(this.#state === "leader", "only a leader steps down");
    this.#state = "follower";
    this.#heartbeatAt = NEVER;
    this.#lease.end();
    this.#out.push({ kind: "lostLeadership", term: this.#term, why });
    this.#setLeader(leader, why);
    this.#awaitLeader();
  }

  /** E3: terms only rise, and the disk knows before the world does. */
  #adopt(term: Term, votedFor: NodeId | null): void {
    assert(term > this.#term, "a term is adopted only upwards");
    this.#term = term;
    this.#votedFor = votedFor;
    if (this.#rules.persistVotes) {
      this.#out.push({ kind: "persistVote", vote: { term, votedFor } });
    }
    // The leader of an older term leads no longer.
    if (this.#leader !== null && this.#state !== "leader") this.#setLeader(null, "new term");
  }

  #voteFor(candidate: NodeId): void {
    assert(this.#votedFor === null, "one vote per term");
    this.#votedFor = candidate;
    if (!this.#rules.persistVotes) return;
    this.#out.push({ kind: "persistVote", vote: { term: this.#term, votedFor: candidate } });
  }

  #setLeader(leader: NodeId | null, why: string): void {
    this.#leader = leader;
    this.#out.push({ kind: "leaderChanged", leader, term: this.#term, why });
    if (leader === null) return;
    const changed = leader !== this.#lastLeader && this.#lastLeader !== null;
    this.#lastLeader = leader;
    if (!changed) return;
    const cooldownMs = this.#flaps.changed(this.#now);
    if (cooldownMs === null) return;
    const changes = this.#config.flapChangesMax + 1;
    this.#out.push({ kind: "flapping", changes, cooldownMs });
  }

  // ---- health and state sync ------------------------------------------------------------------

  #onHealth(score: number, alive: boolean): void {
    this.#score = score;
    this.#alive = alive;
    if (this.#eligible()) return;
    if (this.#state === "leader") this.#resign("unhealthy");
    else if (this.#state !== "follower") this.#retreat("unhealthy");
  }

  #setMode(mode: SyncMode): void {
    if (this.#mode === mode) return;
    this.#mode = mode;
    this.#out.push({ kind: "modeChanged", mode });
  }

  #requestSync(): void {
    const leader = this.#leader;
    if (leader === null || leader === this.#options.self) {
      this.#syncAt = NEVER;
      return;
    }
    // Retried if neither done nor failed comes back.
    this.#syncAt = this.#now + 4 * this.#config.syncRetryMs;
    this.#out.push({ kind: "requestSync", leader });
  }

  get leader(): NodeId | null {
    return this.#leader;
  }

  /** Votes must not wait for a sync that never comes; data quorums do. (C20-15) */
  #onSyncFailed(): void {
    this.#syncAttempts++;
    this.#syncAt = this.#now + this.#config.syncRetryMs;
    const giveUp = this.#syncAttempts >= this.#config.syncAttemptsMax;
    if (giveUp && this.#mode === "syncing") this.#setMode("active");
  }

  #toOthers(message: ElectionMessage): void {
    for (const voter of this.#options.voters) {
      if (voter !== this.#options.self) this.#send(voter, message);
    }
  }

  #send(to: NodeId, message: ElectionMessage): void {
    this.#out.push({ kind: "send", to, message });
  }
}
