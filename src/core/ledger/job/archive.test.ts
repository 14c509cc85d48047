import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  ARCHIVE_ENTRIES_MAX,
  type ArchiveRecord,
  archiveRecords,
  decodeArchiveRecord,
  encodeArchiveRecord,
  isDueForArchive,
  isDueForRemoval,
  isIntact,
} from "./archive.ts";
import { type AuditQuery, auditEvents, type JobStretch, RecentEvents } from "./audit.ts";
import { LEDGER_DEFAULTS } from "./config.ts";
import { applyEvent, CHAIN_BYTES, initialState } from "./fold.ts";
import { formatJobId, type JobId } from "./job-id.ts";
import type { CommittedEntry } from "./repair.ts";
import { anyStream, event, JOB, stamp } from "./testing/events.ts";

const config = LEDGER_DEFAULTS.archive;
const START = new Uint8Array(CHAIN_BYTES);

function recordsOf(entries: readonly CommittedEntry[]): readonly ArchiveRecord[] {
  return [...archiveRecords(JOB, entries, START, 5_000)];
}

describe("archive records", () => {
  const stretch = anyStream.map((events) =>
    events.map((one, seq) => ({ seq, event: seq % 5 === 4 ? null : one })),
  );

  it("are given back byte for byte, and end at the chain of the fold", () => {
    fc.assert(
      fc.property(stretch, (entries) => {
        const records = recordsOf(entries);
        if (entries.length === 0) {
          expect(records).toEqual([]);
          return;
        }
        expect(records).toHaveLength(1);
        const [record] = records as [ArchiveRecord];
        expect(decodeArchiveRecord(encodeArchiveRecord(record))).toEqual({
          ok: true,
          value: record,
        });
        let state = initialState(JOB);
        for (const { event, seq } of entries) {
          if (event !== null) state = applyEvent(state, event, seq).state;
        }
        expect(record.chainAfter).toEqual(state.chain);
      }),
      { numRuns: 150 },
    );
  });

  it("are cut in time, and chain on without a hole", () => {
    const empty = Array.from({ length: ARCHIVE_ENTRIES_MAX + 5 }, (_, seq) => ({
      seq,
      event: null,
    }));
    expect(recordsOf(empty).map(({ entries }) => entries.length)).toEqual([ARCHIVE_ENTRIES_MAX, 5]);
    const big = Array.from({ length: 12 }, (_, seq) => ({
      seq,
      event: event("JobCreated", { spec: new Uint8Array(1_000_000) }),
    }));
    const records = recordsOf(big);
    expect(records.map(({ entries }) => entries.length)).toEqual([5, 5, 2]);
    expect(records.every(isIntact)).toBe(true);
    expect(records[1]?.chainBefore).toEqual(records[0]?.chainAfter);
  });

  it("show every change: no flipped bit of an event passes", () => {
    const [record] = recordsOf([
      { seq: 0, event: event("JobCreated") },
      { seq: 1, event: event("JobAccepted") },
    ]);
    const bytes = encodeArchiveRecord(record as ArchiveRecord);
    for (let at = 0; at < bytes.length; at++) {
      const flipped = bytes.slice();
      flipped[at] = (flipped[at] ?? 0) ^ 4;
      const decoded = decodeArchiveRecord(flipped);
      // The head's own numbers are not part of the chain; the log that carries the record sums them.
      if (decoded.ok)
        expect(decoded.value.entries.map((it) => it.event)).toEqual(
          record?.entries.map((it) => it.event),
        );
    }
    for (let cut = 0; cut < bytes.length; cut++) {
      expect(decodeArchiveRecord(bytes.subarray(0, cut)).ok).toBe(false);
    }
  });

  it("answer any bytes with a record or a problem", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => {
        if (noise.length > 0) noise[0] = 1;
        const decoded = decodeArchiveRecord(noise);
        if (!decoded.ok) expect(decoded.problem).not.toBe("");
      }),
      { numRuns: 500 },
    );
  });

  it("are made a day after the end, and kept for ever unless told otherwise", () => {
    const day = 24 * 3_600_000;
    const created = applyEvent(initialState(JOB), event("JobCreated"), 0).state;
    const failed = event("JobFailed", { hlc: stamp(1_000) });
    const ended = applyEvent(created, failed, 1).state;
    expect(isDueForArchive(created, 10 * day, config)).toBe(false);
    expect(isDueForArchive(ended, 1_000 + day - 1, config)).toBe(false);
    expect(isDueForArchive(ended, 1_000 + day, config)).toBe(true);
    const record = { archivedAtMs: 0 };
    expect(isDueForRemoval(record, 1e15, config)).toBe(false);
    expect(isDueForRemoval(record, day, { ...config, retentionMs: day })).toBe(true);
  });
});

