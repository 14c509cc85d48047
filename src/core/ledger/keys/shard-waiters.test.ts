import { describe, expect, it } from "vitest";
import { encodeUtf8 } from "../../base/bytes.ts";
import { IDEMPOTENCY_PROFILES } from "./config.ts";
import type { Admission, Submission, SubmissionAnswer } from "./decide.ts";
import { IDEMPOTENCY_RULES, type IdempotencyRules } from "./rules.ts";
import { type Founding, ShardState } from "./shard.ts";
import { CREATED_BYTES_MAX, type ShardEntry } from "./shard-entry.ts";
import {
  CREATED_BYTES_HELD_MAX,
  FOUNDING_RETRY_MS,
  FOUNDINGS_MAX,
  type ShardEffect,
  ShardWaiters,
  WAITERS_MAX,
} from "./shard-waiters.ts";
import { NODES, sampleKey, samplePrint } from "./testing/samples.ts";

const config = IDEMPOTENCY_PROFILES.production.authority;

/** One member of the shard's group: its applied state and who waits. */
class Member {
  readonly state: ShardState;
  readonly waiters: ShardWaiters<string>;
  readonly answers = new Map<string, SubmissionAnswer>();
  readonly founds: Founding[] = [];
  readonly overdue: string[] = [];
  readonly group: Group;

  constructor(group: Group, rules: IdempotencyRules, limits = config) {
    this.group = group;
    this.state = new ShardState(rules);
    this.waiters = new ShardWaiters(this.state, limits);
  }

  run(effects: readonly ShardEffect<string>[]): void {
    for (const effect of effects) {
      if (effect.kind === "propose") this.group.proposed.push(effect.entry);
      else if (effect.kind === "found") this.founds.push(effect.founding);
      else if (effect.kind === "overdue") this.overdue.push(effect.founding.jobId);
      else {
        expect(this.answers.has(effect.waiter), "everybody is answered once").toBe(false);
        this.answers.set(effect.waiter, effect.answer);
      }
    }
  }

  submit(submission: Submission, waiter: string): void {
    this.run(this.waiters.submit(submission, waiter, this.group.at));
  }
}

/** The group as the machines see it: what is proposed is committed and applied by everyone, later or never. */
class Group {
  /** Both clocks, apart by a little more than half a century. */
  at = { now: 1_000, time: 1_700_000_000_000 };
  proposed: ShardEntry[] = [];
  readonly log: ShardEntry[] = [];
  readonly members: readonly Member[];

  constructor(rules: IdempotencyRules = IDEMPOTENCY_RULES, limits = config) {
    this.members = [0, 1, 2].map(() => new Member(this, rules, limits));
  }

  member(index: number): Member {
    const member = this.members[index];
    if (member === undefined) throw new Error("no such member");
    return member;
  }

  /** Commits what is proposed, in order; proposals made meanwhile wait for the next call. */
  commit(): void {
    for (const entry of this.proposed.splice(0)) {
      this.log.push(entry);
      for (const member of this.members) {
        const outcome = member.state.apply(entry, this.log.length - 1);
        member.run(member.waiters.applied(entry, outcome, this.at));
      }
    }
  }

  tick(ms: number): void {
    this.at = { now: this.at.now + ms, time: this.at.time + ms };
    for (const member of this.members) member.run(member.waiters.tick(this.at));
  }

  /** All accepted answers to one key name one job. */
  jobs(): Set<string> {
    const accepted = this.members
      .flatMap(({ answers }) => [...answers.values()])
      .filter((answer) => answer.kind === "accepted");
    return new Set(accepted.map(({ jobId }) => jobId));
  }
}

let minted = 0;

function submission(sequence: number, extra: Partial<Submission> = {}): Submission {
  return {
    key: sampleKey(sequence),
    fingerprint: samplePrint(`body ${sequence}`),
    admit: () => accept(`job-${++minted}`),
    ...extra,
  };
}

function accept(jobId: string, created = encodeUtf8("created")): Admission {
  return { kind: "accept", jobId, replicaSet: NODES, created, ack: encodeUtf8(`ack ${jobId}`) };
}

function primary(group: Group): Member {
  const member = group.member(0);
  member.run(member.waiters.takeOver(group.at));
  return member;
}

