/** `--report` of the command line, as a user gives it: results arrive, and a dead back-end changes nothing. (REP-7) */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readOtlp } from "../../src/reporters/testing/otlp-reader.ts";
import { StubServer } from "../../src/reporters/testing/stub-server.ts";
import { Scratch } from "./cli.ts";

let target: Server;
let url = "";
let backEnd: StubServer;

beforeAll(async () => {
  target = createServer((_, response) => response.end("ok"));
  await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(target.address() as AddressInfo).port}`;
  backEnd = await StubServer.start();
});

afterAll(async () => {
  target.closeAllConnections();
  target.close();
  await backEnd.stop();
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 100));
}

interface SentPoint {
  readonly kind: string;
  readonly scope: string;
  readonly figure: string;
  readonly values: Readonly<Record<string, number>>;
}

describe("a run with reports", () => {
  const here = new Scratch();
  afterAll(() => here.remove());

  it("sends while it runs and at the end, and the sum equals summary.json", async () => {
    here.write(
      "flow.ts",
      // The second is also named on the command line: it is opened once.
      `import { http, workflow } from "hyperscalejs";
       const load = { vus: 2, duration: "2500ms", pacing: "20ms" } as const;
       const junit = "junit=deep/er/junit.xml";
       export default workflow("shop", { ...load, report: ["ndjson=points.ndjson,every=1s", junit] })
         .step("home", http.get("${url}/"));`,
    );
    const report = `influxdb=${backEnd.url},database=load,every=1s`;
    const { code, stdout } = await here.run(
      ...["run", "flow.ts", "--out", "out", "--title", "nightly", "--tag", "branch=main"],
      ...["--report", report, "--report", "junit=deep/er/junit.xml"],
    );
    expect(code).toBe(0);
    const { reports, totals } = here.summary();
    expect(reports?.map(({ dropped, problem, reporter }) => [reporter, dropped, problem])).toEqual([
      ["influxdb", 0, null],
      ["junit", 0, null],
      ["ndjson", 0, null],
    ]);
    expect(stdout).toContain("Reports");
    expect(here.read("deep/er/junit.xml")).toContain("<testsuites");

    const lines = here.read("points.ndjson").trim().split("\n");
    const points = lines.map((line) => JSON.parse(line) as SentPoint);
    const requests = points.filter(
      ({ figure, kind, scope }) => kind === "interval" && scope === "run" && figure === "requests",
    );
    expect(requests.length).toBeGreaterThan(1);
    const sum = requests.reduce((all, { values }) => all + (values["increment"] ?? 0), 0);
    expect(sum).toBe(totals?.requests);
    const latencies = points.filter(
      ({ figure, kind, scope }) =>
        kind === "interval" && scope === "run" && figure === "latency_ms",
    );
    const counted = latencies.reduce((all, { values }) => all + (values["count"] ?? 0), 0);
    expect(counted).toBe(totals?.latencyMs.count);
    expect(backEnd.text).toContain("hyperscale_summary_run,branch=main,run=nightly,run_id=");
  });

  it("sends a trace with the times of all work to an OpenTelemetry collector", async () => {
    here.write(
      "phases.ts",
      `import { http, workflow } from "hyperscalejs";
       const stages = [{ duration: "1s", vus: 1 }, { duration: "1s", vus: 2 }];
       export default workflow("shop", { stages, pacing: "20ms" })
         .setup(() => new Promise((resolve) => setTimeout(resolve, 50)))
         .teardown(() => undefined)
         .step("home", http.get("${url}/"));`,
    );
    const collector = await StubServer.start();
    try {
      const report = `otlp=${collector.url},spans=true`;
      const { code } = await here.run("run", "phases.ts", "--out", "traced", "--report", report);
      expect(code).toBe(0);
      const sent = collector.requests.find(({ path }) => path === "/v1/traces");
      const read = JSON.stringify(readOtlp("Trace", sent?.body.toString("utf8") ?? ""));
      const names = [...read.matchAll(/"name":"([^"]+)","kind"/g)].map(([, name]) => name);
      expect(names).toEqual([
        ...["run", "workflow shop", "prepare", "set-up", "load"],
        ...["stage from 0 to 1", "stage from 1 to 2", "tear-down"],
      ]);
      for (const { path } of collector.requests)
        expect(["/v1/metrics", "/v1/traces"]).toContain(path);
    } finally {
      await collector.stop();
    }
  });

  it("ends as it would have without a back-end that is not there", async () => {
    const { code, stdout } = await here.run(
      ...["run", url, "--vus", "1", "--iterations", "20", "--out", "dead"],
      ...["--report", "influxdb=http://127.0.0.1:9,deadline=200ms"],
    );
    expect(code).toBe(0);
    const [report] = here.summary("dead").reports ?? [];
    expect(report).toMatchObject({ reporter: "influxdb", sent: 0 });
    expect(report?.dropped).toBeGreaterThan(0);
    expect(stdout).toMatch(
      /! influxdb http:\/\/127\.0\.0\.1:9, 0 points, \d+ dropped: .*ECONNREFUSED/,
    );
  });

  it("reports while it runs which of two with one name has a problem", async () => {
    const { code, stdout } = await here.run(
      ...["run", url, "--vus", "1", "--duration", "3s", "--ui", "ci"],
      ...["--report", "influxdb=http://127.0.0.1:9,every=1s,deadline=200ms"],
      ...["--report", `influxdb=${backEnd.url},every=1s`],
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/report influxdb http:\/\/127\.0\.0\.1:9: /);
    expect(stdout).not.toContain(`report influxdb ${backEnd.url}`);
  });

  it("does not wait for a back-end when it is interrupted twice", async () => {
    let asked = 0;
    const silent = createServer(() => {
      asked++;
    });
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = silent.address() as AddressInfo;
      const running = here.start([
        ...["run", url, "--vus", "1", "--duration", "10m", "--out", "twice", "--report"],
        ...[`webhook=http://127.0.0.1:${port}/,every=1s`, "--report", "ndjson=twice.ndjson"],
      ]);
      await until(async () => asked > 0 || running.child.exitCode !== null);
      running.child.kill("SIGINT");
      await until(async () => running.text().includes("stopping"));
      running.child.kill("SIGINT");
      expect((await running.done).code).toBe(130);
      const [webhook, ndjson] = here.summary("twice").reports ?? [];
      expect(webhook).toMatchObject({ sent: 0, problem: expect.stringContaining("within 0.5 s") });
      expect(ndjson).toMatchObject({ dropped: 0, problem: null });
    } finally {
      silent.closeAllConnections();
      silent.close();
    }
  });

  it("is reported to a user-defined reporter, and scraped while it runs", async () => {
    here.write(
      "own.ts",
      `import type { Reporter } from "hyperscalejs";
       import { writeFileSync } from "node:fs";
       let frames = 0;
       const own: Reporter = {
         name: "own", target: "a file", everyMs: 1_000,
         start: async () => {},
         interval: () => { frames++; },
         finish: async (summary, verdict) =>
           writeFileSync("own.json", JSON.stringify({ frames, verdict, requests: summary.totals?.requests })),
         close: async () => { throw new Error("own cannot close"); },
       };
       export default own;`,
    );
    const port = await freePort();
    const running = here.start([
      ...["run", "flow.ts", "--out", "own", "--duration", "4s", "--metrics", `127.0.0.1:${port}`],
      ...["--report", "module=own.ts"],
    ]);
    let scraped = "";
    await until(async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => null);
      scraped = (await answer?.text()) ?? "";
      return scraped.includes("hyperscale_step_requests_total{") || running.child.exitCode !== null;
    });
    expect((await running.done).code).toBe(0);
    expect(scraped).toMatch(/^hyperscale_step_requests_total\{.*step="home".*\} \d+$/m);
    const { reports, totals } = here.summary("own");
    const reported = JSON.parse(here.read("own.json")) as Record<string, unknown>;
    expect(reported).toMatchObject({ verdict: "passed", requests: totals?.requests });
    expect(reported["frames"]).toBeGreaterThan(1);
    const own = reports?.find(({ reporter }) => reporter === "own");
    expect(own?.problem).toBe("own cannot close");
  });

  it("writes single calls on request, and reports how many", async () => {
    const { code } = await here.run(
      ...["run", url, "--vus", "2", "--iterations", "300", "--out", "sampled"],
      ...["--report", "samples=deep/all.ndjson,share=1"],
    );
    expect(code).toBe(0);
    const { reports, totals } = here.summary("sampled");
    const all = here.read("deep/all.ndjson").trim().split("\n");
    const calls = all.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(reports).toMatchObject([{ reporter: "samples", sent: 300, dropped: 0, problem: null }]);
    expect(calls).toHaveLength(totals?.requests ?? 0);
    expect(calls[0]).toMatchObject({ ok: true, status: 200, error: null, call: `GET ${url}/` });
    const most = Math.max(...calls.map(({ latency_ms }) => Number(latency_ms)));
    expect(most).toBeCloseTo(totals?.latencyMs.max ?? 0, 1);
  });

  it("treats --samples as a samples reporter, and rejects two of them", async () => {
    const twice = ["--samples", "some.ndjson", "--report", "samples=others.ndjson"];
    const { code, stderr } = await here.run("run", url, ...twice);
    expect(stderr).toContain("report samples: single calls go to one place");
    expect(code).toBe(2);
  });

  it("does not publish to a target that is only scraped", async () => {
    const { code, stderr } = await here.run("publish", "out", "--report", "metrics=127.0.0.1:0");
    expect(stderr).toContain("nobody can scrape a run that is over");
    expect(code).toBe(2);
  });

  it("publishes an earlier result", async () => {
    backEnd.requests.length = 0;
    const { code, stdout } = await here.run(
      "publish",
      "out",
      "--report",
      `influxdb=${backEnd.url}`,
    );
    expect(stdout).toMatch(/^influxdb http:\S+: \d+ points sent, 0 not\n$/);
    expect(code).toBe(0);
    expect(backEnd.text).toContain(`requests=${here.summary().totals?.requests}`);
  });
});
