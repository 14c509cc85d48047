/**
 * Leadership's invariants, checked after every step of every voter:
 *
 *   E1  at most one leader per term                E2  one vote per voter and term, durable before it is sent
 *   E3  terms are durable-monotone                 E4  a leader has a quorum of the configured voters
 *   E5  pre-votes change no term: a new term follows a pre-vote majority
 *   E7  a leader without its quorum stops          E8  a higher term wins, an older leader is rejected
 *   L1  no two leaders may act at one time         L4  a lease is what a quorum acked, counted from the sending;
 *   G1  no unhealthy member leads                      and no voter that acked votes while it lasts
 */

import type { NodeId } from "../../../src/core/base/ids.ts";
import type { ElectionConfig } from "../../../src/core/membership/election/config.ts";
import type { ElectionEffect, ElectionInput } from "../../../src/core/membership/election/types.ts";
import type { World } from "../../kernel/world.ts";
import type { SimNode } from "../node.ts";
import type { Violations } from "./violations.ts";

type Sent = Extract<ElectionEffect, { kind: "send" }>;

interface Beat {
  readonly sequence: number;
  readonly at: number;
  readonly ackedBy: Set<NodeId>;
}

interface Voter {
  life: number;
  term: number;
  /** Highest term in any message of any incarnation of this voter. */
  termAnnounced: number;
  /** World time of the last heartbeat it acked, and of whom; survives restarts, unlike the voter's memory. */
  ackedAt: number;
  ackedLeader: NodeId | null;
  score: number;
  /** The step in progress receives from a leader of the voter's own term. */
  heard: boolean;
  /** The leader's own heartbeats: when sent (local), and who acked. */
  readonly beats: Beat[];
  leaseUntil: number;
  ledSince: number;
  /** The pre-vote round in progress and who granted it. */
  preVote: {
    readonly term: number;
    readonly round: number;
    readonly grantedBy: Set<NodeId>;
  } | null;
}

const BEATS_KEPT = 32;

export class ElectionChecker {
  readonly #world: World;
  readonly #violations: Violations;
  readonly #config: ElectionConfig;
  readonly #voters: readonly SimNode[];
  readonly #quorum: number;
  readonly #states = new Map<NodeId, Voter>();
  readonly #leaders = new Map<number, NodeId>();
  readonly #votes = new Map<string, NodeId>();
  termHighest = 0;

  constructor(
    world: World,
    violations: Violations,
    config: ElectionConfig,
    voters: readonly SimNode[],
  ) {
    this.#world = world;
    this.#violations = violations;
    this.#config = config;
    this.#voters = voters;
    this.#quorum = Math.floor(voters.length / 2) + 1;
  }

  get leaderTerms(): number {
    return this.#leaders.size;
  }

  onElectionDone(node: SimNode, effect: ElectionEffect): void {
    if (effect.kind !== "send") return;
    const voter = this.#voter(node);
    const { message } = effect;
    this.#checkDurable(node, voter, effect);
    if (message.kind === "voteReply" && message.granted) this.#onVote(node, effect);
  }