describe("the scenarios of the failure table", () => {
  it("one hundred submissions of one key at once: one reservation, one job, ninety-nine duplicates", () => {
    const group = new Group();
    const member = primary(group);
    for (let i = 0; i < 100; i++) member.submit(submission(1), `client-${i}`);
    expect(group.proposed).toHaveLength(1);
    expect(member.answers.size).toBe(0);
    group.commit();
    const answers = [...member.answers.values()];
    expect(answers).toHaveLength(100);
    expect(
      answers.filter((answer) => answer.kind === "accepted" && !answer.duplicate),
    ).toHaveLength(1);
    expect(group.jobs().size).toBe(1);
  });

  it("two gates get the same key at the same instant, each believing to be primary: one job", () => {
    const group = new Group();
    const [a, b] = [group.member(0), group.member(1)];
    a.run(a.waiters.takeOver(group.at));
    b.run(b.waiters.takeOver(group.at));
    a.submit(submission(1), "via a");
    b.submit(submission(1), "via b");
    expect(group.proposed).toHaveLength(2);
    group.commit();
    expect([a.answers.get("via a")?.kind, b.answers.get("via b")?.kind]).toEqual([
      "accepted",
      "accepted",
    ]);
    expect(group.jobs().size).toBe(1);
  });

  it("the gate dies before its proposal left: no trace, the retry elsewhere creates the job", () => {
    const group = new Group();
    primary(group).submit(submission(1), "first try");
    group.proposed = [];
    group.member(0).run(group.member(0).waiters.stepDown());
    const next = group.member(1);
    next.run(next.waiters.takeOver(group.at));
    next.submit(submission(1), "retry");
    group.commit();
    expect(next.answers.get("retry")).toMatchObject({ kind: "accepted", duplicate: false });
    expect(group.member(0).answers.get("first try")?.kind).toBe("retry");
  });

  it("the gate dies after proposing and the entry survives: the retry is answered with that job", () => {
    const group = new Group();
    primary(group).submit(submission(1), "first try");
    group.member(0).run(group.member(0).waiters.stepDown());
    // The new primary has adopted the entry and not applied it yet, so it proposes too.
    const next = group.member(1);
    next.run(next.waiters.takeOver(group.at));
    next.submit(submission(1), "retry");
    const [reservation] = group.proposed;
    group.commit();
    const jobId = reservation?.kind === "reserved" ? reservation.jobId : "";
    expect(next.answers.get("retry")).toMatchObject({ kind: "accepted", jobId, duplicate: true });
    expect(group.log).toHaveLength(2);
    // IDEM-22: the new primary founds the job it inherited, and only that one.
    expect(next.founds.map((founding) => founding.jobId)).toEqual([jobId]);
  });

  it("the primary dies after the reservation was applied: the next one founds the job and commits it", () => {
    const group = new Group();
    primary(group).submit(submission(1), "client");
    group.commit();
    group.member(0).run(group.member(0).waiters.stepDown());
    const next = group.member(2);
    next.run(next.waiters.takeOver(group.at));
    const [founding] = next.founds;
    if (founding === undefined) throw new Error("it is founded again");
    next.run(next.waiters.founded(founding.key, founding.jobId, group.at));
    group.commit();
    expect(group.members.map(({ state }) => state.status(sampleKey(1)))).toEqual([
      "committed",
      "committed",
      "committed",
    ]);
    next.submit(submission(1), "retry");
    expect(group.jobs()).toEqual(new Set([founding.jobId]));
  });

  it("a retry at 5 s while the original is decided at 10 s: one identical ack for both", () => {
    const group = new Group();
    const member = primary(group);
    member.submit(submission(1), "original");
    group.tick(5_000);
    member.submit(submission(1), "retry");
    group.tick(5_000);
    group.commit();
    const [original, again] = [member.answers.get("original"), member.answers.get("retry")];
    expect(again).toEqual({ ...original, duplicate: true });
  });

  it("a partition: the minority answers RETRY and never «new» (IDEM-26)", () => {
    const group = new Group();
    const member = primary(group);
    member.submit(submission(1), "client");
    group.tick(config.pendingWaitTimeoutMs - 1);
    expect(member.answers.size).toBe(0);
    group.tick(1);
    expect(member.answers.get("client")).toMatchObject({ kind: "retry" });
    member.submit(submission(1), "again");
    member.run(member.waiters.stepDown());
    expect(member.answers.get("again")).toMatchObject({ kind: "retry" });
  });

  it("a retry after the TTL may be a second job; before, it never is", () => {
    const group = new Group();
    const member = primary(group);
    member.submit(submission(1), "first");
    group.commit();
    const founding = member.founds[0] as Founding;
    member.run(member.waiters.founded(founding.key, founding.jobId, group.at));
    group.commit();
    group.tick(config.committedTtlMs);
    group.commit();
    member.submit(submission(1), "in time");
    expect(group.jobs().size).toBe(1);
    group.tick(config.cleanupIntervalMs);
    group.commit();
    member.submit(submission(1), "too late");
    group.commit();
    expect(group.jobs().size).toBe(2);
  });
});

