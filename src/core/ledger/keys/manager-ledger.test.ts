import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeUtf8 } from "../../base/bytes.ts";
import { Random } from "../../base/random.ts";
import { IDEMPOTENCY_PROFILES } from "./config.ts";
import type { SubmissionAnswer } from "./decide.ts";
import {
  decodeLedgerBase,
  decodeLedgerRecord,
  encodeLedgerBase,
  encodeLedgerRecord,
  type LedgerRecord,
} from "./ledger-record.ts";
import { type ManagerEffect, ManagerLedger, PROCESS_RETRY_MS } from "./manager-ledger.ts";
import { IDEMPOTENCY_RULES } from "./rules.ts";
import { sampleKey, samplePrint } from "./testing/samples.ts";

const config = IDEMPOTENCY_PROFILES.production.authority;

/** A manager with its disk: what is appended, what of it is durable, which jobs were created, who was told what. */
class Manager {
  ledger: ManagerLedger<string>;
  readonly rules: typeof IDEMPOTENCY_RULES;
  readonly limits: typeof config;
  disk: Uint8Array[] = [];
  durableCount = 0;
  /** Appends of the life before, at the head of the disk. */
  #before = 0;
  readonly created: string[] = [];
  readonly todo: { key: ReturnType<typeof sampleKey>; jobId: string }[] = [];
  readonly answers = new Map<string, SubmissionAnswer>();
  readonly overdue: string[] = [];
  at = { now: 0, wall: 1_700_000_000_000 };

  constructor(rules = IDEMPOTENCY_RULES, limits = config) {
    this.rules = rules;
    this.limits = limits;
    this.ledger = new ManagerLedger(limits, rules);
  }

  run(effects: readonly ManagerEffect<string>[]): void {
    for (const effect of effects) {
      if (effect.kind === "append") this.disk.push(effect.payload);
      else if (effect.kind === "overdue") this.overdue.push(effect.jobId);
      else if (effect.kind === "process") {
        // Creation is idempotent by job id.
        if (!this.created.includes(effect.job.jobId)) this.created.push(effect.job.jobId);
        this.todo.push(effect.job);
      } else {
        expect(this.answers.has(effect.waiter), "everybody is answered once").toBe(false);
        this.answers.set(effect.waiter, effect.answer);
      }
    }
  }

  submit(sequence: number, jobId: string, waiter: string, body = `body ${sequence}`): void {
    const key = sampleKey(sequence);
    const job = { key, jobId, fingerprint: samplePrint(body), submission: encodeUtf8(body) };
    this.run(this.ledger.submit(job, waiter, this.at));
  }