  /** E2, E3: whatever a message rests on is on the disk when the message leaves. */
  #checkDurable(node: SimNode, voter: Voter, effect: Sent): void {
    const { message } = effect;
    // A pre-vote speaks of a term that it does not take.
    const term = message.kind === "preVote" ? message.term - 1 : message.term;
    voter.termAnnounced = Math.max(voter.termAnnounced, term);
    if (message.kind === "heartbeat" || message.kind === "preVote") return;
    const durable = node.durableVote();
    const granted = message.kind === "voteReply" && message.granted;
    const stood = message.kind === "vote";
    const held = durable.term > term || (durable.term === term && !granted && !stood);
    const voted =
      durable.term === term &&
      durable.votedFor === (stood ? node.id : effect.to) &&
      (granted || stood);
    if (!(held || voted))
      this.#violations.report(
        granted || stood ? "E2" : "E3",
        `${node.id} says ${message.kind} ${term} with ${durable.term}/${durable.votedFor} on disk`,
      );
  }

  #onVote(node: SimNode, effect: Sent): void {
    const key = `${node.id}/${effect.message.term}`;
    const before = this.#votes.get(key);
    if (!(before === undefined || before === effect.to))
      this.#violations.report(
        "E2",
        `${node.id} votes for ${effect.to} after ${before} in term ${effect.message.term}`,
      );
    this.#votes.set(key, effect.to);
  }

  /** L4: a voter that acked a heartbeat grants nothing while that lease may last, even across a restart. */
  #checkPatience(node: SimNode, voter: Voter, effect: Sent): void {
    const leaseMs = this.#config.leaseMs * (1 - this.#config.clockDriftMax / 2);
    const sinceMs = this.#world.now - voter.ackedAt;
    if (!(sinceMs >= leaseMs || voter.ackedLeader === effect.to))
      this.#violations.report(
        "L4",
        `${node.id} grants ${effect.to} ${sinceMs} ms after it acked ${voter.ackedLeader}`,
      );
  }

  onElection(node: SimNode, input: ElectionInput, effects: readonly ElectionEffect[]): void {
    const { election } = node;
    if (election === null) return;
    const voter = this.#voter(node);
    const term = election.term;
    if (!(term >= voter.term))
      this.#violations.report("E3", `${node.id} fell from term ${voter.term} to ${term}`);
    if (input.kind === "health") voter.score = input.score;
    voter.heard =
      input.kind === "message" && input.message.kind === "heartbeat" && input.message.term === term;
    if (input.kind === "message") this.#onInput(node, voter, input);
    if (term > this.termHighest) this.#onNewTerm(node, voter, term);
    voter.term = term;
    for (const effect of effects) this.#onEffect(node, voter, effect);
    this.#checkLease(node, voter);
  }

  #voter(node: SimNode): Voter {
    const known = this.#states.get(node.id);
    if (known !== undefined && known.life === node.life) return known;
    const term = node.election?.term ?? 0;
    const termAnnounced = known?.termAnnounced ?? 0;
    if (!(term >= termAnnounced))
      this.#violations.report(
        "E3",
        `${node.id} starts at term ${term} after having announced ${termAnnounced}`,
      );
    const fresh: Voter = {
      life: node.life,
      term,
      termAnnounced,
      ackedAt: known?.ackedAt ?? Number.NEGATIVE_INFINITY,
      ackedLeader: known?.ackedLeader ?? null,
      score: 0,
      heard: false,
      beats: [],
      leaseUntil: Number.NEGATIVE_INFINITY,
      ledSince: Number.NEGATIVE_INFINITY,
      preVote: null,
    };
    this.#states.set(node.id, fresh);
    return fresh;
  }

  #onInput(node: SimNode, voter: Voter, input: Extract<ElectionInput, { kind: "message" }>): void {
    const { message, from } = input;
    if (message.kind === "heartbeatAck" && message.term === voter.term) {
      this.#onAck(voter, from, message.sequence);
    }
    const counts = message.kind === "preVoteReply" && message.granted;
    if (counts && voter.preVote?.round === message.round) voter.preVote.grantedBy.add(from);
    if (message.kind === "stepDown" && voter.ackedLeader === from) {
      voter.ackedAt = Number.NEGATIVE_INFINITY;
    }
    const answers =
      message.kind === "preVoteReply" ||
      message.kind === "voteReply" ||
      message.kind === "heartbeatAck" ||
      message.kind === "heartbeat";
    if (!answers) return;
    const term = node.election?.term ?? 0;
    if (!(term >= message.term))
      this.#violations.report(
        "E8",
        `${node.id} stays at term ${term} against ${message.kind} ${message.term}`,
      );
    const obeyed = message.kind === "heartbeat" && message.term < voter.term;
    if (!(!obeyed || node.election?.leader !== from || voter.ackedLeader === from))
      this.#violations.report(
        "E8",
        `${node.id} at term ${voter.term} follows ${from} of term ${message.term}`,
      );
  }

  /** An ack covers the heartbeats before it too; those before the last one acked are settled. */
  #onAck(voter: Voter, from: NodeId, sequence: number): void {
    const { beats } = voter;
    for (let i = beats.length - 1; i >= 0; i--) {
      const beat = beats[i] as Beat;
      if (beat.sequence > sequence) continue;
      if (beat.ackedBy.has(from)) return;
      beat.ackedBy.add(from);
      if (beat.ackedBy.size < this.#quorum) continue;
      voter.leaseUntil = Math.max(voter.leaseUntil, beat.at + this.#config.leaseMs);
    }
  }

  /** E5: a term that is new to all follows a pre-vote majority for it. */
  #onNewTerm(node: SimNode, voter: Voter, term: number): void {
    this.termHighest = term;
    if (this.#quorum === 1) return;
    const { preVote } = voter;
    const backed = preVote !== null && preVote.term === term ? preVote.grantedBy.size : 0;
    if (!(backed >= this.#quorum))
      this.#violations.report(
        "E5",
        `${node.id} raises the term to ${term} with ${backed} pre-votes`,
      );
  }

  #onEffect(node: SimNode, voter: Voter, effect: ElectionEffect): void {
    if (effect.kind === "send") {
      const { message } = effect;
      const grants = message.kind === "preVoteReply" || message.kind === "voteReply";
      if (grants && message.granted) this.#checkPatience(node, voter, effect);
    }
    if (effect.kind === "becameLeader") {
      this.#onLeader(node, voter, effect.term);
    } else if (effect.kind === "send" && effect.message.kind === "heartbeat") {
      const { sequence } = effect.message;
      if (voter.beats.at(-1)?.sequence === sequence) return;
      voter.beats.push({ sequence, at: node.local, ackedBy: new Set([node.id]) });
      if (voter.beats.length > BEATS_KEPT) voter.beats.shift();
    } else if (effect.kind === "send" && effect.message.kind === "heartbeatAck") {
      // The promise counts from the receipt of the heartbeat, however long the ack waits for the disk. The answer to a
      // heartbeat of an older term is a rejection: it only reports the newer one.
      if (!voter.heard) return;
      voter.ackedAt = this.#world.now;
      voter.ackedLeader = effect.to;
    } else if (effect.kind === "send" && effect.message.kind === "preVote") {
      const { round, term } = effect.message;
      if (voter.preVote?.round === round) return;
      voter.preVote = { term, round, grantedBy: new Set([node.id]) };
    }
  }

  #onLeader(node: SimNode, voter: Voter, term: number): void {
    const before = this.#leaders.get(term);
    if (!(before === undefined || before === node.id))
      this.#violations.report("E1", `${node.id} and ${before} lead term ${term}`);
    this.#leaders.set(term, node.id);
    let votes = 1;
    for (const { id } of this.#voters) {
      if (id !== node.id && this.#votes.get(`${id}/${term}`) === node.id) votes++;
    }
    if (!(votes >= this.#quorum))
      this.#violations.report(
        "E4",
        `${node.id} leads term ${term} with ${votes} votes of ${this.#voters.length}`,
      );
    if (!(voter.score <= this.#config.healthScoreMax))
      this.#violations.report("G1", `${node.id} leads with health score ${voter.score}`);
    voter.beats.length = 0;
    voter.leaseUntil = Number.NEGATIVE_INFINITY;
    voter.ledSince = node.local;
  }

  /** L4 and E7 against our own account of what was acked; L1 over all voters. */
  #checkLease(node: SimNode, voter: Voter): void {
    const { election } = node;
    if (election === null || election.state !== "leader" || this.#quorum === 1) return;
    const { local } = node;
    const acts = election.mayAct(local);
    if (!(!acts || local < voter.leaseUntil + 1e-6))
      this.#violations.report("L4", `${node.id} acts at ${local}, lease ${voter.leaseUntil}`);
    const patience = Math.max(voter.leaseUntil, voter.ledSince + this.#config.leaderTimeoutMs);
    // A process that stalled learns of it with its next timer.
    const justAwake = this.#world.now - node.resumedAt < 10;
    if (!(justAwake || local <= patience + 50))
      this.#violations.report(
        "E7",
        `${node.id} still leads ${local - patience} ms after its quorum`,
      );
    if (!acts) return;
    for (const other of this.#voters) {
      if (other === node || other.state !== "up") continue;
      const both = other.election?.mayAct(other.local) ?? false;
      if (both) this.#violations.report("L1", `${node.id} and ${other.id} both act`);
    }
  }
}
