/**
 * The theorem of idempotent submission, on the machines alone: with any order of submissions, commits, changes
 * of primary that lose or keep what was proposed, stale primaries and founding in any order, each key has one
 * job and every ack names it. The log is given; that it is one is the replication's affair.
 */

import { describe, expect, it } from "vitest";
import { encodeUtf8 } from "../../base/bytes.ts";
import { Random } from "../../base/random.ts";
import { IDEMPOTENCY_PROFILES } from "./config.ts";
import type { Submission, SubmissionAnswer } from "./decide.ts";
import type { IdempotencyKey } from "./key.ts";
import { IDEMPOTENCY_RULES, type IdempotencyRules } from "./rules.ts";
import { type Founding, ShardState } from "./shard.ts";
import type { ShardEntry } from "./shard-entry.ts";
import { encodeShardState } from "./shard-snapshot.ts";
import { FOUNDING_RETRY_MS, type ShardEffect, ShardWaiters } from "./shard-waiters.ts";
import { NODES, sampleKey, samplePrint } from "./testing/samples.ts";

const KEYS = 4;
const MEMBERS = 3;

interface Answered {
  readonly key: IdempotencyKey;
  readonly answer: SubmissionAnswer;
}

class World {
  readonly random: Random;
  readonly states: ShardState[];
  readonly waiters: ShardWaiters<IdempotencyKey>[];
  readonly answers: Answered[] = [];
  readonly foundings: { by: number; founding: Founding }[] = [];
  readonly jobs = new Map<IdempotencyKey, Set<string>>();
  primary = 0;
  proposed: ShardEntry[] = [];
  #seq = 0;
  #minted = 0;
  at = { now: 0, time: 1_700_000_000_000 };

  constructor(seed: string, rules: IdempotencyRules) {
    this.random = new Random(seed);
    const config = { ...IDEMPOTENCY_PROFILES.production.authority, entriesMax: 64 * 3 };
    this.states = Array.from({ length: MEMBERS }, () => new ShardState(rules));
    this.waiters = this.states.map((state) => new ShardWaiters(state, config));
    this.run(0, this.waiters[0]?.takeOver(this.at) ?? []);
  }

  run(by: number, effects: readonly ShardEffect<IdempotencyKey>[]): void {
    for (const effect of effects) {
      // Proposals of a deposed primary reach no log.
      if (effect.kind === "propose" && by === this.primary) this.proposed.push(effect.entry);
      if (effect.kind === "answer")
        this.answers.push({ key: effect.waiter, answer: effect.answer });
      if (effect.kind === "found") this.foundings.push({ by, founding: effect.founding });
    }
  }

  submit(by: number, sequence: number): void {
    const key = sampleKey(sequence);
    const submission: Submission = {
      key,
      fingerprint: samplePrint(`body ${sequence}`),
      admit: () => {
        if (this.random.chance(0.1)) return { kind: "defer", why: "no capacity" };
        const jobId = `job-${this.#minted++}`;
        const created = encodeUtf8(jobId);
        return {
          kind: "accept",
          jobId,
          replicaSet: NODES,
          created,
          ack: encodeUtf8(`ack ${jobId}`),
        };
      },
    };
    const waiters = this.waiters[by];
    if (waiters?.active) this.run(by, waiters.submit(submission, key, this.at));
  }

  commit(count: number): void {
    for (const entry of this.proposed.splice(0, count)) {
      const seq = this.#seq++;
      this.states.forEach((state, member) => {
        const outcome = state.apply(entry, seq);
        this.run(member, this.waiters[member]?.applied(entry, outcome, this.at) ?? []);
      });
    }
  }

  /** The new primary adopted a part of what the old one proposed; the old one may not know yet. */
  changePrimary(): void {
    const next = this.random.below(MEMBERS);
    if (next === this.primary) return;
    this.proposed.length = this.random.below(this.proposed.length + 1);
    this.primary = next;
    this.stepDown(next);
    this.run(next, this.waiters[next]?.takeOver(this.at) ?? []);
  }

