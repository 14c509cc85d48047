import { describe, expect, it } from "vitest";
import type { JobState } from "../job/job-state.ts";
import { encodeJobState } from "../job/state-codec.ts";
import { MemoryFiles } from "../log/testing/memory-files.ts";
import { Archive } from "./archive.ts";
import { endedJob } from "./testing/ended-job.ts";

const DAY_MS = 86_400_000;
const NOON = Date.UTC(2026, 0, 31, 12);
const TODAY = "archive/archive_20260131.log";

class Bench {
  readonly files: MemoryFiles;
  readonly archive: Archive;
  readonly problems: string[] = [];
  wall = NOON;

  constructor(files = new MemoryFiles(), keepMs = 30 * DAY_MS) {
    this.files = files;
    this.archive = new Archive({
      directory: "archive",
      keepMs,
      onProblem: (file, problem) => this.problems.push(`${file}: ${problem}`),
    });
    expect(files.carryOut(this.archive.open())).toBeNull();
  }

  put(...states: readonly JobState[]): void {
    for (const state of states) this.archive.add(state.jobId, encodeJobState(state), this.wall);
  }

  flush(): string | null {
    return this.files.carryOut(this.archive.flush(this.wall))?.code ?? null;
  }

  read(jobId: string): JobState | null {
    return this.files.carryOut(this.archive.read(jobId));
  }

  get jobs(): string[] {
    return [...this.archive.places.keys()];
  }
}

