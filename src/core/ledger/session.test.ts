import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LEDGER_DEFAULTS } from "./config.ts";
import { formatJobId, type JobId } from "./job-id.ts";
import { DEFAULT_READ_LEVELS, READ_LEVELS, type ReplicaView, Session } from "./session.ts";
import { JOB } from "./testing/events.ts";

const config = LEDGER_DEFAULTS.session;
const OTHER = "use1-1-g-00002" as JobId;

function replica(appliedSeq: number, changes: Partial<ReplicaView> = {}): ReplicaView {
  return {
    isPrimary: false,
    appliedSeq,
    appliedHlc: { wallMs: 100 + appliedSeq, logical: 0 },
    primaryHeardMsAgo: 0,
    ...changes,
  };
}

const serve = (session: Session, ...rest: Parameters<Session["decide"]>): string =>
  session.decide(...rest).serve;

describe("read levels", () => {
  it("EVENTUAL is always local", () => {
    const session = new Session(config);
    session.wrote(JOB, 9);
    expect(serve(session, JOB, "EVENTUAL", replica(-1))).toBe("local");
  });

  it("SESSION waits for the session's own writes, of that job only (SESS-1)", () => {
    const session = new Session(config);
    session.wrote(JOB, 5);
    expect(session.decide(JOB, "SESSION", replica(4))).toEqual({
      serve: "forward",
      why: "the session's own write is not applied here yet",
    });
    expect(serve(session, JOB, "SESSION", replica(5))).toBe("local");
    expect(serve(session, OTHER, "SESSION", replica(-1))).toBe("local");
  });

  it("SESSION never goes back in time, also between states of one time (SESS-3)", () => {
    const session = new Session(config);
    session.observed(JOB, 7, { wallMs: 107, logical: 0 });
    expect(serve(session, JOB, "SESSION", replica(6))).toBe("forward");
    expect(
      serve(session, JOB, "SESSION", replica(6, { appliedHlc: { wallMs: 107, logical: 0 } })),
    ).toBe("forward");
    expect(serve(session, JOB, "SESSION", replica(8, { appliedHlc: null }))).toBe("forward");
    expect(serve(session, JOB, "SESSION", replica(7))).toBe("local");
  });

  it("BOUNDED_STALENESS goes by when the primary was last heard", () => {
    const session = new Session(config);
    const heard = (ms: number | null): ReplicaView => replica(3, { primaryHeardMsAgo: ms });
    expect(serve(session, JOB, "BOUNDED_STALENESS", heard(1_000))).toBe("local");
    expect(session.decide(JOB, "BOUNDED_STALENESS", heard(1_001))).toEqual({
      serve: "forward",
      why: "the primary was heard 1001 ms ago, allowed are 1000 ms",
    });
    expect(serve(session, JOB, "BOUNDED_STALENESS", heard(1_001), 5_000)).toBe("local");
    expect(serve(session, JOB, "BOUNDED_STALENESS", heard(null))).toBe("forward");
  });

  it("STRONG is a quorum read at the primary and goes nowhere else", () => {
    const session = new Session(config);
    const primary = replica(3, { isPrimary: true });
    expect(serve(session, JOB, "STRONG", primary)).toBe("quorumRead");
    expect(serve(session, JOB, "STRONG", replica(3))).toBe("forward");
  });

  it("have the documented defaults (SESS-4)", () => {
    expect(DEFAULT_READ_LEVELS).toEqual({
      operation: "SESSION",
      dashboard: "EVENTUAL",
      statusVerification: "STRONG",
    });
    expect(config.stalenessMs).toBe(1_000);
  });
});

