/** Content of the results besides totals of steps, from real runs against a server that counts independently. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { http } from "../protocols/http1/index.ts";
import { flow } from "../workflow/flow.ts";
import { workflow } from "../workflow/workflow.ts";
import { InProcessRun, until } from "./testing/in-process-run.ts";

let server: Server;
let url = "";
let served = 0;

beforeAll(async () => {
  server = createServer((request, response) => {
    served++;
    const path = request.url ?? "";
    if (path.startsWith("/moved")) {
      response.writeHead(302, { location: "/home" }).end();
      return;
    }
    if (path.startsWith("/slow")) {
      setTimeout(() => response.end("slow"), 1_500);
      return;
    }
    const broken = path.startsWith("/broken");
    response
      .writeHead(broken ? 503 : 200)
      .end(broken ? '{"token":"abc","why":"\u001b[31mno\n"}' : "");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

it("counts requests on the wire as the server does: hops, the warm-up, and those cut off", async () => {
  served = 0;
  const load = { vus: 2, duration: "400ms", warmup: "200ms", gracefulStop: "50ms" } as const;
  const run = await InProcessRun.whole(
    workflow("w", { ...load, pacing: "20ms" })
      .step("moved", http.get(`${url}/moved`, { redirects: 3 }))
      .step("slow", http.get(`${url}/slow`)),
    { cores: 2 },
  );
  const { totals, workflows } = run.summary();
  const [moved, slow] = workflows[0]?.steps ?? [];
  // Both calls began in the warm-up and hung through all measured time.
  expect(slow).toMatchObject({ requests: 2, errors: { unanswered: 2 }, interrupted: 0, sent: 2 });
  expect(moved?.sent).toBeGreaterThanOrEqual(2 * (moved?.requests ?? 0));
  await until(() => served >= (totals?.sent ?? 0));
  expect(totals?.sent).toBe(served);
  expect(workflows[0]?.totals?.sent).toBe(served);
  const requests = (moved?.requests ?? 0) + 2;
  expect(totals).toMatchObject({ requests, latencyMs: { count: requests } });
});

it("adds up the counts of its notes over all cores", async () => {
  const ends = flow("w", { vus: 2, iterationsPerVu: 5 }, async ({ end, step }) => {
    await step("home", http.get(url));
    end("enough");
  });
  const run = await InProcessRun.whole(ends, { cores: 2 });
  expect(run.summary().notes.join()).toContain('"w": 10 iterations ended early, by: enough (10)');
});

it("shows samples of failures, without secrets, and no more than five of a kind", async () => {
  const run = await InProcessRun.whole(
    workflow("w", { vus: 1, iterations: 20 })
      .step("broken", http.get(`${url}/broken?api_key=s3cret`))
      .step("throws", { after: ["broken"] }, () => {
        throw new Error("no password=hunter2 here");
      })
      .check("seen", ({ results }) => results.broken !== undefined),
    { cores: 2 },
  );
  const [broken, throws] = run.summary().workflows[0]?.steps ?? [];
  expect(broken?.failed).toBe(20);
  expect(broken?.samples).toHaveLength(5);
  expect(broken?.samples?.[0]).toMatchObject({
    kind: "status",
    status: 503,
    call: `GET ${url}/broken?api_key=***`,
    text: '{"token":"***","why":"no  "}',
  });
  expect(throws?.samples?.[0]).toMatchObject({ kind: "exception", text: "no password=*** here" });
  expect(broken?.series.errors?.["status"]?.reduce((sum, n) => sum + n, 0)).toBe(20);
});

it("gives any stretch of time its latencies, and the load over time", async () => {
  const run = await InProcessRun.whole(
    flow("f", { rate: 50, duration: "1500ms" }, async ({ step }) => {
      await step("home", http.get(`${url}/home`));
    }),
    { cores: 2 },
  );
  const { generator, workflows } = run.summary();
  const [one] = workflows;
  const [home] = one?.steps ?? [];
  const histograms = home?.windows?.histograms ?? [];
  expect(home?.windows?.windowMs).toBe(1_000);
  expect(histograms.length).toBeGreaterThan(1);
  const counted = histograms.flatMap(({ count }) => count).reduce((sum, n) => sum + n, 0);
  expect(counted).toBe(home?.latencyMs.count);
  const { arrivals = [], atSeconds = [], target = [] } = one?.loadSeries ?? {};
  expect(arrivals.reduce((sum, n) => sum + n, 0)).toBe(one?.arrivals?.started);
  expect(Math.max(...target)).toBeCloseTo(50, 3);
  expect(atSeconds).toEqual(atSeconds.toSorted((a, b) => a - b));
  expect(generator.cores[1]?.series?.cpu.length).toBeGreaterThan(10);
});

it("puts a pause, a change of load and a lost core on the time axis, and leaves the pause empty", async () => {
  const run = await InProcessRun.start(
    workflow("w", { vus: 2, duration: "900ms", pacing: "10ms" }).step(
      "home",
      http.get(`${url}/home`),
    ),
    { cores: 2 },
  );
  await until(() => run.workflow("w").iterations > 10);
  run.pause();
  await new Promise((resolve) => setTimeout(resolve, 600));
  run.resume();
  run.scale(2);
  run.lose(1);
  await run.done;
  const { events = [], workflows } = run.summary();
  const kinds = events.map(({ kind }) => kind).filter((kind) => kind !== "stall");
  expect(kinds.filter((kind) => kind !== "core lost")).toEqual(["pause", "resume", "scale"]);
  // Dated when it was last seen, which may be before the resume.
  expect(kinds).toContain("core lost");
  const [pause, resume] = events.filter(({ kind }) => kind === "pause" || kind === "resume");
  const gap = (resume?.atSeconds ?? 0) - (pause?.atSeconds ?? 0);
  expect(gap).toBeGreaterThanOrEqual(0.5);
  const at = workflows[0]?.steps[0]?.series.atSeconds ?? [];
  const steps = at.slice(1).map((seconds, i) => seconds - (at[i] ?? 0));
  expect(Math.max(...steps)).toBeGreaterThanOrEqual(0.5);
});