describe("audit queries", () => {
  const jobOf = (at: number): JobId =>
    formatJobId({ region: "use1", timestampMs: at, gate: "g", sequence: 1 });

  /** Jobs with events at arbitrary times; each has an archived and a live part, which may overlap. */
  const world = fc.array(
    fc.record({
      times: fc.array(fc.nat(40), { minLength: 1, maxLength: 12 }),
      archived: fc.nat(12),
      live: fc.nat(12),
    }),
    { maxLength: 6 },
  );

  it("find each event of the range once, in the order of times, page by page", () => {
    fc.assert(
      fc.property(
        world,
        fc.nat(40),
        fc.nat(40),
        fc.integer({ min: 1, max: 7 }),
        (jobs, x, y, size) => {
          const [fromMs, toMs] = [Math.min(x, y), Math.max(x, y)];
          const live: JobStretch[] = [];
          const archived: JobStretch[] = [];
          const expected: string[] = [];
          for (const [at, job] of jobs.entries()) {
            const jobId = jobOf(at);
            const entries = job.times.map((wallMs, seq) => ({
              seq,
              event: event("JobAccepted", { jobId, hlc: stamp(wallMs) }),
            }));
            const cut = Math.min(job.archived, entries.length);
            archived.push({ jobId, entries: entries.slice(0, cut) });
            live.push({ jobId, entries: entries.slice(Math.max(0, cut - job.live)) });
            for (const [seq, wallMs] of job.times.entries()) {
              if (wallMs >= fromMs && wallMs <= toMs) expected.push(`${wallMs} ${jobId} ${seq}`);
            }
          }
          const found: string[] = [];
          const times: number[] = [];
          let query: AuditQuery = { fromMs, toMs, rowsMax: size };
          for (let pages = 0; pages < 200; pages++) {
            const { next, rows } = auditEvents(query, live, archived);
            expect(rows.length).toBeLessThanOrEqual(size);
            for (const { event, jobId, seq } of rows) {
              found.push(`${event.hlc.wallMs} ${jobId} ${seq}`);
              times.push(event.hlc.wallMs);
            }
            if (next === null) break;
            query = { ...query, after: next };
          }
          expect([...found].sort()).toEqual(expected.sort());
          expect(times).toEqual([...times].sort((a, b) => a - b));
        },
      ),
      { numRuns: 200 },
    );
  });

  it("can be narrowed to a job and to kinds of events", () => {
    const entries = [
      { seq: 0, event: event("JobCreated", { hlc: stamp(1) }) },
      { seq: 1, event: null },
      { seq: 2, event: event("JobCancellationRequested", { hlc: stamp(2) }) },
    ];
    const sources = [{ jobId: JOB, entries }];
    const ask = (query: Partial<AuditQuery>): number[] => {
      const { rows } = auditEvents({ fromMs: 0, toMs: 9, rowsMax: 10, ...query }, sources, []);
      return rows.map(({ seq }) => seq);
    };
    expect(ask({})).toEqual([0, 2]);
    expect(ask({ kinds: ["JobCancellationRequested"] })).toEqual([2]);
    expect(ask({ jobId: JOB, toMs: 1 })).toEqual([0]);
    expect(ask({ jobId: jobOf(1) })).toEqual([]);
  });

  it("keep the newest 10,000 events in memory, no more", () => {
    const recent = new RecentEvents(config.historyMax);
    const one = event("JobAccepted");
    for (let seq = 0; seq < 35_000; seq++) recent.add({ jobId: JOB, seq, event: one });
    const seqs = [...recent].map(({ seq }) => seq);
    expect([recent.size, seqs[0], seqs.at(-1)]).toEqual([10_000, 25_000, 34_999]);
  });
});