  stepDown(member: number): void {
    this.run(member, this.waiters[member]?.stepDown() ?? []);
  }

  /** Founds a job's group: from here the job runs, whichever request asked for it. */
  found(): void {
    const [one] = this.foundings.splice(this.random.below(this.foundings.length || 1), 1);
    if (one === undefined) return;
    const { key, jobId } = one.founding;
    this.jobs.set(key, (this.jobs.get(key) ?? new Set()).add(jobId));
    this.run(one.by, this.waiters[one.by]?.founded(key, jobId, this.at) ?? []);
  }

  tick(ms: number): void {
    this.at = { now: this.at.now + ms, time: this.at.time + ms };
    this.waiters.forEach((waiters, member) => {
      this.run(member, waiters.tick(this.at));
    });
  }

  step(): void {
    const dice = this.random.below(100);
    if (dice < 45) this.submit(this.random.below(MEMBERS), this.random.below(KEYS));
    else if (dice < 65) this.commit(this.random.below(4));
    else if (dice < 80) this.found();
    else if (dice < 90) this.tick(this.random.below(9_000));
    else if (dice < 96) this.changePrimary();
    else {
      const stale = this.random.below(MEMBERS);
      if (stale !== this.primary) this.stepDown(stale);
    }
  }

  /** Calm: one primary, everything commits, every founding is confirmed, every client retries once more. */
  settle(): void {
    for (let member = 0; member < MEMBERS; member++)
      if (member !== this.primary) this.stepDown(member);
    for (let round = 0; round < 30; round++) {
      for (let key = 0; key < KEYS; key++) this.submit(this.primary, key);
      this.commit(Number.POSITIVE_INFINITY);
      while (this.foundings.length > 0) this.found();
      this.tick(FOUNDING_RETRY_MS);
    }
  }

  /** ID1, ID2, ID3, ID6, ID7; null when all hold. */
  violation(): string | null {
    const named = new Map<IdempotencyKey, string>();
    for (const { key, answer } of this.answers) {
      if (answer.kind === "rejected" || answer.kind === "keyReused") return "a job was refused";
      if (answer.kind !== "accepted") continue;
      const other = named.get(key) ?? answer.jobId;
      if (other !== answer.jobId) return `ID2: acks name ${other} and ${answer.jobId}`;
      named.set(key, answer.jobId);
    }
    for (const [key, jobs] of this.jobs)
      if (jobs.size > 1) return `ID1: ${jobs.size} jobs for ${key}`;
    for (const [key, jobId] of named) {
      if (!this.jobs.get(key)?.has(jobId)) return `ID3: ${jobId} was acked and is not there`;
    }
    if (this.states.some((state) => state.pendingCount > 0)) return "ID7: a job is not founded";
    const [first, ...others] = this.states.map((state) => String(encodeShardState(state)));
    return others.every((other) => other === first) ? null : "ID6: replicas differ";
  }
}

function explore(rules: IdempotencyRules, seeds: number): string | null {
  for (let seed = 0; seed < seeds; seed++) {
    const world = new World(`theorem ${seed}`, rules);
    for (let i = 0; i < 120; i++) world.step();
    world.settle();
    const violation = world.violation();
    if (violation !== null) return `seed ${seed}: ${violation}`;
  }
  return null;
}

describe("one job per key", () => {
  it("holds over changes of primary, lost proposals and stale primaries", () => {
    expect(explore(IDEMPOTENCY_RULES, 200)).toBeNull();
  });

  it.each([
    "applyTimeCheck",
    "pendingNeverExpires",
    "answerAfterApply",
    "canonicalJob",
    "transientNeverStored",
    "noEvictionWithinTtl",
    "inheritedFounded",
  ] as const)("is broken without %s, and the checks see it", (rule) => {
    expect(explore({ ...IDEMPOTENCY_RULES, [rule]: false }, 300)).not.toBeNull();
  });
});
