/**
 * Leadership from the view of one member. A voter runs the election, with term and vote on disk. Other members learn
 * leaders from the states embedded in membership packets, where the higher term wins.
 */

import { assertNever } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import type { NodeId, Role } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { encodeVote } from "../../membership/election/durable-vote.ts";
import { Election } from "../../membership/election/election.ts";
import { electorateDigest } from "../../membership/election/electorate.ts";
import type { ElectionPacket } from "../../membership/election/messages.ts";
import type {
  DurableVote,
  ElectionEffect,
  ElectionInput,
} from "../../membership/election/types.ts";
import type { NodeRecord } from "../../membership/swim/messages.ts";
import { type AuditObserver, leaderEntry } from "./member-audit.ts";
import type { WriteBarrier } from "./member-barrier.ts";
import type { LeaderNews } from "./member-events.ts";
import type { MemberOutput } from "./member-output.ts";
import type { MemberState } from "./member-state.ts";
import type { Electorate, MemberRules, MemberWatch } from "./member-types.ts";

/** Maximum number of known groups. Limits memory, because a member with the key could name any number. */
const KNOWN_GROUPS_MAX = 1_024;

interface KnownLeader {
  readonly leader: NodeId;
  readonly term: number;
}

interface LeadershipOptions {
  readonly self: NodeRecord;
  readonly electorate: Electorate | null;
  readonly rules: MemberRules;
  readonly watch: MemberWatch | null;
  readonly out: MemberOutput;
  readonly observer: AuditObserver;
  readonly send: (to: NodeId, packet: ElectionPacket) => void;
  /** Queues input for the election until the current step is complete. */
  readonly later: (input: ElectionInput) => void;
}

export class MemberLeadership {
  readonly #options: LeadershipOptions;
  /** Leaders of groups that we do not vote in. */
  readonly #known = new Map<string, KnownLeader>();
  /** Group we vote in; empty for none. */
  readonly group: string;
  /** Digest of the voters we count; empty if we vote in no group. */
  readonly digest: string;
  #barrier: WriteBarrier<ElectionEffect> | null = null;
  #election: Election | null = null;

  constructor(options: LeadershipOptions) {
    this.#options = options;
    const { self, electorate } = options;
    this.group = electorate === null ? "" : groupOf(self.role, self.datacenter);
    this.digest = electorate === null ? "" : electorateDigest(electorate.voters);
  }

  get election(): Election | null {
    return this.#election;
  }

  isLeader(id: string): boolean {
    if (this.#election?.leader === id) return true;
    for (const { leader } of this.#known.values()) if (leader === id) return true;
    return false;
  }

  begin(durable: DurableVote, barrier: WriteBarrier<ElectionEffect>, random: Random): void {
    const { electorate, self, rules } = this.#options;
    if (electorate === null) return;
    this.#barrier = barrier;
    this.#election = new Election(
      // A bare member has no state beyond term and vote.
      { ...electorate, self: self.id, durable, mustSync: false },
      random,
      rules.election,
    );
  }

  /** Logs every state change of the election with its cause. */
  step(input: ElectionInput, now: Millis): void {
    const election = this.#election;
    if (election === null) return;
    const { out, watch } = this.#options;
    const { state: from } = election;
    const effects = election.step(input, now);
    const { state: to, term } = election;
    if (from !== to) {
      const why = input.kind === "message" ? input.message.kind : input.kind;
      out.log("info", "election.state", { group: this.group, from, to, term, why });
    }
    watch?.onElection(input, effects);
    for (const effect of effects) this.#barrier?.push(effect);
  }

  /** Learns leaders of groups we do not vote in from the state a member reports about itself. */
  onPeerState(id: NodeId, { group, leading, term, electorate }: MemberState): void {
    if (group === "") return;
    if (group === this.group) {
      // Parts of a group that count different voters never exchange election messages; the mismatch shows here.
      this.#options.later({ kind: "electorate", from: id, electorate });
      return;
    }
    const known = this.#known.get(group);
    const canTrack = known !== undefined || this.#known.size < KNOWN_GROUPS_MAX;
    if (leading && canTrack && (known === undefined || term > known.term)) {
      this.#known.set(group, { leader: id, term });
      this.#report({ group, leader: id, term, why: "announced" });
    } else if (!leading && known?.leader === id) {
      this.#forget(group, known, "stepped down");
    }
  }

  /** Removes the leaderships of a failed or departed member. */
  onGone(id: NodeId): void {
    for (const [group, known] of this.#known) {
      if (known.leader === id) this.#forget(group, known, "gone");
    }
  }

  run(effect: ElectionEffect): void {
    const { out, watch, later } = this.#options;
    watch?.onElectionDone(effect);
    const { group } = this;
    switch (effect.kind) {
      case "send":
        this.#send(effect);
        return;
      case "persistVote":
        this.#barrier?.persist(encodeVote(effect.vote));
        return;
      case "leaderChanged":
        this.#report({ ...effect, group });
        return;
      case "becameLeader":
        out.log("info", "election.leading", { group, term: effect.term });
        return;
      case "lostLeadership":
        out.log("warn", "election.lost", { group, term: effect.term, why: effect.why });
        return;
      case "requestSync":
        later({ kind: "syncDone" });
        return;
      case "modeChanged":
        out.log("info", "election.mode", { group, mode: effect.mode });
        return;
      case "flapping": {
        const { changes, cooldownMs } = effect;
        out.log("warn", "election.flapping", { group, changes, cooldownMs });
        return;
      }
      case "alarm":
        out.warn(effect.code, effect.from, effect.about);
        return;
      default:
        assertNever(effect);
    }
  }

  #send({ to, message }: Extract<ElectionEffect, { readonly kind: "send" }>): void {
    const { self, send } = this.#options;
    send(to, { from: self.id, group: this.group, electorate: this.digest, message });
  }

  #forget(group: string, known: KnownLeader, why: string): void {
    this.#known.delete(group);
    this.#report({ group, leader: null, term: known.term, why });
  }

  #report(news: LeaderNews): void {
    const { out, observer } = this.#options;
    const { group, leader, term, why } = news;
    out.record(leaderEntry(news, observer));
    out.log("info", "election.leader", { group, leader, term, why });
    out.event({ event: "leader-change", member: leader, group, term, why });
  }
}

/** Members of one role in one datacenter elect together; gates elect across datacenters. */
function groupOf(role: Role, datacenter: string): string {
  return role === "gate" ? "gate" : `${role}@${datacenter}`;
}
