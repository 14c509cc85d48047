/**
 * After healing everything must work again within a bound:
 *
 *   L1  every group has a primary         L3  every job takes one more event and a strong read, every
 *   L2  every reservation has its job         shard one more submission
 *   L4  all replicas of a group hold the same log and the same state
 */

import type { Random } from "../../src/core/base/random.ts";
import type { GroupId } from "../../src/core/ledger/group/messages.ts";
import type { EventId, JobEvent } from "../../src/core/ledger/job/events.ts";
import type { JobId } from "../../src/core/ledger/job/job-id.ts";
import { isTerminal } from "../../src/core/ledger/job/job-state.ts";
import type { Group } from "../../src/core/ledger/node/group.ts";
import type { LedgerAnswer, LedgerRequest } from "../../src/core/ledger/node/messages.ts";
import { shardGroup } from "../../src/core/ledger/node/topology.ts";
import type { World } from "../kernel/world.ts";
import { sameBytes } from "./checkers.ts";
import type { LedgerClients } from "./clients.ts";
import type { LedgerProcess } from "./node.ts";
import type { LedgerPlan } from "./swarm.ts";
import { TALLIES } from "./tallies.ts";

interface Missing {
  readonly id: string;
  readonly text: string;
}

const RETRY_MS = 500;

/** Parts of the run that the final checks inspect. */
interface FinaleSurroundings {
  readonly world: World;
  readonly plan: LedgerPlan;
  readonly clients: LedgerClients;
  readonly processes: readonly LedgerProcess[];
}

export class Finale {
  readonly #around: FinaleSurroundings;
  readonly #random: Random;
  /** Requests still to be answered. */
  readonly #open = new Set<string>();

  constructor(around: FinaleSurroundings, random: Random) {
    this.#around = around;
    this.#random = random;
  }

  begin(): void {
    const { clients, plan } = this.#around;
    for (const shard of plan.shards) {
      const request = clients.newSubmission(this.#random, shard);
      this.#insist(`a submission to shard ${shard}`, request);
    }
    for (const jobId of [...clients.jobs]) {
      this.#insist(`an event of ${jobId}`, lastEvent(jobId));
      const read = { jobId, level: "STRONG", minSeq: -1, staleMs: 0 } as const;
      this.#insist(`a strong read of ${jobId}`, { kind: "read", ...read });
    }
  }

  /** Until it is answered for good. */
  #insist(what: string, request: LedgerRequest): void {
    const { clients, world } = this.#around;
    this.#open.add(what);
    const process = this.#random.pick(this.#sound());
    clients.attempt(request, process, (answer) => {
      if (answer !== null && isFinal(answer)) this.#open.delete(what);
      else world.schedule(world.now + RETRY_MS, "step", 0, () => this.#insist(what, request));
    });
  }

  #sound(): LedgerProcess[] {
    return this.#around.processes.filter(({ state, lostDisk }) => state !== "corrupt" && !lostDisk);
  }

  isOver(): boolean {
    return this.missing() === null;
  }

  missing(): Missing | null {
    const [what] = this.#open;
    if (what !== undefined) return { id: "L3", text: `not answered after healing: ${what}` };
    for (const id of this.#groups()) {
      const missing = this.#disagreement(id);
      if (missing !== null) return missing;
    }
    return null;
  }

  #groups(): GroupId[] {
    const { clients, plan, processes } = this.#around;
    // A tally was founded by its first client.
    const tallies = TALLIES.filter((id) => processes.some(({ node }) => node?.groups.has(id)));
    return [
      ...(clients.jobs as readonly string[] as readonly GroupId[]),
      ...plan.shards.map(shardGroup),
      ...tallies,
    ];
  }

  #disagreement(id: GroupId): Missing | null {
    const replicas: { process: LedgerProcess; group: Group }[] = [];
    let archived = false;
    for (const process of this.#sound()) {
      const group = process.node?.groups.get(id);
      if (group !== undefined) replicas.push({ process, group });
      archived ||= process.node?.archived.has(id) === true;
    }
    // A job that some have already archived is settled, and replicas that were down learn of it.
    if (archived) {
      const [behind] = replicas.filter(({ group }) => {
        const { app, replica } = group;
        return (
          app.kind === "job" && replica.state.status !== "retired" && !isTerminal(app.state.status)
        );
      });
      if (behind === undefined) return null;
      const text = `${behind.process.id} still runs ${id}, which others have archived`;
      return { id: "L4", text };
    }
    const epoch = Math.max(0, ...replicas.map(({ group }) => group.replica.state.epoch));
    const newest = replicas.filter(({ group }) => group.replica.state.epoch === epoch);
    const members = newest[0]?.group.replica.state.members ?? [];
    const leader = newest.find(({ group }) => group.replica.state.acting);
    if (leader === undefined) return { id: "L1", text: `${id} has no primary after healing` };
    const { app, replica } = leader.group;
    if (app.kind === "shard" && [...app.state.pendingFoundings()].length > 0) {
      return { id: "L2", text: `${id} has reservations without a job after healing` };
    }
    const reference = stateOf(leader.group);
    for (const member of members) {
      const process = this.#sound().find((one) => one.id === member);
      if (process === undefined) continue;
      const group = process.node?.groups.get(id);
      const commit = group?.replica.state.commit ?? -1;
      if (group === undefined || commit !== replica.state.commit) {
        const text = `${member} has ${id} up to ${commit}, its primary up to ${replica.state.commit}`;
        return { id: "L4", text };
      }
      if (!sameBytes(stateOf(group), reference)) {
        return {
          id: "L4",
          text: `${member} and ${leader.process.id} hold different states of ${id}`,
        };
      }
    }
    return null;
  }
}

function stateOf({ app }: Group): Uint8Array {
  return app.snapshot();
}

function lastEvent(jobId: JobId): LedgerRequest {
  const event: JobEvent = {
    kind: "JobAccepted",
    jobId,
    eventId: "finale" as EventId,
    fenceToken: 0,
    hlc: { wallMs: 0, logical: 0, node: "client" as JobEvent["hlc"]["node"] },
    dcId: "dc1",
    workerCount: 1,
  };
  return { kind: "append", event, durability: "REGIONAL" };
}

function isFinal(answer: LedgerAnswer): boolean {
  switch (answer.kind) {
    case "committed":
    case "conflict":
    case "job":
      return true;
    case "submitted":
      // A full shard reports it; an expired key makes space. (IDEM-19)
      return answer.answer.kind !== "retry" || answer.answer.why === "the shard is full";
    case "refused":
      return answer.code === "ARCHIVED";
    default:
      return false;
  }
}
