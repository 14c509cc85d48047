import { describe, expect, it } from "vitest";
import { findJob, isJobNickname, shortIdOf } from "./job-names.ts";

const JOBS = Array.from({ length: 10_000 }, (_, i) => ({
  id: `gates-${1_794_970_000_000 + 37 * i}-g${1 + (i % 3)}-15961`,
  name: "flow.ts",
}));

describe("short ids of jobs", () => {
  it("have eight characters, and are unique among all jobs of a busy cluster", () => {
    const shorts = JOBS.map(({ id }) => shortIdOf(id));
    expect(new Set(shorts).size).toBe(JOBS.length);
    expect(shorts.filter((one) => !/^[0-9a-hjkmnp-tv-z]{8}$/.test(one))).toEqual([]);
  });

  it("stay the same, as scripts and chats keep them", () => {
    expect(shortIdOf("gates-1794970008782-g1-15961")).toMatchInlineSnapshot(`"sqq9mvvs"`);
  });
});

describe("a job", () => {
  const jobs = JOBS.slice(0, 40);
  const { id } = jobs[17] as (typeof jobs)[0];
  const short = shortIdOf(id);

  it.each([
    ["its whole id", id, id],
    ["its short id", short, id],
    ["its short id in capitals", short.toUpperCase(), id],
    ["a unique prefix of its short id", short.slice(0, 4), id],
    ["a unique prefix of its whole id", id.slice(0, -6), id],
    ["last", "last", jobs.at(-1)?.id],
  ])("is found by %s", (_how, text, wanted) => {
    expect(findJob(text, jobs)).toEqual({ ok: true, id: wanted });
  });

  it("is not guessed: an ambiguous prefix lists the newest candidates", () => {
    const found = findJob("gates-", jobs);
    expect(found).toMatchObject({ ok: false, reason: "invalid" });
    const problem = found.ok ? "" : found.problem;
    const [newest] = jobs.slice(-1);
    expect(problem).toContain(`"gates-" matches 40 jobs: `);
    expect(problem).toContain(
      `${shortIdOf(newest?.id ?? "")} (flow.ts, ${newest?.id}) and 35 older`,
    );
  });

  it("is reported as unknown with where to look", () => {
    expect(findJob("uuu", jobs)).toMatchObject({ ok: false, reason: "unknownJob" });
    expect(findJob("last", [])).toEqual({
      ok: false,
      reason: "unknownJob",
      problem: 'there is no job "last": the cluster remembers none',
    });
  });

  it("is found without a list of all jobs where the whole id is given, or unreadable text", () => {
    const texts = [id, `${id}/dc1/2`, "", "j".repeat(129)];
    expect(texts.filter(isJobNickname)).toEqual([]);
    expect(["last", short, id.slice(0, -1)].map(isJobNickname)).toEqual([true, true, true]);
  });
});
