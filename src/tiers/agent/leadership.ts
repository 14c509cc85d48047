/**
 * Leadership hosted by an agent. Voters run the election machine over the agent's datagrams with term
 * and vote on disk; everybody else learns leaders from the states that members embed in their packets.
 */

import { randomBytes } from "node:crypto";
import { assertNever } from "../../core/base/assert.ts";
import { type Address, type NodeId, nodeId } from "../../core/base/ids.ts";
import { Random } from "../../core/base/random.ts";
import { ELECTION_OF, ELECTION_PROFILES } from "../../core/cluster/election/config.ts";
import { encodeVote } from "../../core/cluster/election/durable-vote.ts";
import { Election } from "../../core/cluster/election/election.ts";
import type { ElectionPacket } from "../../core/cluster/election/messages.ts";
import type {
  ElectionEffect,
  ElectionInput,
  ElectionView,
} from "../../core/cluster/election/types.ts";
import type { DurableRegion } from "../../host/durable-region.ts";
import type { Driven, Loop, Machine } from "../../host/loop.ts";
import type { Log } from "../../host/ports/log.ts";
import type { AgentConfig } from "./config.ts";
import type { AgentState } from "./state.ts";
import type { Stored } from "./stored.ts";

/** Groups that members may name; one key holder could name any number. */
const KNOWN_GROUPS_MAX = 1_024;

export interface LeaderNews {
  readonly group: string;
  readonly leader: string | null;
  readonly term: number;
  readonly why: string;
}

interface LeadershipOptions {
  readonly config: AgentConfig;
  readonly log: Log;
  readonly loop: Loop;
  /** Where a member is now; undefined when we have not heard of it. */
  readonly addressOf: (id: NodeId) => Address | undefined;
  readonly send: (to: Address, packet: ElectionPacket) => void;
  readonly onNews: (news: LeaderNews) => void;
  readonly onAlarm: (alarm: Extract<ElectionEffect, { readonly kind: "alarm" }>) => void;
}

interface KnownLeader {
  readonly leader: NodeId;
  readonly term: number;
}

export class Leadership {
  readonly #options: LeadershipOptions;
  readonly #election: Election | null;
  readonly #driven: Driven<ElectionInput> | null;
  readonly #region: DurableRegion | null;
  /** Leaders of groups we do not vote in, by group. */
  readonly #known = new Map<string, KnownLeader>();
  /** The group we vote in; empty when we vote in none. */
  readonly group: string;