describe("waiters at a shard", () => {
  it("requests admission only when the key is absent (IDEM-23)", () => {
    const group = new Group();
    const member = primary(group);
    let asked = 0;
    const counting = submission(1, { admit: () => accept(`job-${++asked}`) });
    for (let i = 0; i < 5; i++) member.submit(counting, `a${i}`);
    group.commit();
    member.submit(counting, "late");
    expect(asked).toBe(1);
  });

  it("stores deterministic refusals, and never transient ones (IDEM-8)", () => {
    const group = new Group();
    const member = primary(group);
    const refuse = { admit: (): Admission => ({ kind: "refuse", result: encodeUtf8("no") }) };
    const defer = { admit: (): Admission => ({ kind: "defer", why: "no capacity" }) };
    member.submit(submission(1, refuse), "refused");
    member.submit(submission(2, defer), "deferred");
    group.commit();
    member.submit(submission(1), "refused again");
    expect(member.answers.get("refused")).toMatchObject({ kind: "rejected", duplicate: false });
    expect(member.answers.get("refused again")).toMatchObject({
      kind: "rejected",
      duplicate: true,
    });
    expect(member.answers.get("deferred")).toEqual({ kind: "retry", why: "no capacity" });
    member.submit(submission(2), "deferred again");
    group.commit();
    expect(member.answers.get("deferred again")).toMatchObject({ kind: "accepted" });
  });

  it("answers a waiter with another fingerprint that the key is reused, once that is certain", () => {
    const group = new Group();
    const member = primary(group);
    member.submit(submission(1), "one");
    member.submit(submission(1, { fingerprint: samplePrint("else") }), "other");
    expect(member.answers.size).toBe(0);
    group.commit();
    expect(member.answers.get("other")).toEqual({ kind: "keyReused" });
  });

  it("retries founding until the group exists, then commits once (IDEM-7)", () => {
    const group = new Group();
    const member = primary(group);
    member.submit(submission(1), "client");
    group.commit();
    group.tick(FOUNDING_RETRY_MS);
    group.tick(FOUNDING_RETRY_MS);
    expect(member.founds).toHaveLength(3);
    const { key, jobId } = member.founds[0] as Founding;
    member.run(member.waiters.founded(key, "another job", group.at));
    member.run(member.waiters.founded(key, jobId, group.at));
    member.run(member.waiters.founded(key, jobId, group.at));
    expect(group.proposed).toHaveLength(1);
    group.commit();
    group.tick(FOUNDING_RETRY_MS);
    expect(member.founds).toHaveLength(3);
  });

  it("caps concurrent foundings and starts the rest as slots become free", () => {
    const group = new Group();
    const member = primary(group);
    const count = FOUNDINGS_MAX * 3;
    for (let i = 0; i < count; i++) member.submit(submission(i), `c${i}`);
    group.commit();
    expect(member.founds).toHaveLength(FOUNDINGS_MAX);
    const seen = new Set<string>();
    for (let round = 0; round < 20; round++) {
      for (const { key, jobId } of member.founds.splice(0)) {
        expect(seen.has(jobId)).toBe(false);
        seen.add(jobId);
        member.run(member.waiters.founded(key, jobId, group.at));
      }
      group.commit();
    }
    expect(seen.size).toBe(count);
    expect(member.state.pendingCount).toBe(0);
  });

  it("keeps everything when the log accepts no proposal: the client and the founding retry", () => {
    const group = new Group();
    const member = primary(group);
    member.submit(submission(1), "client");
    const [entry] = group.proposed.splice(0);
    if (entry === undefined) throw new Error("proposed");
    member.run(member.waiters.refused(entry, group.at));
    expect(member.answers.get("client")).toMatchObject({ kind: "retry" });
    member.submit(submission(1), "again");
    group.commit();
    const { key, jobId } = member.founds[0] as Founding;
    member.run(member.waiters.founded(key, jobId, group.at));
    const [commit] = group.proposed.splice(0);
    if (commit === undefined) throw new Error("proposed");
    member.run(member.waiters.refused(commit, group.at));
    group.tick(FOUNDING_RETRY_MS);
    expect(member.founds).toHaveLength(2);
  });

  it("reports reservations that stay pending beyond the threshold, and never drops them", () => {
    const group = new Group();
    const member = primary(group);
    member.submit(submission(1), "client");
    group.commit();
    for (let i = 0; i < 10; i++) group.tick(config.cleanupIntervalMs);
    group.commit();
    expect(member.overdue.length).toBeGreaterThan(0);
    expect(member.state.status(sampleKey(1))).toBe("pending");
  });
});

