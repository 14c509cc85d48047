/**
 * The contract of every back-end that speaks HTTP, against a server of ours: what it does with answers of
 * all kinds, that it never holds up a run, and that nothing is lost in silence. Real time passes where a back-end
 * is given time; no test judges by it. (REP-1, REP-2, REP-5)
 */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { LiveRun } from "../core/run/results/live.ts";
import type { ReportOutcome, RunSummary } from "../core/run/results/model.ts";
import { syntheticRun } from "../core/run/results/testing/synthetic-run.ts";
import { allReporters, openReporting } from "./registry.ts";
import type { Reporting } from "./reporting.ts";
import { ENVIRONMENT, HTTP_BACK_ENDS, SECRET, SIGNED } from "./testing/back-ends.ts";
import { isSigned } from "./testing/check-signature.ts";
import { StubServer } from "./testing/stub-server.ts";

const run = syntheticRun({ seed: "contract", seconds: 2, rate: 0.2 });
const live: LiveRun = {
  phase: "running",
  scale: 1,
  elapsedSeconds: 1,
  totalSeconds: 2,
  summary: run,
  workflows: [],
  ratePerSecond: 0,
  failedPerSecond: 0,
};

let server: StubServer;
const said: string[] = [];

beforeAll(async () => {
  server = await StubServer.start();
});
afterAll(async () => server.stop());
beforeEach(() => {
  server.requests.length = 0;
  server.behaviour = () => ({ status: 202 });
  said.length = 0;
});

it("is about every back-end that speaks HTTP", async () => {
  const families = await allReporters();
  const names = families
    .filter(({ title }) => title === "HTTP" || title === "Signed cloud APIs")
    .flatMap(({ definitions }) => definitions.map(({ name }) => name));
  expect(HTTP_BACK_ENDS.map(({ name }) => name)).toEqual(names);
});

describe.each(HTTP_BACK_ENDS)("$name", ({ name, target }) => {
  const open = (settings = "", url = server.url): Promise<Reporting> =>
    openReporting([`${name}=${target(url)}${settings}`], {
      env: ENVIRONMENT,
      onProblem: (reporter, problem) => said.push(`${reporter}: ${problem}`),
    });

  /** A run that told once how it goes, and ended. */
  const report = async (settings = ""): Promise<ReportOutcome> => {
    const reporting = await open(settings);
    await reporting.start(run);
    reporting.live(live, 60_000);
    return outcomeOf(await reporting.finish(run));
  };

  it("sends everything, and says so", async () => {
    const outcome = await report();
    expect(outcome).toMatchObject({ reporter: name, dropped: 0, problem: null });
    expect(outcome.sent).toBeGreaterThan(50);
    if (SIGNED.has(name))
      expect(server.requests.every((one) => isSigned(one, server.url, SECRET))).toBe(true);
    else {
      const told = JSON.stringify(server.requests.map(({ headers }) => headers));
      expect(told).toContain(name === "pushgateway" ? "Basic " : SECRET);
    }
    expect(server.requests.every(({ path }) => !path.includes(SECRET))).toBe(true);
  });

  it("does not repeat what was refused, and says how", async () => {
    server.behaviour = () => ({ status: 403, body: `no entry for ${SECRET}` });
    const outcome = await report();
    expect(outcome.sent).toBe(0);
    expect(outcome.dropped).toBeGreaterThan(50);
    expect(outcome.problem).toBe("it answered 403: no entry for ***");
    expect(said).toEqual([`${name}: it answered 403: no entry for ***`]);
    const bodies = server.requests.map(({ body, path }) => path + body.toString("base64"));
    expect(new Set(bodies).size).toBe(bodies.length);
  });

  it("comes back when it was told to, with the very same", async () => {
    server.behaviour = (_, number) =>
      number === 1 ? { status: 429, headers: { "retry-after": "1" } } : { status: 202 };
    const outcome = await report();
    expect(outcome).toMatchObject({ dropped: 0, problem: "it answered 429" });
    expect(server.requests[1]?.body).toEqual(server.requests[0]?.body);
  });

  it("tries again after failures that pass", async () => {
    server.behaviour = (_, number) => ({ status: number <= 2 ? 503 : 202 });
    const outcome = await report();
    expect(outcome.dropped).toBe(0);
    expect(outcome.sent).toBeGreaterThan(50);
  });

  it("gives up a server that never answers when its time is over", async () => {
    server.behaviour = () => "hang";
    const outcome = await report(",deadline=300ms");
    expect(outcome.sent).toBe(0);
    expect(outcome.dropped).toBeGreaterThan(50);
    expect(outcome.problem).toBe("it did not take everything within 0.3 s");
  });

  it("changes nothing of a run when nobody listens", async () => {
    const reporting = await open(",deadline=300ms", "http://127.0.0.1:9");
    await reporting.start(run);
    for (let second = 60; second < 300; second += 60) reporting.live(live, second * 1_000);
    const { reports, ...rest } = await reporting.finish(run);
    expect(rest).toEqual(run);
    expect(reports?.[0]).toMatchObject({ sent: 0, problem: expect.stringMatching(/\S/) });
    expect(reports?.[0]?.dropped).toBeGreaterThan(200);
    expect(said).toHaveLength(1);
  });

  it("may be closed while it sends, and closed again", async () => {
    const reporting = await open();
    await reporting.start(run);
    reporting.live(live, 60_000);
    const [first, second] = await Promise.all([reporting.finish(run), reporting.finish(run)]);
    expect(second).toBe(first);
    const requests = server.requests.length;
    await reporting.abandon();
    expect(server.requests).toHaveLength(requests);
    expect(outcomeOf(first)).toMatchObject({ dropped: 0, problem: null });
  });
});

function outcomeOf({ reports }: RunSummary): ReportOutcome {
  const [outcome] = reports ?? [];
  if (outcome === undefined) throw new Error("there is one outcome");
  return outcome;
}
