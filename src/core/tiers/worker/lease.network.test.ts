/**
 * Job leases among gates on a network that loses, repeats, delays, reorders and cuts, with clocks that
 * drift: a take-over's token is above all that the gate knew (L2), what a gate has seen never falls, so
 * that it refuses older tokens (L3), and after healing exactly one gate is left that acts, known to all
 * (L1). Between two gates that claimed one token without hearing of each other, the smaller id stands
 * once they do; until then receivers must tell them apart, which the lease alone does not promise.
 */

import { describe, expect, it } from "vitest";
import type { NodeId } from "../../base/ids.ts";
import { nodeId } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import type { JobLeaseSync } from "./job-lease.ts";
import { JOB_LEASE_MS, JOB_LEASE_RENEW_MS, JobLeases } from "./job-lease.ts";

const GATES = ["g1", "g2", "g3", "g4", "g5"].map(nodeId);
const JOBS = ["j1", "j2", "j3"];
const STEP_MS = 500;
const SEEDS = 25;
/** Ten simulated minutes of trouble, then several leases of quiet. */
const HEALED_AT = 1_200;
const STEPS = HEALED_AT + Math.ceil((4 * JOB_LEASE_MS) / STEP_MS);

interface Letter {
  readonly at: number;
  readonly run: () => void;
}

class World {
  readonly random: Random;
  now = 0;
  letters: Letter[] = [];
  readonly side = new Map<NodeId, number>();
  loss: number;
  delayMsMax: number;

  constructor(seed: number) {
    this.random = new Random(`leases/${seed}`);
    this.loss = this.random.pick([0, 0.1, 0.4]);
    this.delayMsMax = this.random.pick([5, 400, 3_000]);
  }

  connected(a: NodeId, b: NodeId): boolean {
    return (this.side.get(a) ?? 0) === (this.side.get(b) ?? 0);
  }

  send(from: NodeId, to: NodeId, run: () => void): void {
    if (!this.connected(from, to) || this.random.chance(this.loss)) return;
    const copies = this.random.chance(0.1) ? 2 : 1;
    for (let i = 0; i < copies; i++) {
      this.letters.push({ at: this.now + this.random.float() * this.delayMsMax, run });
    }
  }

  heal(): void {
    this.side.clear();
    this.loss = 0;
    this.delayMsMax = 5;
  }

  deliver(): void {
    const due = this.letters.filter(({ at }) => at <= this.now);
    this.letters = this.letters.filter(({ at }) => at > this.now);
    for (const { run } of due.sort((a, b) => a.at - b.at)) run();
  }
}

class Gate {
  readonly id: NodeId;
  readonly leases: JobLeases;
  readonly #world: World;
  readonly #rate: number;
  renewAt = 0;

  constructor(id: NodeId, world: World) {
    this.id = id;
    this.#world = world;
    this.#rate = 1 + 0.02 * (2 * world.random.float() - 1);
    const near = () => GATES.filter((gate) => world.connected(id, gate));
    this.leases = new JobLeases(id, {
      ringOrder: (job) => [...GATES.slice(JOBS.indexOf(job)), ...GATES.slice(0, JOBS.indexOf(job))],
      isAlive: (gate) => near().includes(gate),
      hasQuorum: () => near().length > GATES.length / 2,
    });
  }

  get local(): number {
    return this.#world.now * this.#rate;
  }
}

interface Outcome {
  readonly gates: readonly Gate[];
  readonly takeOvers: number;
  readonly problems: readonly string[];
}

function play(seed: number): Outcome {
  const world = new World(seed);
  const gates = GATES.map((id) => new Gate(id, world));
  const known = new Map<string, number>();
  const problems: string[] = [];
  let takeOvers = 0;
  const tell = (from: Gate, sync: JobLeaseSync): void => {
    for (const to of gates) {
      if (to !== from) world.send(from.id, to.id, () => to.leases.onSync(sync, to.local));
    }
  };
  const act = (gate: Gate, job: string): void => {
    const key = `${gate.id}/${job}`;
    const before = known.get(key) ?? 0;
    const claim = gate.leases.claim(job, gate.local);
    if (claim !== null) {
      if (claim.fence <= before) problems.push(`L2 ${key} claims ${claim.fence} after ${before}`);
      if (claim.fence > 1) takeOvers++;
      tell(gate, claim);
    }
    const fence = gate.leases.ownerOf(job)?.fence ?? 0;
    if (fence < before) problems.push(`L3 ${key} fell from ${before} to ${fence}`);
    if (before > 0 && gate.leases.checkFence(job, before - 1) !== "stale") {
      problems.push(`L3 ${key} takes ${before - 1} after ${before}`);
    }
    known.set(key, fence);
    if (gate.local < gate.renewAt) return;
    const renewal = gate.leases.renew(job, gate.local);
    if (renewal !== null) tell(gate, renewal);
  };
  for (let step = 0; step < STEPS; step++) {
    world.now += STEP_MS;
    if (step === HEALED_AT) world.heal();
    if (step < HEALED_AT && world.random.chance(0.01)) {
      for (const id of GATES) world.side.set(id, world.random.below(2));
    }
    if (world.random.chance(0.02)) world.side.clear();
    world.deliver();
    for (const gate of gates) {
      for (const job of JOBS) act(gate, job);
      if (gate.local >= gate.renewAt) gate.renewAt = gate.local + JOB_LEASE_RENEW_MS;
    }
  }
  return { gates, takeOvers, problems };
}

describe("job leases on a bad network", () => {
  it("keep their tokens rising, and leave one owner that everyone knows", () => {
    let takeOvers = 0;
    for (let seed = 0; seed < SEEDS; seed++) {
      const outcome = play(seed);
      takeOvers += outcome.takeOvers;
      expect(outcome.problems, `seed ${seed}`).toEqual([]);
      for (const job of JOBS) {
        const { gates } = outcome;
        const owners = new Set(gates.map((gate) => gate.leases.ownerOf(job)?.owner));
        const acting = gates.filter((gate) => gate.leases.mayAct(job, gate.local));
        expect([...owners], `owners of ${job}, seed ${seed}`).toHaveLength(1);
        expect(
          acting.map(({ id }) => id),
          `acting on ${job}, seed ${seed}`,
        ).toEqual([...owners]);
      }
    }
    expect(takeOvers).toBeGreaterThan(SEEDS);
  });
});
