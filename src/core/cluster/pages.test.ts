import { describe, expect, it } from "vitest";
import { JOBS_PAGE_MAX, type JobPlace } from "./messages.ts";
import { pageOfJobs } from "./pages.ts";

describe("job pages", () => {
  it("list every job once in order of creation, even while old jobs are removed", () => {
    let jobs: JobPlace[] = Array.from({ length: 3 * JOBS_PAGE_MAX - 1 }, (_, at) => ({
      // Several jobs created at the same time, out of order.
      ...{ createdAt: 1_000 - (at % 300), id: `job-${at}` },
    }));
    const expected = new Set(jobs.map(({ id }) => id));
    const seen: JobPlace[] = [];
    for (;;) {
      const { more, page } = pageOfJobs(jobs, seen.at(-1) ?? null);
      expect(page.length).toBeLessThanOrEqual(JOBS_PAGE_MAX);
      seen.push(...page);
      if (!more) break;
      // The cursor is a position, not an index: jobs already listed may be removed.
      jobs = jobs.filter((job) => !page.slice(0, 10).includes(job));
    }
    expect(seen).toHaveLength(expected.size);
    expect(new Set(seen.map(({ id }) => id))).toEqual(expected);
    const times = seen.map(({ createdAt }) => createdAt);
    expect(times).toEqual([...times].sort((one, other) => one - other));
  });
});
