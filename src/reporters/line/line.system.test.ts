/** Lines as received over real sockets. */

import { createSocket } from "node:dgram";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, it } from "vitest";
import type { ReportOutcome } from "../../core/load/results/model.ts";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { openReporting } from "../registry.ts";

const run = syntheticRun({ seed: "lines", seconds: 2, rate: 0.2 });
const search = run.workflows[0]?.steps[1];

async function report(text: string, of = run): Promise<ReportOutcome | undefined> {
  const reporting = await openReporting([text], { env: {}, onProblem: () => {} });
  await reporting.start(of);
  const { reports } = await reporting.finish(of);
  await reporting.abandon();
  return reports?.[0];
}

/** Collects datagrams at a UDP port until the last line. */
async function datagrams(
  send: (port: number) => Promise<unknown>,
  last: string,
): Promise<{ readonly lines: string[]; readonly longest: number }> {
  const socket = createSocket("udp4");
  const lines: string[] = [];
  let longest = 0;
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  socket.setRecvBufferSize(4 * 1_024 * 1_024);
  const complete = new Promise<void>((resolve) => {
    socket.on("message", (message) => {
      longest = Math.max(longest, message.length);
      lines.push(...message.toString("utf8").trimEnd().split("\n"));
      if (lines.some((line) => line.includes(last))) resolve();
    });
  });
  await send(socket.address().port);
  await complete;
  socket.close();
  return { lines, longest };
}

it("StatsD sends increments, in datagrams that fit into a packet", async () => {
  const { lines, longest } = await datagrams(
    (port) => report(`statsd=127.0.0.1:${port}`),
    "summary.spring_sale.metric",
  );
  expect(longest).toBeLessThanOrEqual(1_432);
  expect(lines.every((line) => /^[\w.-]+:-?[\d.e-]+\|[cg]$/.test(line))).toBe(true);
  const name = "hyperscale.spring_sale.step.browse.search.requests";
  expect(lines.filter((line) => line.startsWith(`${name}:`))).toEqual([
    `${name}:${search?.requests}|c`,
  ]);
});

it.each([
  ["statsd", "hyperscale.spring_sale.metric.browse.balance.gauge_last", /^/],
  ["telegraf-statsd", "hyperscale.metric.gauge_last", /metric:balance/],
])("%s sets a gauge below zero, which a sign alone would only decrement", async (...of) => {
  const [name, figure, which] = of;
  const [first, ...others] = run.workflows;
  if (first === undefined) throw new Error("there is a workflow");
  const values = { last: -5, min: -7, max: 3 };
  const balance = { name: "balance", kind: "gauge", tags: {}, values } as const;
  const debts = { ...run, workflows: [{ ...first, metrics: [balance] }, ...others] };
  const { lines } = await datagrams(
    (port) => report(`${name}=127.0.0.1:${port}`, debts),
    name === "statsd" ? "summary.spring_sale.step" : "summary.step",
  );
  const sent = lines.filter((line) => line.startsWith(`${figure}:`) && which.test(line));
  expect(sent.map((line) => line.slice(figure.length).split("|#")[0])).toEqual([":0|g", ":-5|g"]);
});

it("reports points over UDP as unconfirmed, and when nobody listens", async () => {
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const { port } = socket.address();
  expect(await report(`statsd=127.0.0.1:${port}`)).toMatchObject({
    ...{ unconfirmed: true, dropped: 0, problem: null },
  });
  await new Promise<void>((resolve) => socket.close(resolve));
  const closed = await report(`statsd=127.0.0.1:${port}`);
  expect(closed).toMatchObject({
    unconfirmed: true,
    problem: expect.stringMatching(/port is closed/),
  });
  expect(closed?.dropped).toBeGreaterThan(0);
});

it("DogStatsD carries labels as tags", async () => {
  const { lines } = await datagrams(
    (port) => report(`dogstatsd=udp://127.0.0.1:${port},prefix=load`),
    "load.summary.metric",
  );
  const requests = lines.find(
    (line) => line.startsWith("load.step.requests:") && line.includes("step:search"),
  );
  expect(requests).toContain(`:${search?.requests}|c|#branch:main,run:spring_sale,run_id:`);
  expect(requests).toContain("workflow:browse,step:search,protocol:");
});

it("Graphite's text uses one connection, closed gracefully", async () => {
  let text = "";
  const server = createServer((socket) =>
    socket.on("data", (data) => {
      text += String(data);
    }),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const outcome = await report(`graphite=127.0.0.1:${port}`);
  await new Promise((resolve) => server.close(resolve));
  expect(outcome).toMatchObject({ dropped: 0, problem: null });
  const at = Math.floor((Date.parse(run.startedAt) + run.durationSeconds * 1_000) / 1_000);
  const name = "hyperscale.summary.spring_sale.step.browse.search.latency_ms_p99";
  expect(text).toContain(`\n${name} ${search?.latencyMs.p99} ${at}\n`);
  // Tags are part of the path: two series of one metric must stay separate.
  const metric = "hyperscale.summary.spring_sale.metric.browse.results_per_search.index_products";
  expect(text).toContain(`\n${metric}.trend_count `);
});

it("abandons a stream that nobody reads, and says so", async () => {
  const outcome = await report("graphite=127.0.0.1:9,deadline=300ms");
  expect(outcome).toMatchObject({ sent: 0, problem: expect.stringContaining("ECONNREFUSED") });
  expect(outcome?.dropped).toBeGreaterThan(50);
});

/** Over TCP, where a refused connection is reported; UDP reports nothing. */
describe.each([...["statsd", "dogstatsd", "netdata", "telegraf-statsd", "graphite", "telegraf"]])(
  "%s",
  (name) => {
    it("sends again what a broken connection may have lost", async () => {
      let connections = 0;
      let bytes = 0;
      const server = createServer((socket) => {
        socket.on("error", () => {});
        if (++connections === 1) socket.destroy();
        else
          socket.on("data", (data) => {
            bytes += data.length;
          });
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const { port } = server.address() as AddressInfo;
      const outcome = await report(`${name}=tcp://127.0.0.1:${port}`);
      await new Promise((resolve) => server.close(resolve));
      expect(outcome?.dropped).toBe(0);
      expect(outcome?.sent).toBeGreaterThan(50);
      expect(bytes).toBeGreaterThan(1_000);
    });

    it("leaves the run unchanged when nobody listens, however often it is closed", async () => {
      const context = { env: {}, onProblem: () => {} };
      for (const target of ["tcp://127.0.0.1:9,deadline=300ms", "udp://127.0.0.1:9"]) {
        const reporting = await openReporting([`${name}=${target}`], context);
        await reporting.start(run);
        const [first, second] = await Promise.all([reporting.finish(run), reporting.finish(run)]);
        expect(second).toBe(first);
        await reporting.abandon();
        const { reports, ...rest } = first;
        expect(rest).toEqual(run);
        expect((reports?.[0]?.sent ?? 0) + (reports?.[0]?.dropped ?? 0)).toBeGreaterThan(50);
      }
    });
  },
);

it.each(["graphite=ftp://x", "statsd=http://x:1"])("rejects %s", async (text) => {
  await expect(report(text)).rejects.toThrow("its address must be host:port");
});