describe("the archive of finished jobs", () => {
  it("has what was flushed after a restart, with the times of its events (LEDG-8)", () => {
    const first = new Bench();
    const [early, late] = [endedJob("a", NOON), endedJob("b", NOON + DAY_MS)];
    first.put(early);
    expect(first.archive.waiting.map(({ state }) => state)).toEqual([early]);
    expect(first.flush()).toBeNull();
    first.wall += DAY_MS;
    first.put(late);
    expect(first.flush()).toBeNull();
    expect([...first.files.files.keys()]).toEqual([TODAY, "archive/archive_20260201.log"]);
    const again = new Bench(first.files);
    expect(again.jobs).toEqual([early.jobId, late.jobId]);
    expect(again.archive.places.get(early.jobId)).toMatchObject({ from: NOON, to: NOON + 2 });
    expect(again.archive.places).toEqual(first.archive.places);
    expect([again.problems, again.archive.size]).toEqual([[], 2]);
  });

  it("reads files of many records a piece at a time", () => {
    const first = new Bench();
    const jobs = Array.from({ length: 9_000 }, (_, at) => endedJob(`j${at}`, NOON));
    first.put(...jobs);
    expect(first.flush()).toBeNull();
    expect(first.files.files.get(TODAY)?.length).toBeGreaterThan(1_048_576);
    expect(new Bench(first.files).jobs).toEqual(jobs.map(({ jobId }) => jobId));
  });

  it("gives a job back as it was, before it is written and from its place in the file", () => {
    const bench = new Bench();
    const jobs = [endedJob("a", NOON), endedJob("b", NOON)];
    const readAll = (): (JobState | null)[] => jobs.map(({ jobId }) => bench.read(jobId));
    bench.put(...jobs);
    expect(readAll()).toEqual(jobs);
    expect(bench.files.log.filter(({ kind }) => kind === "read")).toEqual([]);
    bench.flush();
    expect(readAll()).toEqual(jobs);
    expect(bench.files.log.at(-1)).toEqual({ kind: "release", path: TODAY });
    expect(bench.read("another")).toBeNull();
    expect(bench.problems).toEqual([]);
  });

  it("reports a job that cannot be read, and has the others", () => {
    const bench = new Bench();
    const [first, second] = [endedJob("a", NOON), endedJob("b", NOON)];
    bench.put(first, second);
    bench.flush();
    const at = (bench.archive.places.get(first.jobId)?.offset ?? 0) + 20;
    const file = bench.files.files.get(TODAY);
    file?.set([(file[at] ?? 0) ^ 1], at);
    expect([bench.read(first.jobId), bench.read(second.jobId)]).toEqual([null, second]);
    bench.files.fault = ({ kind }) => (kind === "read" ? "EIO" : null);
    expect(bench.read(second.jobId)).toBeNull();
    expect(bench.problems.map((text) => text.split(": ").at(-1))).toEqual([
      "it does not fit its checksum",
      "injected",
    ]);
  });

  it("syncs what it found in its last file before anyone relies on it", () => {
    const first = new Bench();
    first.put(endedJob("a", NOON));
    first.flush();
    first.files.log.length = 0;
    new Bench(first.files);
    const synced = first.files.log.filter(({ kind }) => kind === "sync");
    expect(synced).toEqual([{ kind: "sync", path: TODAY }]);
  });

  it("keeps a job once, however often it is archived", () => {
    const bench = new Bench();
    const job = endedJob("a", NOON);
    bench.put(job);
    bench.flush();
    bench.put(job);
    bench.flush();
    expect([bench.archive.size, new Bench(bench.files).archive.size]).toEqual([1, 1]);
  });

  it("removes whole days after their retention, and reports their jobs", () => {
    const bench = new Bench(new MemoryFiles(), 2 * DAY_MS);
    const job = endedJob("a", NOON);
    bench.put(job);
    bench.flush();
    bench.wall += 3 * DAY_MS;
    bench.put(endedJob("b", bench.wall));
    bench.flush();
    expect(bench.files.carryOut(bench.archive.expire(bench.wall))).toEqual([job.jobId]);
    expect([...bench.files.files.keys()]).toEqual(["archive/archive_20260203.log"]);
  });

  it("cuts a torn last record off and continues behind the intact ones", () => {
    const bench = new Bench();
    const [kept, next] = [endedJob("a", NOON), endedJob("b", NOON)];
    bench.put(kept);
    bench.flush();
    const whole = bench.files.files.get(TODAY) ?? new Uint8Array(0);
    bench.files.files.set(TODAY, Uint8Array.of(...whole, ...whole.subarray(8, whole.length - 5)));
    const again = new Bench(bench.files);
    expect(again.problems.join()).toContain("are no whole record");
    again.put(next);
    expect(again.flush()).toBeNull();
    const last = new Bench(bench.files);
    expect([last.jobs, last.problems]).toEqual([[kept.jobId, next.jobId], []]);
  });

  it.each(["create", "write", "sync"] as const)(
    "writes later what a full disk did not let it write (%s)",
    (failing) => {
      const bench = new Bench();
      const [first, second] = [endedJob("a", NOON), endedJob("b", NOON)];
      bench.files.fault = ({ kind }) => (kind === failing ? "ENOSPC" : null);
      bench.put(first);
      expect(bench.flush()).toBe("ENOSPC");
      expect(bench.archive.waiting.map(({ jobId }) => jobId)).toEqual([first.jobId]);
      bench.files.fault = () => null;
      bench.put(second);
      expect(bench.flush()).toBeNull();
      const again = new Bench(bench.files);
      expect([again.jobs, again.problems]).toEqual([[first.jobId, second.jobId], []]);
    },
  );

  it("reports a foreign file, leaves it and writes to another one", () => {
    const files = new MemoryFiles();
    files.files.set(TODAY, new Uint8Array(100));
    const bench = new Bench(files);
    expect(bench.problems.join()).toContain("not an archive of this version");
    const job = endedJob("a", NOON);
    bench.put(job);
    expect(bench.flush()).toBeNull();
    expect(files.files.get(TODAY)).toEqual(new Uint8Array(100));
    expect([...files.files.keys()]).toEqual([TODAY, "archive/archive_20260131_2.log"]);
    expect(new Bench(files).jobs).toEqual([job.jobId]);
  });

  it("restarts a file whose header did not reach the disk", () => {
    const files = new MemoryFiles();
    files.files.set(TODAY, new Uint8Array(8));
    const bench = new Bench(files);
    const job = endedJob("a", NOON);
    bench.put(job);
    expect(bench.flush()).toBeNull();
    expect(new Bench(files).jobs).toEqual([job.jobId]);
  });

  it("writes behind the whole records of a day that is not the last one", () => {
    const bench = new Bench();
    const [first, tomorrow, late] = ["a", "b", "c"].map((name) => endedJob(name, NOON));
    bench.put(first as JobState);
    bench.flush();
    bench.wall += DAY_MS;
    bench.put(tomorrow as JobState);
    bench.flush();
    const whole = bench.files.files.get(TODAY) ?? new Uint8Array(0);
    bench.files.files.set(TODAY, Uint8Array.of(...whole, 9, 9, 9));
    // The clock went back.
    const again = new Bench(bench.files);
    again.put(late as JobState);
    expect(again.flush()).toBeNull();
    expect(new Bench(bench.files).jobs).toHaveLength(3);
  });

  it("makes the names of what it found safe before anyone relies on them", () => {
    const first = new Bench();
    first.put(endedJob("a", NOON));
    first.files.fault = ({ kind }) => (kind === "syncDirectory" ? "EIO" : null);
    expect(first.flush()).toBe("EIO");
    first.files.fault = () => null;
    first.files.log.length = 0;
    new Bench(first.files);
    expect(first.files.log.at(-1)).toEqual({ kind: "syncDirectory", directory: "archive" });
  });
});