describe("memory of a session", () => {
  it("drops a write once a read has covered it, and still never goes back (SESS-2)", () => {
    const session = new Session(config);
    session.wrote(JOB, 5);
    session.observed(JOB, 5, { wallMs: 105, logical: 0 });
    expect(session.sizes).toEqual({ written: 0, read: 1 });
    expect(serve(session, JOB, "SESSION", replica(4))).toBe("forward");
  });

  it("is bounded, and what was forgotten is forwarded, not guessed", () => {
    const session = new Session({ ...config, jobsMax: 3 });
    const jobs = Array.from({ length: 10 }, (_, at) =>
      formatJobId({ region: "use1", timestampMs: at, gate: "g", sequence: 1 }),
    );
    for (const jobId of jobs) session.wrote(jobId, 4);
    expect(session.sizes.written).toBe(3);
    expect(serve(session, jobs[0] as JobId, "SESSION", replica(0))).toBe("forward");
    expect(serve(session, jobs[9] as JobId, "SESSION", replica(4))).toBe("local");
  });
});

describe("histories over lagging replicas", () => {
  const job = fc.constantFrom(JOB, OTHER);
  const at = fc.nat(2);
  const move = fc.oneof(
    fc.record({ kind: fc.constant("write" as const), job }),
    fc.record({ kind: fc.constant("foreignWrite" as const), job }),
    fc.record({
      kind: fc.constant("read" as const),
      job,
      at,
      level: fc.constantFrom(...READ_LEVELS),
    }),
    fc.record({ kind: fc.constant("sync" as const), at }),
    fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(10, 700, 2_000) }),
  );

  it("keep each level's promise", () => {
    let forwards = 0;
    let locals = 0;
    fc.assert(
      fc.property(fc.array(move, { maxLength: 60 }), fc.nat(4), (moves, jobsMax) => {
        const session = new Session({ ...config, jobsMax });
        let now = 0;
        /** Times at which each place was committed; several places may have one time. */
        const logs = new Map<JobId, number[]>([
          [JOB, []],
          [OTHER, []],
        ]);
        // Replica 0 is the primary.
        const applied = [0, 1, 2].map(() => new Map<JobId, number>());
        const heardAt = [0, 0, 0];
        const written = new Map<JobId, number>();
        const lastRead = new Map<JobId, number>();
        const logOf = (jobId: JobId): number[] => logs.get(jobId) as number[];
        const commit = (jobId: JobId): number => {
          applied[0]?.set(jobId, logOf(jobId).push(now) - 1);
          return logOf(jobId).length - 1;
        };
        for (const one of moves) {
          if (one.kind === "wait") now += one.ms;
          else if (one.kind === "foreignWrite") commit(one.job);
          else if (one.kind === "write") {
            const seq = commit(one.job);
            session.wrote(one.job, seq);
            written.set(one.job, seq);
          } else if (one.kind === "sync") {
            applied[one.at] = new Map(applied[0]);
            heardAt[one.at] = now;
          } else {
            const { at, job, level } = one;
            const log = logOf(job);
            const local = applied[at]?.get(job) ?? -1;
            const timeOf = (seq: number): { wallMs: number; logical: number } | null =>
              seq < 0 ? null : { wallMs: log[seq] ?? 0, logical: 0 };
            const decision = session.decide(job, level, {
              isPrimary: at === 0,
              appliedSeq: local,
              appliedHlc: timeOf(local),
              primaryHeardMsAgo: at === 0 ? 0 : now - (heardAt[at] ?? 0),
            });
            const seen = decision.serve === "local" ? local : log.length - 1;
            if (decision.serve === "local") locals++;
            else forwards++;
            if (level === "STRONG") {
              expect(decision.serve).toBe(at === 0 ? "quorumRead" : "forward");
            }
            if (level === "SESSION") {
              expect(seen).toBeGreaterThanOrEqual(written.get(job) ?? -1);
              expect(seen).toBeGreaterThanOrEqual(lastRead.get(job) ?? -1);
            }
            if (level === "BOUNDED_STALENESS") {
              const due = log.filter((committedAt) => committedAt < now - config.stalenessMs);
              expect(seen).toBeGreaterThanOrEqual(due.length - 1);
            }
            lastRead.set(job, Math.max(seen, lastRead.get(job) ?? -1));
            session.observed(job, seen, timeOf(seen));
          }
        }
      }),
      { numRuns: 800 },
    );
    expect(Math.min(forwards, locals)).toBeGreaterThan(100);
  });
});