describe("bounds", () => {
  it("at ten times a shard's capacity, new keys get a retry and known ones are answered", () => {
    const limits = { ...config, entriesMax: 64 * 100 };
    const group = new Group(IDEMPOTENCY_RULES, limits);
    const member = primary(group);
    for (let i = 0; i < 1_000; i++) {
      member.submit(submission(i), `c${i}`);
      if (i % 7 === 0) group.commit();
    }
    group.commit();
    expect(member.state.size).toBe(100);
    const kinds = [...member.answers.values()].map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === "retry")).toHaveLength(900);
    member.submit(submission(0), "known");
    expect(member.answers.get("known")).toMatchObject({ kind: "accepted", duplicate: true });
  });

  it("the bytes of jobs not founded yet are bounded", () => {
    const group = new Group();
    const member = primary(group);
    const big = new Uint8Array(CREATED_BYTES_MAX);
    for (let i = 0; i < 40; i++) {
      member.submit(submission(i, { admit: () => accept(`big-${i}`, big) }), `c${i}`);
      if (i % 3 === 0) group.commit();
    }
    group.commit();
    expect(member.state.createdBytes).toBeLessThanOrEqual(CREATED_BYTES_HELD_MAX);
    expect(member.state.size).toBe(Math.floor(CREATED_BYTES_HELD_MAX / CREATED_BYTES_MAX));
  });

  it("waiters are bounded, and waits that end leave nothing behind", () => {
    const group = new Group();
    const member = primary(group);
    for (let i = 0; i < WAITERS_MAX + 10; i++) member.submit(submission(1), `c${i}`);
    expect(member.waiters.waiterCount).toBe(WAITERS_MAX);
    expect([...member.answers.values()].every(({ kind }) => kind === "retry")).toBe(true);
    expect(member.answers.size).toBe(10);
    group.tick(config.pendingWaitTimeoutMs);
    expect(member.waiters.waiterCount).toBe(0);
    expect(member.answers.size).toBe(WAITERS_MAX + 10);
    group.commit();
    expect(member.answers.size).toBe(WAITERS_MAX + 10);
  });
});

describe("broken rules show", () => {
  it("answerAfterApply: a job is acked that a change of primary loses", () => {
    const group = new Group({ ...IDEMPOTENCY_RULES, answerAfterApply: false });
    const member = primary(group);
    member.submit(submission(1), "client");
    group.proposed = [];
    expect(member.answers.get("client")?.kind).toBe("accepted");
    expect(member.state.size).toBe(0);
  });

  it("canonicalJob: the retry gets another job than the original", () => {
    const group = new Group({ ...IDEMPOTENCY_RULES, canonicalJob: false });
    const member = primary(group);
    member.submit(submission(1), "one");
    group.commit();
    member.submit(submission(1), "two");
    expect(group.jobs().size).toBe(2);
  });

  it("transientNeverStored: a temporary lack of capacity rejects the key for good", () => {
    const group = new Group({ ...IDEMPOTENCY_RULES, transientNeverStored: false });
    const member = primary(group);
    member.submit(submission(1, { admit: () => ({ kind: "defer", why: "busy" }) }), "one");
    group.commit();
    expect(member.answers.get("one")?.kind).toBe("rejected");
  });

  it("noEvictionWithinTtl: a full shard forgets, and a retry becomes a second job", () => {
    const group = new Group(
      { ...IDEMPOTENCY_RULES, noEvictionWithinTtl: false },
      { ...config, entriesMax: 64 },
    );
    const member = primary(group);
    member.submit(submission(1), "one");
    group.commit();
    const { key, jobId } = member.founds[0] as Founding;
    member.run(member.waiters.founded(key, jobId, group.at));
    group.commit();
    member.submit(submission(2), "two");
    group.commit();
    member.submit(submission(1), "one again");
    group.commit();
    expect(group.jobs().size).toBe(2);
  });

  it("inheritedFounded: an acked job is never founded after a change of primary", () => {
    const group = new Group({ ...IDEMPOTENCY_RULES, inheritedFounded: false });
    primary(group).submit(submission(1), "client");
    group.commit();
    const next = group.member(1);
    next.run(next.waiters.takeOver(group.at));
    group.tick(60_000);
    expect(next.founds).toHaveLength(0);
  });
});
