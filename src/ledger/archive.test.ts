import { appendFile, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { NodeId } from "../core/base/ids.ts";
import type { EventId, JobEvent } from "../core/ledger/job/events.ts";
import { applyEvent } from "../core/ledger/job/fold.ts";
import type { JobId } from "../core/ledger/job/job-id.ts";
import { initialState, type JobState } from "../core/ledger/job/job-state.ts";
import { encodeJobState } from "../core/ledger/job/state-codec.ts";
import { Archive } from "./archive.ts";

const DAY_MS = 86_400_000;
const NOON = Date.UTC(2026, 0, 31, 12);

let directory: string;
let wall = NOON;
let problems: string[] = [];

const open = (keepMs = 30 * DAY_MS): Promise<Archive> =>
  Archive.open({
    directory,
    keepMs,
    wall: () => wall,
    onProblem: (file, problem) => problems.push(`${file}: ${problem}`),
  });

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "hyperscale-archive-"));
  wall = NOON;
  problems = [];
});

afterEach(() => rm(directory, { recursive: true, force: true }));

/** A job that was created, accepted and completed at this time. */
function ended(name: string, at: number): JobState {
  const jobId = `use1-${at}-${name}-00001` as JobId;
  const head = (place: number) => ({
    jobId,
    eventId: `${name}${place}` as EventId,
    fenceToken: 1,
    hlc: { wallMs: at + place, logical: 0, node: "n1" as NodeId },
  });
  const events: JobEvent[] = [
    { kind: "JobCreated", ...head(0), spec: new Uint8Array([1]), assignedDcs: ["dc1"] },
    { kind: "JobAccepted", ...head(1), dcId: "dc1", workerCount: 2 },
    {
      kind: "JobCompleted",
      ...head(2),
      finalStatus: "passed",
      aggregateMetrics: new Uint8Array(3),
    },
  ];
  return events.reduce(
    (state, event, seq) => applyEvent(state, event, seq).state,
    initialState(jobId),
  );
}

function put(archive: Archive, state: JobState): void {
  archive.add(state.jobId, encodeJobState(state));
}

async function jobsBetween(archive: Archive, from: number, to: number): Promise<string[]> {
  const found: string[] = [];
  for await (const { jobId } of archive.between(from, to)) found.push(jobId);
  return found;
}

describe("the archive of finished jobs", () => {
  it("gives back what was added, before and after a flush, and after a restart", async () => {
    const job = ended("a", NOON);
    const archive = await open();
    put(archive, job);
    expect(await archive.read(job.jobId)).toEqual(job);
    await archive.flush();
    expect(await archive.read(job.jobId)).toEqual(job);
    await archive.close();
    const again = await open();
    expect([...again.jobs()]).toEqual([job.jobId]);
    expect(await again.read(job.jobId)).toEqual(job);
    expect(await again.read("use1-1-x-00001")).toBeNull();
    await again.close();
    expect(problems).toEqual([]);
  });

  it("finds jobs by the times of their events, over days (LEDG-8)", async () => {
    const archive = await open();
    const [early, late] = [ended("a", NOON), ended("b", NOON + DAY_MS)];
    put(archive, early);
    await archive.flush();
    wall += DAY_MS;
    put(archive, late);
    await archive.flush();
    expect(await jobsBetween(archive, 0, NOON + 2)).toEqual([early.jobId]);
    expect(await jobsBetween(archive, NOON + 2, NOON + DAY_MS)).toEqual([early.jobId, late.jobId]);
    expect(await jobsBetween(archive, NOON + 3, NOON + DAY_MS - 1)).toEqual([]);
    await archive.close();
    expect((await readdir(directory)).sort()).toEqual([
      "archive_20260131.log",
      "archive_20260201.log",
    ]);
  });

  it("keeps a job once, however often it is archived", async () => {
    const archive = await open();
    const job = ended("a", NOON);
    put(archive, job);
    await archive.flush();
    put(archive, job);
    await archive.close();
    const again = await open();
    expect(again.size).toBe(1);
    await again.close();
  });

  it("forgets whole days after their retention, and says which jobs went", async () => {
    const archive = await open(2 * DAY_MS);
    const job = ended("a", NOON);
    put(archive, job);
    await archive.flush();
    wall += 3 * DAY_MS;
    put(archive, ended("b", wall));
    await archive.flush();
    expect(await archive.expire()).toEqual([job.jobId]);
    expect(await archive.read(job.jobId)).toBeNull();
    await archive.close();
    expect(await readdir(directory)).toEqual(["archive_20260203.log"]);
  });

  it("cuts a torn last record off and goes on behind the whole ones", async () => {
    const [kept, torn] = [ended("a", NOON), ended("b", NOON)];
    const archive = await open();
    put(archive, kept);
    await archive.flush();
    await archive.close();
    const file = join(directory, "archive_20260131.log");
    const whole = await readFile(file);
    await appendFile(file, whole.subarray(8, whole.length - 5));
    const again = await open();
    expect(problems.join()).toContain("are no whole record");
    put(again, torn);
    await again.close();
    const last = await open();
    expect(new Set(last.jobs())).toEqual(new Set([kept.jobId, torn.jobId]));
    await last.close();
  });

  it("writes after a full disk what it could not write before", async () => {
    const archive = await open();
    const [first, second] = [ended("a", NOON), ended("b", NOON)];
    const file = join(directory, "archive_20260131.log");
    await symlink("/dev/full", file);
    put(archive, first);
    await expect(archive.flush()).rejects.toThrow("ENOSPC");
    expect(await archive.read(first.jobId)).toEqual(first);
    await rm(file);
    put(archive, second);
    await archive.flush();
    await archive.close();
    const again = await open();
    expect(new Set(again.jobs())).toEqual(new Set([first.jobId, second.jobId]));
    await again.close();
    expect(problems).toEqual([]);
  });

  it("closes its file although the disk is full", async () => {
    const archive = await open();
    await symlink("/dev/full", join(directory, "archive_20260131.log"));
    put(archive, ended("a", NOON));
    await expect(archive.close()).rejects.toThrow("ENOSPC");
  });

  it("reports a flipped bit instead of giving back a wrong history", async () => {
    const archive = await open();
    const job = ended("a", NOON);
    put(archive, job);
    await archive.flush();
    const file = join(directory, "archive_20260131.log");
    const bytes = await readFile(file);
    bytes[60] = (bytes[60] ?? 0) ^ 4;
    await writeFile(file, bytes);
    expect(await archive.read(job.jobId)).toBeNull();
    expect(problems.join()).toContain("does not fit its checksum");
    await archive.close();
  });
});