  /** Null for members that do not vote. */
  constructor(options: LeadershipOptions, vote: Stored["vote"]) {
    this.#options = options;
    this.#region = vote?.region ?? null;
    const { config, loop } = options;
    this.group = vote === null ? "" : groupOf(config);
    if (vote === null) {
      this.#election = null;
      this.#driven = null;
      return;
    }
    this.#election = new Election(
      {
        self: nodeId(config.name),
        voters: config.voters.map(nodeId),
        durable: vote.found,
        config: ELECTION_PROFILES[ELECTION_OF[config.profile]],
        priority: config.priority,
        // A bare agent keeps no state beyond term and vote.
        mustSync: false,
      },
      new Random(randomBytes(16).toString("hex")),
    );
    this.#driven = loop.add<ElectionInput, ElectionEffect>(
      this.#watched(this.#election),
      { kind: "tick" },
      (effect) => this.#run(effect),
    );
  }

  /** The same machine; every change of its state is logged with what brought it about. */
  #watched(election: Election): Machine<ElectionInput, ElectionEffect> {
    return {
      nextDeadline: () => election.nextDeadline(),
      step: (input, now) => {
        const from = election.state;
        const effects = election.step(input, now);
        const to = election.state;
        if (from !== to) {
          const why = input.kind === "message" ? input.message.kind : input.kind;
          const { term: at } = election.snapshot();
          this.#options.log.event("info", "election.state", {
            group: this.group,
            from,
            to,
            term: at,
            why,
          });
        }
        return effects;
      },
    };
  }

  start(): void {
    this.#driven?.push({ kind: "start" });
  }

  get view(): ElectionView | null {
    return this.#election?.snapshot() ?? null;
  }

  isLeader(id: string): boolean {
    if (this.view?.leader === id) return true;
    for (const { leader } of this.#known.values()) if (leader === id) return true;
    return false;
  }

  onPacket(packet: ElectionPacket): void {
    // Whoever is not in the configured electorate has no say, whatever it claims; the machine sees to it. (AD-3)
    const { group, from, electorate, message } = packet;
    if (group === this.group) this.#driven?.push({ kind: "message", from, electorate, message });
  }

  onHealth(score: number): void {
    this.#driven?.push({ kind: "health", score, alive: true });
  }

  /** Before a farewell: followers may elect at once instead of waiting for the lease. */
  resign(): void {
    this.#driven?.push({ kind: "resign" });
  }

  /** What a member says of itself decides for groups we do not vote in; the higher term wins. */
  onPeerState(id: NodeId, state: AgentState): void {
    const { group, leading, term: at, electorate } = state;
    if (group === "") return;
    if (group === this.group) {
      // Halves of a group that count different voters never write to each other; here they meet.
      this.#driven?.push({ kind: "electorate", from: id, electorate });
      return;
    }
    const known = this.#known.get(group);
    const room = known !== undefined || this.#known.size < KNOWN_GROUPS_MAX;
    if (leading && room && (known === undefined || at > known.term)) {
      this.#known.set(group, { leader: id, term: at });
      this.#options.onNews({ group, leader: id, term: at, why: "announced" });
    } else if (!leading && known?.leader === id) {
      this.#forget(group, known, "stepped down");
    }
  }

  /** A member failed or left: it leads nothing any more. */
  onGone(id: NodeId): void {
    for (const [group, known] of this.#known) {
      if (known.leader === id) this.#forget(group, known, "gone");
    }
  }

  #forget(group: string, known: KnownLeader, why: string): void {
    this.#known.delete(group);
    this.#options.onNews({ group, leader: null, term: known.term, why });
  }

  #run(effect: ElectionEffect): Promise<void> | undefined {
    const { log } = this.#options;
    switch (effect.kind) {
      case "send":
        this.#send(effect);
        return undefined;
      case "persistVote":
        return this.#region?.save(encodeVote(effect.vote));
      case "leaderChanged":
        this.#options.onNews({ ...effect, group: this.group });
        return undefined;
      case "becameLeader":
        log.event("info", "election.leading", { group: this.group, term: effect.term });
        return undefined;
      case "lostLeadership":
        log.event("warn", "election.lost", {
          group: this.group,
          term: effect.term,
          why: effect.why,
        });
        return undefined;
      case "requestSync":
        this.#driven?.push({ kind: "syncDone" });
        return undefined;
      case "modeChanged":
        log.event("info", "election.mode", { group: this.group, mode: effect.mode });
        return undefined;
      case "flapping":
        log.event("warn", "election.flapping", {
          group: this.group,
          changes: effect.changes,
          cooldownMs: effect.cooldownMs,
        });
        return undefined;
      case "alarm":
        this.#options.onAlarm(effect);
        return undefined;
      default:
        return assertNever(effect);
    }
  }

  #send({ to, message }: Extract<ElectionEffect, { kind: "send" }>): void {
    const { addressOf, send, config } = this.#options;
    const address = addressOf(to);
    // A voter we have not met yet cannot be asked; it counts against the majority all the same.
    if (address === undefined) return;
    const electorate = this.view?.electorate ?? "";
    send(address, { from: nodeId(config.name), group: this.group, electorate, message });
  }
}

/** Members of one role in one datacenter elect together; gates elect across them. */
function groupOf({ role, datacenter }: Pick<AgentConfig, "role" | "datacenter">): string {
  return role === "gate" ? "gate" : `${role}@${datacenter}`;
}