  /** Makes appends durable, all by default. */
  sync(count = this.disk.length): void {
    this.durableCount = count;
    this.run(this.ledger.durable(count - this.#before));
  }

  /** Ends the oldest job in hand. */
  finish(how: "commit" | "reject" | "defer" = "commit"): void {
    const job = this.todo.shift();
    if (job === undefined) return;
    if (how === "defer") this.run(this.ledger.defer(job.key, "no capacity", this.at));
    else this.run(this.ledger[how](job.key, encodeUtf8(`${how} ${job.jobId}`), this.at));
  }

  tick(ms: number): void {
    this.at = { now: this.at.now + ms, wall: this.at.wall + ms };
    this.run(this.ledger.tick(this.at));
  }

  /** The process dies; what was not durable survives in part, as the disk likes. */
  restart(surviving: number): void {
    expect(surviving).toBeGreaterThanOrEqual(this.durableCount);
    this.disk = this.disk.slice(0, surviving);
    this.durableCount = surviving;
    this.#before = surviving;
    this.todo.length = 0;
    this.ledger = new ManagerLedger(this.limits, this.rules, 7);
    const replayed = this.ledger.replay(this.disk, this.at);
    if (!replayed.ok) throw new Error("the disk is readable");
    this.run(replayed.effects);
  }

  /** Works until nothing is left to do. */
  settle(): void {
    for (let i = 0; i < 10; i++) {
      this.sync();
      while (this.todo.length > 0) this.finish();
    }
  }
}

describe("the manager ledger", () => {
  it("starts a job when its reservation is durable, and answers when its end is", () => {
    const manager = new Manager();
    manager.submit(1, "job-a", "client");
    expect([manager.disk.length, manager.created.length]).toEqual([1, 0]);
    manager.sync();
    expect(manager.created).toEqual(["job-a"]);
    manager.finish();
    expect(manager.answers.size).toBe(0);
    expect(manager.ledger.status(sampleKey(1))).toBe("pending");
    manager.sync();
    expect(manager.answers.get("client")).toMatchObject({ jobId: "job-a", duplicate: false });
    expect(manager.ledger.status(sampleKey(1))).toBe("committed");
  });

  it("one hundred submissions at once, while the record is on its way: one job (IDEM-16)", () => {
    const manager = new Manager();
    for (let i = 0; i < 100; i++) manager.submit(1, `job-${i}`, `c${i}`);
    expect(manager.disk).toHaveLength(1);
    manager.settle();
    expect(manager.created).toEqual(["job-0"]);
    expect(manager.answers.size).toBe(100);
    const jobs = [...manager.answers.values()].map((answer) =>
      answer.kind === "accepted" ? answer.jobId : answer.kind,
    );
    expect(new Set(jobs)).toEqual(new Set(["job-0"]));
  });

  it("knows a job by its id first, by its key second (IDEM-25)", () => {
    const manager = new Manager();
    manager.submit(1, "job-a", "first");
    manager.settle();
    manager.submit(2, "job-a", "same job", "body 1");
    manager.submit(1, "job-b", "same key");
    expect([manager.answers.get("same job"), manager.answers.get("same key")]).toMatchObject([
      { jobId: "job-a", duplicate: true },
      { jobId: "job-a", duplicate: true },
    ]);
  });

  it("refuses a reused key, and gives rejections again", () => {
    const manager = new Manager();
    manager.submit(1, "job-a", "first");
    manager.sync();
    manager.finish("reject");
    manager.sync();
    manager.submit(1, "job-b", "other", "another body");
    manager.submit(1, "job-c", "again");
    expect(manager.answers.get("first")).toMatchObject({ kind: "rejected", duplicate: false });
    expect(manager.answers.get("other")).toEqual({ kind: "keyReused" });
    expect(manager.answers.get("again")).toMatchObject({ kind: "rejected", duplicate: true });
  });

  it("keeps a deferred job, tells its clients to retry, and tries again (IDEM-8)", () => {
    const manager = new Manager();
    manager.submit(1, "job-a", "first");
    manager.sync();
    manager.finish("defer");
    expect(manager.answers.get("first")).toEqual({ kind: "retry", why: "no capacity" });
    manager.submit(1, "job-b", "second");
    manager.tick(PROCESS_RETRY_MS);
    manager.settle();
    expect(manager.answers.get("second")).toMatchObject({ kind: "accepted", jobId: "job-a" });
    expect(manager.created).toEqual(["job-a"]);
  });

  it("never lets an end change: a second commit or reject does nothing (IDEM-6)", () => {
    const manager = new Manager();
    manager.submit(1, "job-a", "first");
    manager.sync();
    manager.finish();
    const key = sampleKey(1);
    expect(manager.ledger.reject(key, encodeUtf8("no"), manager.at)).toEqual([]);
    manager.sync();
    expect(manager.ledger.reject(key, encodeUtf8("no"), manager.at)).toEqual([]);
    expect(manager.ledger.commit(sampleKey(9), encodeUtf8("x"), manager.at)).toEqual([]);
    expect(manager.disk).toHaveLength(2);
  });

  it("forgets ended entries after their time and open ones never", () => {
    const manager = new Manager();
    manager.submit(1, "job-a", "a");
    manager.sync();
    manager.finish();
    manager.submit(2, "job-b", "b");
    manager.sync();
    manager.tick(config.committedTtlMs - 1);
    expect(manager.ledger.size).toBe(2);
    manager.tick(config.cleanupIntervalMs);
    expect(manager.ledger.status(sampleKey(1))).toBeNull();
    expect(manager.ledger.status(sampleKey(2))).toBe("pending");
    expect(manager.overdue).toContain("job-b");
    expect(manager.answers.get("b")).toMatchObject({ kind: "retry" });
  });

  it("is bounded: full, it answers RETRY for new keys and knows the old ones", () => {
    const manager = new Manager(IDEMPOTENCY_RULES, { ...config, entriesMax: 100 });
    for (let i = 0; i < 1_000; i++) manager.submit(i, `job-${i}`, `c${i}`);
    manager.settle();
    expect(manager.ledger.size).toBe(100);
    expect(manager.created).toHaveLength(100);
    const retries = [...manager.answers.values()].filter(({ kind }) => kind === "retry");
    expect(retries).toHaveLength(900);
    manager.submit(5, "job-x", "known");
    expect(manager.answers.get("known")).toMatchObject({ kind: "accepted", jobId: "job-5" });
  });

  it("writes itself as records that replay to the same ledger", () => {
    const manager = new Manager();
    for (let i = 0; i < 9; i++) manager.submit(i, `job-${i}`, `c${i}`);
    manager.sync();
    for (let i = 0; i < 6; i++) manager.finish(i % 2 === 0 ? "commit" : "reject");
    manager.sync();
    const records = [...manager.ledger.records()];
    const copy = new ManagerLedger<string>(config);
    const replayed = copy.replay(records, manager.at);
    expect(replayed.ok && replayed.effects).toHaveLength(3);
    expect([...copy.records()]).toEqual(records);
  });

  it("refuses a record it cannot read, and says which", () => {
    const manager = new Manager();
    manager.submit(1, "job-a", "a");
    const [record = new Uint8Array(0)] = manager.disk;
    const replayed = new ManagerLedger<string>(config).replay(
      [record, record.slice(1)],
      manager.at,
    );
    expect(replayed).toEqual({ ok: false, refusal: { code: "UNREADABLE_RECORD", index: 1 } });
  });
});

/** A submission and its duplicate, step by step; each step is a place to die. */
const path: readonly ((manager: Manager) => void)[] = [
  (manager) => manager.submit(1, "job-a", "first"),
  (manager) => manager.submit(1, "job-b", "second"),
  (manager) => manager.sync(),
  (manager) => manager.submit(1, "job-c", "third"),
  (manager) => manager.finish(),
  (manager) => manager.submit(1, "job-d", "fourth"),
  (manager) => manager.sync(),
  (manager) => manager.submit(1, "job-e", "fifth"),
];

/** The theorem, for one key: one job, all acks name it, and a retry after any crash gets it. */
function checkOneJob(manager: Manager): void {
  manager.submit(1, "job-retry", "retry");
  manager.settle();
  expect(manager.created).toHaveLength(1);
  const jobs = [...manager.answers.values()].flatMap((answer) =>
    answer.kind === "accepted" ? [answer.jobId] : [],
  );
  expect(new Set(jobs)).toEqual(new Set(manager.created));
  expect(manager.answers.get("retry")).toMatchObject({ kind: "accepted" });
}

function crashEverywhere(rules = IDEMPOTENCY_RULES): number {
  let crashes = 0;
  for (let steps = 0; steps <= path.length; steps++) {
    const dry = new Manager(rules);
    for (const step of path.slice(0, steps)) step(dry);
    for (let surviving = dry.durableCount; surviving <= dry.disk.length; surviving++) {
      const manager = new Manager(rules);
      for (const step of path.slice(0, steps)) step(manager);
      manager.restart(surviving);
      checkOneJob(manager);
      crashes++;
    }
  }
  return crashes;
}

describe("dying anywhere on the path of a submission", () => {
  it("leaves one job, for every step and every part of the unsynced log that survives", () => {
    expect(crashEverywhere()).toBe(13);
  });

  it("a reservation that was not durable leaves no trace: the retry is new", () => {
    const manager = new Manager();
    manager.submit(1, "job-a", "first");
    manager.restart(0);
    manager.submit(1, "job-b", "retry");
    manager.settle();
    expect(manager.created).toEqual(["job-b"]);
  });

  it("a durable reservation is resumed under its own job id, without any client (IDEM-18)", () => {
    const manager = new Manager();
    manager.submit(1, "job-a", "first");
    manager.restart(1);
    manager.settle();
    expect(manager.ledger.status(sampleKey(1))).toBe("committed");
    expect(manager.created).toEqual(["job-a"]);
  });

  it("many keys, many crashes, any order: one job per key and acks that agree", () => {
    const step = fc.record({
      what: fc.constantFrom(
        "submit",
        "submit",
        "sync",
        "finish",
        "reject",
        "defer",
        "crash",
        "tick",
      ),
      sequence: fc.nat(4),
      amount: fc.nat(5),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const manager = new Manager();
        const keyOfJob = new Map<string, number>();
        const keyOfClient = new Map<string, number>();
        let clients = 0;
        const submit = (sequence: number): void => {
          const id = clients++;
          keyOfJob.set(`job-${id}`, sequence);
          keyOfClient.set(`c${id}`, sequence);
          manager.submit(sequence, `job-${id}`, `c${id}`);
        };
        for (const { what, sequence, amount } of steps) {
          if (what === "submit") submit(sequence);
          else if (what === "sync") {
            manager.sync(Math.min(manager.disk.length, manager.durableCount + amount));
          } else if (what === "finish") manager.finish();
          else if (what === "reject") manager.finish("reject");
          else if (what === "defer") manager.finish("defer");
          else if (what === "tick") manager.tick(amount * 700);
          else manager.restart(Math.min(manager.disk.length, manager.durableCount + amount));
        }
        manager.tick(PROCESS_RETRY_MS);
        for (let sequence = 0; sequence < 5; sequence++) submit(sequence);
        manager.settle();
        const jobsByKey = new Map<number, Set<string>>();
        for (const jobId of manager.created) {
          const key = keyOfJob.get(jobId) ?? -1;
          jobsByKey.set(key, (jobsByKey.get(key) ?? new Set()).add(jobId));
        }
        for (const jobs of jobsByKey.values()) expect(jobs.size).toBe(1);
        for (const [client, answer] of manager.answers) {
          if (answer.kind !== "accepted") continue;
          expect(jobsByKey.get(keyOfClient.get(client) ?? -1)).toContain(answer.jobId);
        }
      }),
      { numRuns: 300, seed: 41 },
    );
  });

  it("broken rules show: answers before the disk, claims after it, reservations left lying", () => {
    for (const rule of ["durableFirst", "pendingResumed"] as const) {
      expect(() => crashEverywhere({ ...IDEMPOTENCY_RULES, [rule]: false }), rule).toThrow();
    }
    const late = new Manager({ ...IDEMPOTENCY_RULES, claimBeforeAppend: false });
    late.submit(1, "job-a", "a");
    late.submit(1, "job-b", "b");
    late.sync();
    expect(late.created).toHaveLength(2);
  });
});

describe("records", () => {
  const record: LedgerRecord = {
    key: sampleKey(3),
    jobId: "job-3",
    status: "pending",
    createdAt: 1_700_000_000_123,
    committedAt: null,
    result: new Uint8Array(0),
    fingerprint: samplePrint("body"),
    submission: encodeUtf8("the submission"),
  };

  it("have the golden bytes of the fixed part", () => {
    const base = {
      key: "host1:42:abc123",
      jobId: "abc",
      status: "pending",
      createdAt: 1_000,
      committedAt: null,
      result: new Uint8Array(0),
    } as const;
    const bytes = encodeLedgerBase(base);
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    expect(hex).toBe(
      "0000000f686f7374313a34323a61626331323300000003616263013ff0000000000000000000000000000000000000",
    );
    expect(bytes).toHaveLength(47);
    expect(decodeLedgerBase(bytes)).toEqual(base);
  });

  it("come back as they went in, to the millisecond", () => {
    const ended = { ...record, status: "committed", submission: new Uint8Array(0) } as const;
    const whole = { ...ended, committedAt: 1_700_000_001_457, result: encodeUtf8("ack") };
    for (const one of [record, whole, { ...whole, status: "rejected" } as const]) {
      expect(decodeLedgerRecord(encodeLedgerRecord(one))).toEqual(one);
    }
  });

  it("are refused when cut anywhere, and when anything follows", () => {
    const bytes = encodeLedgerRecord(record);
    for (let length = 0; length < bytes.length; length++) {
      expect(decodeLedgerRecord(bytes.subarray(0, length))).toBeNull();
      expect(decodeLedgerBase(bytes.subarray(0, length))?.key ?? record.key).toBe(record.key);
    }
    expect(decodeLedgerRecord(Uint8Array.of(...bytes, 0))).toBeNull();
  });

  it("never make the decoder throw, and what it accepts is stable", () => {
    const random = new Random("records");
    let accepted = 0;
    for (let i = 0; i < 6_000; i++) {
      const bytes = encodeLedgerRecord(record);
      for (let flips = random.below(3); flips >= 0; flips--) {
        bytes[random.below(bytes.length)] = random.below(256);
      }
      const decoded = decodeLedgerRecord(bytes);
      if (decoded === null) continue;
      accepted++;
      expect(decodeLedgerRecord(encodeLedgerRecord(decoded))).toEqual(decoded);
    }
    expect(accepted).toBeGreaterThan(300);
  });
});
